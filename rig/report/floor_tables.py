"""The floors as tables and as JSON-ready data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rig.report.floors import MEASURES, FloorReport, Measure
from rig.report.layout import ABSENT, Table, number, table
from rig.stats.bootstrap import Estimate


def floor_tables(found: FloorReport) -> list[Table]:
    """The floors' measures; and, beside a report, what they meet."""
    shown = [
        measure for measure in MEASURES if any(measure.figure(found.report, name) is not None for name in found.what)
    ]
    rows = [_row(measure, [measure.figure(found.report, name) for name in found.what]) for measure in shown]
    doings = "; ".join(f"{name}: {what}" for name, what in found.what.items())
    absent = f" Not on this bank: {'; '.join(found.absent)}." if found.absent else ""
    made = [
        table(
            f"Floors: {found.report.bank}",
            ("measure", *(name.replace("-", "-\n") for name in found.what)),
            rows,
            f"Degenerate agents through the same scoring: {doings}. Each knows the best arguments that the item has "
            f"for its tool. Means over n cells; intervals are in --json.{absent}{_roles(found)} Exploratory.",
        )
    ]
    made.append(
        table(
            "Measures that a floor meets or beats",
            ("target", "measure", "target", "floor", "best floor"),
            [
                (
                    one.target,
                    one.measure,
                    number(one.mean),
                    number(one.floor_mean),
                    f"{one.floor}{' (inside the interval)' if one.within else ''}",
                )
                for one in found.met
            ],
            "The best floor on the same clips is at least as good as the target's mean, or lies inside the target's "
            f"95 % interval: the measure by itself does not show that the target listens.{_roles(found)} Exploratory.",
        )
    )
    return [one for one in made if one.rows]


def _roles(found: FloorReport) -> str:
    return " Some tool roles behind harm are derived from golds, not annotated." if found.report.roles_derived else ""


def _row(measure: Measure, figures: Sequence[Estimate | None]) -> tuple[str, ...]:
    sizes = sorted({one.n for one in figures if one is not None})
    size = f"n {sizes[0]}" if len(sizes) == 1 else f"n {sizes[0]} to {sizes[-1]}"
    better = "higher" if measure.higher_is_better else "lower"
    means = (ABSENT if one is None else number(one.mean) for one in figures)
    return (f"{measure.name}\n{better} is better, {size}", *means)


def floors_json(found: FloorReport) -> dict[str, Any]:
    """Plain data; null where a floor has no such measure."""

    def figure(estimate: Estimate | None) -> dict[str, Any] | None:
        if estimate is None:
            return None
        return {name: getattr(estimate, name) for name in ("mean", "lo", "hi", "n", "items", "method")}

    return {
        "floors": {
            name: {
                "what": what,
                "measures": {measure.name: figure(measure.figure(found.report, name)) for measure in MEASURES},
            }
            for name, what in found.what.items()
        },
        "absent": list(found.absent),
        "met": [
            {
                "target": one.target,
                "measure": one.measure,
                "mean": one.mean,
                "floor": one.floor,
                "floor_mean": one.floor_mean,
                "only_inside_the_interval": one.within,
            }
            for one in found.met
        ],
    }
