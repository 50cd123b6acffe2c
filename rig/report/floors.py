"""The floors on a bank as a report of their own, and which measures of a target a floor meets or beats.

The floors' captures go through the same scoring and statistics as any run's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from captures.capture import Condition
from rig.bank.models import Bank
from rig.report.build import report_on
from rig.report.model import Report
from rig.report.runs import LoadedRun
from rig.report.scored import Scored
from rig.scoring.floors import ADAPTER, ROLE, floor_captures, floors
from rig.stats.bootstrap import Estimate

_Figure = Callable[[Report, str], Estimate | None]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure that floors are held against."""

    name: str
    higher_is_better: bool
    figure: _Figure


def _rate(name: str) -> _Figure:
    return lambda report, target: report.harm.targets[target].rates[name] if report.harm else None


MEASURES = (
    Measure("credit, cue-bearing", True, lambda report, target: report.target(target).credit_cue_bearing),
    Measure("credit, neutral", True, lambda report, target: report.target(target).credit_neutral),
    Measure("selection, cue-bearing", True, lambda report, target: report.target(target).selection_cue_bearing),
    Measure("both right", True, lambda report, target: report.target(target).both_right),
    Measure("audio − twin", True, lambda report, target: report.target(target).audio_minus_twin),
    Measure(
        "null gain",
        True,
        lambda report, target: gain.estimate if (gain := report.target(target).null_gain) is not None else None,
    ),
    Measure(
        "balanced credit",
        True,
        lambda report, target: report.harm.targets[target].balanced_credit if report.harm else None,
    ),
    Measure(
        "probe, strict, missing",
        True,
        lambda report, target: probe["strict_missing"] if (probe := report.target(target).probe) is not None else None,
    ),
    Measure("unsafe execution", False, _rate("unsafe_execution")),
    Measure("missed duty", False, _rate("missed_duty")),
    Measure("over-trigger", False, _rate("over_trigger")),
)


@dataclass(frozen=True, slots=True)
class Met:
    """A measure of a target that a floor meets or beats."""

    target: str
    measure: str
    mean: float
    floor: str
    """The best floor there."""
    floor_mean: float
    within: bool
    """The floor's mean does not reach the target's, but lies inside its 95 % interval."""


@dataclass(frozen=True, slots=True)
class FloorReport:
    """The floors on some clips of a bank."""

    report: Report
    what: Mapping[str, str]
    """Floor → what it does."""
    absent: tuple[str, ...]
    """Floors that this bank does not have, and why."""
    met: tuple[Met, ...] = ()


def floor_report(
    bank: Bank,
    clips: Collection[tuple[str, str]] | None = None,
    null: LoadedRun | None = None,
    nulls: Sequence[str] = (),
) -> FloorReport:
    """The floors on all of `bank`, or on `clips` (item, variant). `null`: a run with the words-only target in it."""
    found, absent = floors(bank)
    run = LoadedRun(
        path=Path("floors"),
        run_json={"targets": {floor.name: {"role": ROLE, "adapter": ADAPTER} for floor in found}},
        captures=tuple(capture for floor in found for capture in floor_captures(floor, bank, clips)),
        warnings=(),
    )
    report = report_on([run] if null is None else [run, null], bank, nulls)
    return FloorReport(report, {floor.name: floor.what for floor in found}, tuple(absent))


def floors_beside(report: Report, runs: Scored) -> FloorReport:
    """The floors on the clips that `report`, made of `runs`, has measured, and which of its measures they meet."""
    bank, targets = runs.bank, runs.targets
    clips = {
        (capture.item_id, capture.variant_id)
        for target in targets
        for capture in target.captures
        if capture.condition is Condition.AUDIO and capture.variant_id is not None
    }
    null = next((target for target in targets if target.name == report.null), None)
    theirs: LoadedRun | None = None
    if null is not None:
        entry: dict[str, Any] = {"targets": {null.name: {"role": "words_only"}}}
        theirs = LoadedRun(Path("null"), entry, null.captures, ())
    made = floor_report(bank, clips, theirs, [null.name] if null is not None else [])
    return FloorReport(made.report, made.what, made.absent, tuple(_met(report, made)))


def _met(report: Report, made: FloorReport) -> list[Met]:
    found = []
    for measure in MEASURES:
        by_floor = {name: measure.figure(made.report, name) for name in made.what}
        known = {name: one.mean for name, one in by_floor.items() if one is not None}
        if not known:
            continue
        best = (max if measure.higher_is_better else min)(known, key=lambda name: known[name])
        for target in report.targets:
            own = measure.figure(report, target.name)
            if own is None or target.role == ROLE:
                continue
            ahead = own.mean - known[best] if measure.higher_is_better else known[best] - own.mean
            inside = own.lo is not None and own.hi is not None and own.lo <= known[best] <= own.hi
            if ahead <= 0 or inside:
                found.append(Met(target.name, measure.name, own.mean, best, known[best], within=ahead > 0))
    return found
