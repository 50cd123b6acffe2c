"""The long chaos run: `python tests/chaos/soak.py [--sessions 2000] [--seed 1]`. Prints its figures as Markdown."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import campaign


def main() -> int:
    """0 when every ending was as its fault must have it and nothing was left behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1970)
    parser.add_argument("--heavy", type=int, default=30, help="sessions with floods and the largest frames, on top")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=60)
    chosen = parser.parse_args()
    spec = importlib.util.spec_from_file_location("banks", Path(__file__).parents[1] / "rig_engine" / "banks.py")
    assert spec is not None
    assert spec.loader is not None
    banks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(banks)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        banks.write_bank(folder / "bank", {"clear": banks.wav(banks.tone(0.1))}, items=(banks.BOOKING,))
        figures = campaign.campaign(
            folder / "run", folder / "bank", sessions=chosen.sessions, heavy=chosen.heavy, seed=chosen.seed,
            at_once=chosen.at_once, batch=max(200, chosen.at_once),
        )  # fmt: skip
    rows = {
        "seed": chosen.seed,
        "sessions": figures.sessions,
        "endings as expected": figures.as_expected,
        "endings not as expected": len(figures.surprises),
        "hangs": figures.hangs,
        "lines on disk": figures.lines,
        "slowest session, s": f"{figures.slowest_s:.1f}",
        "wall time, s": f"{figures.wall_s:.0f}",
        "tasks left": figures.tasks_left,
        "descriptors left": figures.descriptors_left,
        "session objects left": figures.sessions_left,
        "resident memory after each batch, MiB": " ".join(f"{one:.0f}" for one in figures.rss_mib),
    }
    print("| figure | value |\n|---|---|")
    print("\n".join(f"| {name} | {value} |" for name, value in rows.items()))
    print("\n| fault | sessions |\n|---|---|")
    print("\n".join(f"| {name} | {count} |" for name, count in sorted(figures.faults.items())))
    print("\n| ending | sessions |\n|---|---|")
    print("\n".join(f"| {name} | {count} |" for name, count in sorted(figures.endings.items())))
    for line in figures.surprises:
        print(line, file=sys.stderr)
    left = figures.tasks_left + figures.descriptors_left + figures.sessions_left
    return 1 if figures.surprises or figures.hangs or left else 0


if __name__ == "__main__":
    sys.exit(main())
