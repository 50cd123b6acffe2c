"""Serving deltas and steps as tables of plain text, and as JSON-ready data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from captures.capture import Condition
from rig.report.layout import ABSENT, Table, mean, number, plain, seconds, table
from rig.report.model import LatencySummary
from rig.report.serving import (
    GAIN,
    HELD,
    LEAST_SHARED,
    MEASURES,
    STREAMED,
    Delta,
    Measure,
    PooledRow,
    ServedPair,
    ServingReport,
)
from rig.report.timing import ORIGINS
from rig.stats.bootstrap import Estimate

_LISTED = 12
"""Cells named per pair in tables; JSON names all."""
_ARROWS = {STREAMED: "commit → tool call", HELD: "request → tool call"}


def serving_tables(report: ServingReport) -> list[Table]:
    """All tables that have something to show, in order."""
    made = [
        _deltas("Serving: realtime − file", report, report.pairs, MEASURES, pooled=True),
        _deltas("Steps: later − earlier", report, report.steps, (*MEASURES, GAIN), pooled=False),
        _latency(report),
        _cells(report),
    ]
    return [one for one in made if one.rows]


def serving_notes(report: ServingReport) -> list[tuple[str, list[str]]]:
    """Headed lists: pairs refused, cells that not both sides measured, warnings."""
    refused = [f"{_label(pair)}: {pair.refused}" for pair in (*report.pairs, *report.steps) if pair.refused]
    unshared = [line for pair in (*report.pairs, *report.steps) for line in _unshared(pair)]
    lists = [
        ("Refused", refused),
        ("Cells that not both sides measured", unshared),
        ("Warnings", list(report.warnings)),
    ]
    return [(heading, [plain(line) for line in lines]) for heading, lines in lists if lines]


def _label(pair: ServedPair) -> str:
    return f"{pair.name}: {pair.second} − {pair.first}" if pair.name else f"{pair.second} − {pair.first}"


def _deltas(
    title: str, report: ServingReport, pairs: Sequence[ServedPair], columns: Sequence[Measure], *, pooled: bool
) -> Table:
    rows = [
        (_label(pair), *(_difference(pair, measure.key) for measure in columns)) for pair in pairs if not pair.refused
    ]
    note = ""
    if pooled and rows:
        rows.append(("pooled over pairs", *(_pooled(report.pooled[measure.key]) for measure in columns)))
        left_out = dict.fromkeys(name for row in report.pooled.values() for name in row.left_out)
        note = (
            " Pooled: random effects (DerSimonian and Laird), τ² the variance between pairs; pairs share items, which "
            "it takes to be independent."
        )
        if left_out:
            note += f" Without an interval, so in no pool where their items are all alike: {', '.join(left_out)}."
    sets = "; ".join(f"{measure.heading}: {measure.cells} ({measure.unit})" for measure in columns)
    roles = " Some tool roles are derived from golds, not annotated." if report.roles_derived else ""
    return table(
        title,
        ("pair", *(measure.heading.replace(", ", ",\n") for measure in columns)),
        rows,
        f"Identical cells only; mean difference cell by cell [95 % item-clustered bootstrap] n cells. {sets}. Probe "
        f"read strictly. Invariant controls left out.{note}{roles} Exploratory, unadjusted.",
    )


def _difference(pair: ServedPair, key: str) -> str:
    delta = pair.deltas.get(key)
    return mean(delta.change if delta else None, signed=True)


def _pooled(row: PooledRow) -> str:
    found = row.pooled
    if found is None:
        return f"{ABSENT}\nneeds 2 intervals"
    lo, hi = number(found.lo, signed=True), number(found.hi, signed=True)
    return f"{number(found.mean, signed=True)} [{lo}, {hi}]\n{found.pairs} pairs, τ² {number(found.tau_squared, 4)}"


def _latency(report: ServingReport) -> Table:
    rows = [
        (_label(pair), _time(pair.latency[1]), _time(pair.latency[0]))
        for pair in (*report.pairs, *report.steps)
        if not pair.refused and any(pair.latency)
    ]
    return table(
        "Time to the tool call, seconds",
        ("pair", "realtime, or later", "file, or earlier"),
        rows,
        "Median [95 % interval] over shared audio cells with a call; void ones left out. Origins differ: "
        f"{_ARROWS[STREAMED]} starts at the {ORIGINS[STREAMED]} of a turn streamed in real time, "
        f"{_ARROWS[HELD]} at the {ORIGINS[HELD]}, upload included. So no difference is taken. Exploratory.",
    )


def _time(found: Mapping[str, LatencySummary]) -> str:
    if not found:
        return ABSENT
    lines = []
    for name, one in found.items():
        interval = "" if one.lo is None or one.hi is None else f" [{number(one.lo, 3)}, {number(one.hi, 3)}]"
        lines.append(f"{seconds(one.p50, one.n)}{interval}\n{_ARROWS[name]}, n {one.n}, void {one.void}")
    return "\n".join(lines)


def _cells(report: ServingReport) -> Table:
    rows = []
    for pair in (*report.pairs, *report.steps):
        alone = [sum(cell.measured_by == side for cell in pair.unshared) for side in (pair.second, pair.first)]
        neither = sum(cell.measured_by is None for cell in pair.unshared)
        rows.append(
            (
                _label(pair),
                *(_share(pair, condition) for condition in (Condition.AUDIO, Condition.PROBE)),
                str(alone[0]),
                str(alone[1]),
                str(neither),
                "refused" if pair.refused else "compared",
            )
        )
    return table(
        "Cells of each pair",
        ("pair", "audio, both", "probe, both", "second alone", "first alone", "neither", "pair is"),
        rows,
        f"Cells that both sides measured, of those that either was asked. The pair reads second − first. Below "
        f"{LEAST_SHARED:.0%} of a condition that both ran, the pair is refused.",
    )


def _share(pair: ServedPair, condition: Condition) -> str:
    return f"{pair.shared[condition]} of {pair.cells[condition]}" if condition in pair.cells else "not run on both"


def _unshared(pair: ServedPair) -> list[str]:
    lines = [
        f"{_label(pair)}: {cell.item_id}/{cell.variant_id} ({cell.condition}, repeat {cell.repeat}): "
        + (f"only {cell.measured_by}" if cell.measured_by else "neither")
        for cell in pair.unshared
    ]
    if len(lines) > _LISTED:
        return [*lines[:_LISTED], f"{_label(pair)}: and {len(lines) - _LISTED} more (all are in --json)"]
    return lines


def serving_json(report: ServingReport) -> dict[str, Any]:
    """Plain data; no number is NaN. What does not apply or was not measured is null."""
    return {
        "format": 1,
        "runs": list(report.runs),
        "bank": report.bank,
        "measures": {
            measure.key: {"heading": measure.heading, "cells": measure.cells, "unit": measure.unit}
            for measure in (*MEASURES, GAIN)
        },
        "pairs": [{"realtime": pair.second, "file": pair.first} | _pair(pair) for pair in report.pairs],
        "pooled": {key: _pooled_json(row) for key, row in report.pooled.items()},
        "steps": [
            {"name": pair.name, "later": pair.second, "earlier": pair.first} | _pair(pair) for pair in report.steps
        ],
        "warnings": list(report.warnings),
    }


def _pair(pair: ServedPair) -> dict[str, Any]:
    return {
        "refused": pair.refused or None,
        "deltas": {key: _delta(delta) for key, delta in pair.deltas.items()},
        "latency": {
            target: {
                name: {
                    "origin": ORIGINS[name],
                    "p50": one.p50,
                    "lo": one.lo,
                    "hi": one.hi,
                    "n": one.n,
                    "void": one.void,
                }
                for name, one in found.items()
            }
            for target, found in zip((pair.first, pair.second), pair.latency, strict=True)
        },
        "cells": {
            condition.value: {"shared": pair.shared[condition], "of": whole} for condition, whole in pair.cells.items()
        },
        "unshared": [
            {
                "item": cell.item_id,
                "variant": cell.variant_id,
                "condition": cell.condition.value,
                "repeat": cell.repeat,
                "measured_by": cell.measured_by,
            }
            for cell in pair.unshared
        ],
    }


def _latency_json(name: str, one: LatencySummary) -> dict[str, Any]:
    return {"origin": ORIGINS[name], "p50": one.p50, "lo": one.lo, "hi": one.hi, "n": one.n, "void": one.void}


def _delta(delta: Delta | None) -> dict[str, Any] | None:
    if delta is None:
        return None
    return {"first": delta.first, "second": delta.second, "standard_error": delta.standard_error} | _estimate(
        delta.change
    )


def _estimate(found: Estimate) -> dict[str, Any]:
    return {
        "mean": found.mean,
        "lo": found.lo,
        "hi": found.hi,
        "n": found.n,
        "items": found.items,
        "method": found.method,
        "p": found.p,
    }


def _pooled_json(row: PooledRow) -> dict[str, Any] | None:
    found = row.pooled
    if found is None:
        return None
    return {
        "mean": found.mean,
        "lo": found.lo,
        "hi": found.hi,
        "pairs": found.pairs,
        "tau_squared": found.tau_squared,
        "q": found.q,
        "i_squared": found.i_squared,
        "left_out": list(row.left_out),
        "method": "DerSimonian-Laird",
    }
