"""What file-mode targets cost a run of realtime ones: the same realtime part alone, and beside file-mode targets.

Run by hand: `python tests/benchmarks/mixed_modes.py [cells] [service seconds]`. Realtime clips are paced in real time;
file-mode answers take `service seconds` each. Both parts run at their full concurrency on loopback, with the servers in
a thread of their own process. Prints wall times and pacing; the mixed run must take no longer than its realtime part,
but for the noise that two runs of that part alone show.
"""

from __future__ import annotations

import hashlib
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import soundfile
import yaml
from anyio.from_thread import BlockingPortal, start_blocking_portal

from adapters.server import Reply, ReplyCall
from captures.capture import Capture, Mark
from captures.run_folder import RunFolder
from captures.scrub import Scrubber
from rig.agents.emulator import base_url, serve
from rig.agents.faults import parse
from rig.config import parse_config
from rig.engine.prepare import prepare
from rig.engine.run import open_folder, run

_CLIP_S = 2.0
_RATE_HZ = 24_000
_FILE_MODE = ("openai_chat", "dashscope", "mistral", "gemini_file")


class _Clerk:
    """Calls the one tool."""

    async def reply(self, setup: Any, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        return Reply(calls=(ReplyCall("book_table", {"party": 4, "time": "19:30"}),))

    def after_result(self, call: ReplyCall | None) -> Reply:
        return Reply(text="Done.")


class _Quiet:
    def attempt_ended(self, cell: Any, capture: Any) -> None: ...

    def waits(self, cell: Any, error: Any, wait_s: float) -> None: ...

    def target_stopped(self, target: str, error: Any) -> None:
        print(f"{target} stopped: {error.message}")


def _bank(folder: Path) -> None:
    params = [{"name": "party", "type": "integer", "required": True}, {"name": "time", "type": "string"}]
    item = {
        "id": "booking",
        "policy_mode": "explicit",
        "domain": "restaurant",
        "scenario": "You take bookings.",
        "explicit_policy": "Book what is asked for.",
        "transcript": "A table for four at half past seven, please.",
        "tools": [{"name": "book_table", "description": "Books.", "params": params}],
        "variants": [{"variant_id": "clear", "emotion": "neutral", "gold": {"tool": "book_table"}}],
    }
    (folder / "audio").mkdir(parents=True)
    (folder / "booking.yaml").write_text(yaml.safe_dump(item))
    tone = 0.3 * np.sin(2 * np.pi * 440 * np.arange(round(_CLIP_S * _RATE_HZ)) / _RATE_HZ)
    soundfile.write(folder / "clip.wav", tone, _RATE_HZ, subtype="PCM_16")
    data = (folder / "clip.wav").read_bytes()
    (folder / "clip.wav").unlink()
    sha256 = hashlib.sha256(data).hexdigest()
    (folder / "audio" / f"{sha256}.wav").write_bytes(data)
    entry = {"item_id": "booking", "variant_id": "clear", "sha256": sha256, "engine": "tone"}
    (folder / "audio" / "manifest.yaml").write_text(yaml.safe_dump([entry]))


def _target(portal: BlockingPortal, stack: ExitStack, dialect: str, service_s: float) -> dict[str, Any]:
    served = serve(dialect, _Clerk(), plan=parse([f"delay={service_s}"] if service_s else []))
    port = stack.enter_context(portal.wrap_async_context_manager(served))
    url = base_url(dialect, "127.0.0.1", port)
    return {"name": dialect, "adapter": dialect, "model": "gemini-m" if "gemini" in dialect else "m", "base_url": url}


def _measure(folder: Path, name: str, targets: list[dict[str, Any]], cells: int) -> tuple[float, float, list[Capture]]:
    """Wall time of a run, its realtime part's, and its captures."""
    config = {
        "version": 1,
        "bank": "bank",
        "conditions": ["audio"],
        "repeats": cells,
        "concurrency": 8,
        "preflight": False,
        "targets": targets,
    }
    resolved = parse_config(yaml.safe_dump(config), "mixed.yaml", folder, {})
    prepared, scrubber = prepare(resolved), Scrubber(())
    out: RunFolder = open_folder(prepared, folder / name, scrubber)
    started = time.monotonic()
    anyio.run(run, prepared, out, _Quiet(), scrubber)
    wall_s = time.monotonic() - started
    captures = out.read_captures()
    realtime = [one for one in captures if one.target == "openai_realtime"]
    first, last = min(one.started_ns for one in realtime), max(one.marks[Mark.ANSWER_END] for one in realtime)
    return wall_s, (last - first) / 1e9, captures


def main() -> None:
    """Measure and print."""
    cells = int(sys.argv[1]) if len(sys.argv) > 1 else 32
    service_s = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        _bank(folder / "bank")
        portal = stack.enter_context(start_blocking_portal())
        realtime = _target(portal, stack, "openai_realtime", 0)
        files = [_target(portal, stack, dialect, service_s) for dialect in _FILE_MODE]
        _measure(folder, "warm", [realtime, *files], 1)
        rows = [
            ("realtime alone", *_measure(folder, "alone-1", [realtime], cells)),
            ("with file mode", *_measure(folder, "mixed", [realtime, *files], cells)),
            ("realtime alone", *_measure(folder, "alone-2", [realtime], cells)),
        ]
    print(f"{cells} cells a target, 8 at once; clips of {_CLIP_S:g} s; {len(files)} in file mode, {service_s:g} s")
    for label, wall_s, realtime_s, captures in rows:
        paced = [one.pacing for one in captures if one.target == "openai_realtime" and one.pacing]
        late_ms = max(one.lateness_p99_ns for one in paced) / 1e6
        bad = sum(not one.finished for one in captures)
        print(
            f"{label:15} wall {wall_s:6.2f} s   realtime part {realtime_s:6.2f} s   "
            f"worst p99 lateness {late_ms:5.2f} ms   {len(captures)} cells, {bad} not finished"
        )
    alone_s = statistics.fmean(wall for label, wall, *_ in rows if "alone" in label)
    print(f"mixed run against its realtime part alone: {rows[1][1] / alone_s:.3f} ×")


if __name__ == "__main__":
    main()
