"""`rig calibrate`: the error of our own marks, printed and kept for the runs to come."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import anyio

from rig.calibration import record
from rig.calibration.measure import calibrate
from rig.calibration.record import Calibration, Level
from rig.cli.report_command import report_console
from rig.report.layout import ABSENT, Table, number, table
from rig.report.terminal import print_table

MAX_SESSIONS = 1000


class CalibrationError(ValueError):
    """The numbers of sessions cannot be used."""


def run_calibration(sessions: str, turns: int, *, save: bool, as_json: bool) -> int:
    """Calibrate, print and keep the result; the exit code: 1 when the rig is worse than promised.

    Raises:
        CalibrationError: `sessions` is not a list of numbers.
        ChildError: the peer did not start.
    """
    levels = _levels(sessions)
    print(f"calibrating: {', '.join(map(str, levels))} sessions, {turns} turns or more each", file=sys.stderr)

    def told(level: Level) -> None:
        print(f"{level.sessions} sessions: {level.turns} turns, {level.void} void", file=sys.stderr, flush=True)

    uvloop = not os.environ.get("RIG_NO_UVLOOP") and importlib.util.find_spec("uvloop") is not None
    with tempfile.TemporaryDirectory() as logs:
        found = anyio.run(calibrate, levels, turns, told, Path(logs), backend_options={"use_uvloop": uvloop})
    if as_json:
        print(found.model_dump_json(indent=2))
    else:
        print_table(_table(found), report_console())
    if save:
        path = record.default_path()
        try:
            record.save(found, path)
        except OSError as error:
            raise CalibrationError(f"{path}: cannot be written ({error.strerror}); --no-save only prints") from None
        print(f"rig: kept in {path}; every run from now on carries it", file=sys.stderr)
    missed = found.missed()
    for line in missed:
        print(f"rig: worse than promised: {line}", file=sys.stderr)
    return 1 if missed else 0


def _levels(text: str) -> list[int]:
    try:
        levels = [int(part) for part in text.split(",")]
    except ValueError:
        raise CalibrationError(f"--sessions {text!r}: give whole numbers, as in 1,50,200") from None
    if not all(1 <= level <= MAX_SESSIONS for level in levels):
        raise CalibrationError(f"--sessions {text!r}: each number must lie between 1 and {MAX_SESSIONS}")
    return levels


def _table(found: Calibration) -> Table:
    rows = []
    for level in found.levels:
        for name, mark in level.marks.items():
            p99 = number(mark.p99_ms, 3) if mark.p99_ms is not None else "n too small" if mark.n else ABSENT
            figures = (number(mark.bias_ms, 3, signed=True), p99, number(mark.max_ms, 3))
            cpu = f"{100 * level.cpu_share:.0f} %"
            turns = (str(level.void), str(level.failed), number(level.lateness_p99_ms), cpu)
            rows.append((str(level.sessions), name, *figures, str(mark.n), *turns))
    return table(
        "Error of our own marks, milliseconds",
        ("sessions", "mark", "bias", "p99\n|error|", "max\n|error|", "n", "void", "failed", "chunks\np99", "CPU"),
        rows,
        "Ours minus the peer's stamp, both on this machine's monotonic clock: of sending for what came in, of reading "
        "for our commit. Way over loopback included. Void turns are in no error. Chunks: lateness, 99th percentile "
        f"over turns of each turn's own. Promised up to {record.JUDGED_SESSIONS} sessions: |bias| ≤ "
        f"{record.BIAS_LIMIT_MS:g} and p99 ≤ {record.P99_LIMIT_MS:g}; audible onset ≤ {record.ONSET_LIMIT_MS:g}. "
        f"{found.event_loop}, Python {found.python}, {found.cpus} cores.",
    )
