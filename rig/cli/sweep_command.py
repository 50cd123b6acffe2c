"""`rig sweep`: run a config once for each way of ending turns, then added latency against false cut-offs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from captures.capture import Mark
from captures.cassette import CassetteError
from rig.cli.report_command import report_console
from rig.cli.run_command import run_resolved
from rig.config import load_config
from rig.replay.events import replay
from rig.replay.source import ReplayError, StoredRun
from rig.report.layout import ABSENT, Table, mean, number, table
from rig.report.terminal import print_table
from rig.sweep.expand import Sweep, expanded
from rig.sweep.measure import CallEnd, PointFigures, call_end, figures, with_frontier


def run_sweep(config_path: Path, out: Path | None, picture: Path | None, *, as_json: bool, verbose: bool) -> int:
    """Run (or resume) the sweep and print its frontier; the exit code as of `rig run`.

    Raises:
        ConfigError: nothing of the sweep is offered by any target.
    """
    sweep = expanded(load_config(config_path), os.environ)
    for line in sweep.left_out:
        print(f"rig: left out: {line}", file=sys.stderr)

    def tell(folder: Path) -> None:
        found = with_frontier(_measured(sweep, folder))
        if picture is not None:
            from rig.sweep.picture import draw

            draw(found, picture)
        if as_json:
            print(json.dumps({"format": 1, "points": [_plain(one) for one in found], "left_out": sweep.left_out}))
        else:
            print_table(_table(found), report_console())

    return run_resolved(sweep.resolved, out, tell, verbose=verbose)


def _measured(sweep: Sweep, folder: Path) -> list[PointFigures]:
    stored = StoredRun(folder)
    config = stored.prepared.resolved.config
    ends: dict[str, list[CallEnd]] = {point.name: [] for point in sweep.points}
    failed = dict.fromkeys(ends, 0)
    done = stored.folder.finished()
    for cell in stored.prepared.plan.cells:
        if cell.target not in ends:
            continue
        capture = done.get(cell.identity)
        if capture is None or Mark.FIRST_CHUNK not in capture.marks or cell.clip is None:
            failed[cell.target] += 1
            continue
        try:
            events = replay(stored.call(capture), stored.client(cell.target), config.chunk_ms).events
        except (ReplayError, CassetteError) as error:
            print(f"rig: {cell.target}, {cell.item_id}/{cell.variant_id}: {error}", file=sys.stderr)
            failed[cell.target] += 1
            continue
        ends[cell.target].append(call_end(capture, events, cell.clip.speech_end_s, config.limits.void_ms / 1000))
    return [figures(point, ends[point.name], failed[point.name]) for point in sweep.points]


def _plain(one: PointFigures) -> dict[str, Any]:
    flat = asdict(one)
    flat["point"] = {
        "target": one.point.target,
        "mode": one.point.mode,
        "parameters": dict(one.point.parameters),
    }
    return flat


def _table(found: Sequence[PointFigures]) -> Table:
    rows = [
        (
            one.point.target,
            one.point.label,
            mean(one.cut_off),
            number(one.added_p50_s, 3),
            number(one.added_p90_s, 3),
            number(one.voice_to_voice_p50_s, 3),
            str(one.never_ended),
            str(one.failed) if one.failed else ABSENT,
            "yes" if one.on_frontier else "",
        )
        for one in found
    ]
    return table(
        "Endpointing",
        ("target", "ends turns by", "cut off", "added\np50 s", "added\np90 s", "voice to\nvoice p50", "never\nended",
         "not\nmeasured", "frontier"),
        rows,
        "Cut off: share of calls in which the peer ended the turn, or answered, more than 0.1 s before the caller's "
        "last word ended. Added: from the end of the caller's speech to the end of the turn, in calls that were not "
        "cut off (manual: to our commit, at the clip's end). Frontier: no other way on the same target is better in "
        "one and as good in the other. Exploratory.",
    )  # fmt: skip
