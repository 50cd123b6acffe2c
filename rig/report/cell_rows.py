"""What became of each cell of a run, as plain rows for scripts and test frameworks. Pure.

Tables and statistics over cells are the report's. A row holds what one capture says and what it is worth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from captures.capture import Capture, Condition
from captures.latency import latencies
from rig.bank.models import Bank, Item
from rig.report.scored import Scored
from rig.scoring.cells import ScoredCell


def cell_rows(scored: Scored) -> Iterator[dict[str, Any]]:
    """A row per cell, in the order of targets and captures.

    `scores`: variant → `expected` (`tool`, null for no call, and `arguments`: name → values that are right), `credit`
    (null where nothing was measured), `passed`, `reasons`; a text twin has an entry for each variant. `latency`: name →
    `seconds` and `void`, the reasons why the value may enter no table. `probe` is null where none was read.
    """
    for target in scored.targets:
        cells: dict[str, list[ScoredCell]] = defaultdict(list)
        for cell in scored.cells[target.name]:
            cells[cell.identity].append(cell)
        for capture in target.captures:
            own = [one for one in cells[capture.identity] if one.condition is capture.condition]
            yield _row(capture, own, scored.bank, target.run.void_limit_s)


def _row(capture: Capture, cells: list[ScoredCell], bank: Bank, void_limit_s: float) -> dict[str, Any]:
    item = bank.item(capture.item_id)
    asked = capture.condition is Condition.PROBE
    return {
        "target": capture.target,
        "item": capture.item_id,
        "variant": capture.variant_id,
        "condition": str(capture.condition),
        "repeat": capture.repeat,
        "finished": capture.finished,
        "ending": str(capture.ending),
        "ending_detail": capture.ending_detail,
        "error": None if capture.error is None else capture.error.model_dump(mode="json"),
        "transcript": item.transcript,
        "heard": capture.input_transcript,
        "heard_tags": None if capture.input_tags is None else list(capture.input_tags),
        "calls": [call.model_dump(mode="json", include={"name", "arguments", "complete"}) for call in capture.calls],
        "said": capture.reply_text or capture.reply_transcript,
        "scores": {} if asked else {cell.variant_id: _score(item, cell) for cell in cells},
        "probe": _probe(cells[0]) if asked and cells else None,
        "latency": {
            one.name: {"seconds": one.seconds, "void": list(one.void)} for one in latencies(capture, void_limit_s)
        },
        "cassette": capture.cassette,
    }


def _score(item: Item, cell: ScoredCell) -> dict[str, Any]:
    gold = item.variant(cell.variant_id).gold
    arguments = {name: list(values) for name, values in gold.args.items()}
    return {
        "expected": {"tool": gold.tool, "arguments": arguments},
        "credit": cell.credit,
        "passed": cell.passed,
        "reasons": list(cell.action.reasons) if cell.action else [],
    }


def _probe(cell: ScoredCell) -> dict[str, Any]:
    """`answer`: the option that was named, leniently read; `right` is null where none was read."""
    reading = cell.probe
    if reading is None:
        return {"expected": None, "answer": None, "right": None, "not_applicable": cell.not_applicable}
    return {
        "expected": reading.gold,
        "answer": reading.lenient,
        "right": reading.value("lenient", "wrong") == 1.0,
        "not_applicable": "",
    }
