"""Measures how long 10,000 planned cells take to start, and a run folder that holds them all to resume.

Run as `python tests/benchmarks/plan.py`; nothing here passes or fails. Times are from the config's text to the list of
cells that are left: bank, clips, plan, run folder. Beside it, in the same run: only parsing the same lines as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from captures.capture import Capture, Ending, Mark, Pacing
from captures.run_folder import RunFolder
from captures.scrub import Scrubber
from rig.config import ResolvedConfig, parse_config
from rig.engine.plan import Cell
from rig.engine.prepare import prepare
from rig.engine.run import Remaining, open_folder, remaining

CELLS = 10_000


def config(repeats: int) -> ResolvedConfig:
    text = {
        "version": 1,
        "bank": "demo",
        "repeats": repeats,
        "targets": [{"name": "agent", "adapter": "openai_realtime", "model": "m", "embedded_agent": "local-cascade"}],
    }
    return parse_config(json.dumps(text), "config", Path(), {})


def started(repeats: int, folder: Path) -> tuple[float, Remaining, RunFolder]:
    """Seconds, what is left, and the folder."""
    begun_s = time.perf_counter()
    prepared = prepare(config(repeats))
    opened = open_folder(prepared, folder, Scrubber([]))
    left = remaining(prepared, opened)
    return time.perf_counter() - begun_s, left, opened


def capture_of(cell: Cell) -> Capture:
    times = {mark: 1_000_000_000 * (number + 1) for number, mark in enumerate(Mark)}
    return Capture(
        identity=cell.identity,
        target=cell.target,
        item_id=cell.item_id,
        variant_id=cell.variant_id,
        condition=cell.condition,
        repeat=cell.repeat,
        finished=True,
        started_ns=1,
        adapter="openai_realtime",
        wire_version=1,
        parser_version=1,
        ending=Ending.DECLINED,
        reply_text="All right, nothing more is needed.",
        marks=times,
        pacing=Pacing(
            pace=1.0,
            chunk_ms=20,
            chunks=250,
            lateness_p50_ns=1,
            lateness_p99_ns=2,
            lateness_max_ns=3,
            last_chunk_ns=4,
            commit_ns=5,
        ),
        cassette="wire/x.jsonl.zst",
    )


def main() -> None:
    few = len(prepare(config(1)).plan.cells)
    repeats = -(-CELLS // few)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        first_s, left, opened = started(repeats, folder)
        print(f"{len(left.cells):,} cells: start {first_s:.2f} s, Python {sys.version.split()[0]}")
        with opened.captures_path.open("wb") as file:
            for cell in left.cells:
                file.write(json.dumps(capture_of(cell).model_dump(), separators=(",", ":")).encode() + b"\n")
        again_s, none_left, _ = started(repeats, folder)
        lines = opened.captures_path.read_bytes().splitlines()
        begun_s = time.perf_counter()
        for line in lines:
            json.loads(line)
        parsed_s = time.perf_counter() - begun_s
        print(
            f"resume of {none_left.finished:,} finished cells ({len(none_left.cells)} left): {again_s:.2f} s; "
            f"parsing their {sum(map(len, lines)) / 1e6:.0f} MB as JSON alone: {parsed_s:.2f} s"
        )


if __name__ == "__main__":
    main()
