"""What file-mode targets cost a run of realtime ones: the same realtime part alone, and beside file-mode targets.

Run as `python tests/benchmarks/mixed_modes.py [repeats] [answer seconds]`; nothing here passes or fails. Realtime clips
of one demo item are paced in real time, and file-mode answers take so many seconds each; every target runs at its full
concurrency of 8, against embedded agents in processes of their own. Times are from the first cell's start to the last
one's end. The mixed run must take no longer than its realtime part alone, but for the noise between two such runs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
import yaml

from captures.capture import Capture, Mark
from captures.scrub import Scrubber
from rig.config import parse_config
from rig.engine.prepare import prepare
from rig.engine.run import open_folder, run

_REALTIME = "openai_realtime"
_FILE_MODE = ("openai_chat", "dashscope", "mistral", "gemini_file")


class _Quiet:
    def attempt_ended(self, cell: Any, capture: Any) -> None: ...

    def waits(self, cell: Any, error: Any, wait_s: float) -> None: ...

    def target_stopped(self, target: str, error: Any) -> None:
        print(f"{target} stopped: {error.message}")


def _measure(folder: Path, repeats: int, service_s: float, *file_mode: str) -> list[Capture]:
    """The captures of one run."""
    targets: list[dict[str, Any]] = [
        {"name": name, "adapter": name, "model": "m", "embedded_agent": "local-acoustic", "faults": faults}
        for name, faults in [(_REALTIME, []), *((name, [f"delay={service_s}"]) for name in file_mode)]
    ]
    config = {
        "version": 1,
        "bank": "demo",
        "items": ["demo-betting-01"],
        "conditions": ["audio"],
        "repeats": repeats,
        "targets": targets,
    }
    resolved = parse_config(yaml.safe_dump(config), "mixed.yaml", folder, {})
    prepared, scrubber = prepare(resolved), Scrubber(())
    out = open_folder(prepared, folder, scrubber)
    anyio.run(run, prepared, out, _Quiet(), scrubber)
    return out.read_captures()


def _span_s(captures: list[Capture]) -> float:
    ends = [one.marks[Mark.ANSWER_END] for one in captures if Mark.ANSWER_END in one.marks]
    return (max(ends) - min(one.started_ns for one in captures)) / 1e9


def main() -> None:
    """Measure and print."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 16
    service_s = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    spans = []
    for label, others in (("realtime alone", ()), ("with file mode", _FILE_MODE), ("realtime alone", ())):
        with tempfile.TemporaryDirectory() as folder:
            captures = _measure(Path(folder) / "run", repeats, service_s, *others)
        realtime = [one for one in captures if one.target == _REALTIME]
        late_ms = sorted(one.pacing.lateness_p99_ns / 1e6 for one in realtime if one.pacing)
        spans.append(_span_s(captures))
        print(
            f"{label}   whole run {spans[-1]:6.2f} s   its realtime part {_span_s(realtime):6.2f} s   "
            f"p99 lateness of a session: median {late_ms[len(late_ms) // 2]:.2f} ms, worst {late_ms[-1]:.2f} ms   "
            f"{len(captures)} cells, {sum(not one.finished for one in captures)} not finished"
        )
    print(f"mixed run against its realtime part alone: {spans[1] / ((spans[0] + spans[2]) / 2):.3f} ×")


if __name__ == "__main__":
    main()
