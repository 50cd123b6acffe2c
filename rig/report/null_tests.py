"""Scored cells of all targets → the null test's company. Pure. Confirmatory is the gain over the first null alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from captures.capture import Condition
from rig.bank.models import Bank
from rig.report.families import corrected
from rig.report.model import Family, TargetReport, Tested, Verdict
from rig.report.null_model import EveryNull, Measure, NullTests
from rig.scoring.cells import ScoredCell
from rig.stats import measures, null_tests
from rig.stats.bootstrap import difference, proportion

SHIFT = "shift beyond the highest null"
SELDOM = 0.5
"""A twin that acts on fewer of the items that ask for a call in any case."""

Cells = Mapping[str, Sequence[ScoredCell]]


def null_test_company(
    reports: Sequence[TargetReport], cells: Cells, nulls: Sequence[str], contestants: Sequence[str], bank: Bank
) -> tuple[dict[str, NullTests], tuple[Family, ...]]:
    """By target, for those that have a gain over the first null; and the families that were corrected here."""
    families: list[Family] = []
    against = gains_against(reports, cells, nulls, contestants, families)
    bound, bound_note = _highest_bound(cells, nulls)
    shifts: dict[str, Tested] = {}
    if bound is not None:
        for report in reports:
            estimate = null_tests.shift(cells[report.name], bound[1]) if report.name not in nulls else None
            if estimate is not None and report.name in against:
                shifts[report.name] = Tested(estimate, bound[0])
        twinned = {report.name for report in reports if report.has_text_path}
        done, family = corrected({name: shifts.get(name) for name in contestants if name in twinned}, SHIFT)
        shifts |= done
        families += [family] if family else []
    always_called = {item.id for item in bank.items if all(variant.gold.tool is not None for variant in item.variants)}
    found = {}
    for report in reports:
        if not against.get(report.name):
            continue
        own, gains = cells[report.name], against[report.name]
        first = next(iter(gains.values()))
        has_twin = measure_of(report) == "null gain"
        incomplete, lacking = null_tests.incomplete_gain(own, cells[nulls[0]]) if has_twin else (None, 0)
        found[report.name] = NullTests(
            measure=measure_of(report),
            against=gains,
            every_null=every_null(gains, nulls),
            equivalent={margin: null_tests.equivalent(first.estimate, margin) for margin in null_tests.MARGINS},
            shift=shifts.get(report.name),
            shift_note=bound_note if has_twin else "no text path",
            incomplete=incomplete,
            incomplete_cells=lacking,
            acts_on_audio=proportion(null_tests.acts(own, Condition.AUDIO)),
            acts_on_twin=proportion(null_tests.acts(own, Condition.TEXT_TWIN)),
            twin_seldom_acts=_twin_seldom_acts(own, first, always_called) if has_twin else None,
        )
    return found, tuple(families)


def measure_of(report: TargetReport) -> Measure:
    """Which gain a target has."""
    return "null gain" if report.null_gain is not None else "level contrast"


def gains_against(
    reports: Sequence[TargetReport],
    cells: Cells,
    nulls: Sequence[str],
    contestants: Sequence[str],
    families: list[Family],
) -> dict[str, dict[str, Tested]]:
    """Target → null → the gain against it; those over the first null are the reports' own. Adds to `families`."""
    own = {
        report.name: report.null_gain or report.level_contrast
        for report in reports
        if report.name not in nulls and (report.null_gain or report.level_contrast)
    }
    found = {name: {nulls[0]: tested} for name, tested in own.items() if tested is not None}
    kinds = {report.name: measure_of(report) for report in reports if report.name in found}
    for null in nulls[1:]:
        for kind in ("null gain", "level contrast"):
            measure = measures.null_gain if kind == "null gain" else measures.level_contrast
            tests = {
                name: Tested(estimate, null)
                for name in found
                if kinds[name] == kind and (estimate := difference(measure(cells[name], cells[null]))) is not None
            }
            members = {name: tests.get(name) for name in contestants if kinds.get(name) == kind}
            done, family = corrected(members, f"{kind} against {null}")
            families += [family] if family else []
            for name, tested in (tests | done).items():
                found[name][null] = tested
    return found


def every_null(gains: Mapping[str, Tested], nulls: Sequence[str]) -> EveryNull | None:
    """The intersection–union test; None where a null is missing among `gains`."""
    if any(null not in gains for null in nulls):
        return None
    tests = [gains[null] for null in nulls]
    weakest = min(tests, key=lambda tested: tested.estimate.mean)
    if any(tested.holm_p is None for tested in tests):
        return EveryNull(tuple(nulls), None, None, weakest.null)
    verdicts = {tested.verdict for tested in tests}
    one_way = len({tested.estimate.mean > 0 for tested in tests}) == 1
    verdict: Verdict | None = verdicts.pop() if len(verdicts) == 1 else "none"
    highest = max(tested.holm_p for tested in tests if tested.holm_p is not None)
    return EveryNull(tuple(nulls), highest if one_way else 1.0, verdict, weakest.null)


def as_one(gains: Mapping[str, Tested], nulls: Sequence[str]) -> Tested | None:
    """The gain over the null that it is smallest against, with the intersection–union test's p and verdict."""
    joined = every_null(gains, nulls)
    if joined is None:
        return None
    return replace(gains[joined.weakest], holm_p=joined.holm_p, verdict=joined.verdict)


def _highest_bound(cells: Cells, nulls: Sequence[str]) -> tuple[tuple[str, float] | None, str]:
    bounds = {null: null_tests.upper_bound(cells[null]) for null in nulls}
    if unknown := [null for null, bound in bounds.items() if bound is None]:
        return None, f"no shift test: no interval for audio − twin of {', '.join(unknown)}"
    known = {null: bound for null, bound in bounds.items() if bound is not None}
    highest = max(known, key=lambda null: known[null])
    return (highest, known[highest]), f"{known[highest]:+.3f}, of {highest}"


def _twin_seldom_acts(cells: Sequence[ScoredCell], gain: Tested, always_called: set[str]) -> bool:
    """A positive gain, while on items where every gold is a call the twin seldom calls, and clips are acted on more."""
    rate, more = null_tests.acts_more_on_audio(cells, always_called)
    rises = more is not None and (more.lo > 0 if more.lo is not None else more.mean > 0)
    return gain.estimate.mean > 0 and rate is not None and rate < SELDOM and rises
