"""Which contestants each rule in use says act on sound, against the null test's verdicts. Pure; exploratory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from captures.capture import Condition
from rig.bank.models import Bank
from rig.report.model import TargetReport
from rig.report.null_model import Disagreements, VerdictRule
from rig.report.null_tests import Cells
from rig.scoring.cells import ScoredCell
from rig.stats import measures
from rig.stats.bootstrap import Sample, difference
from rig.stats.holm import ALPHA, holm
from rig.stats.verdicts import Means, best_threshold

FIXED_THRESHOLD = 0.5
_GAIN = "null gain"
_LEFT_OUT = "no option left out"
"""The other reading of answers that name no option, beside the one that counts them as wrong."""


def disagreements(reports: Sequence[TargetReport], cells: Cells, null: str | None, bank: Bank) -> Disagreements | None:
    """Over the contestants that have a verdict of the null test; None where there is none."""
    above = {
        report.name: report.null_gain.verdict == "above"
        for report in reports
        if report.null_gain is not None and report.null_gain.verdict is not None
    }
    if null is None or not above:
        return None
    runnable = {
        (cell.item_id, cell.variant_id) for own in cells.values() for cell in own if cell.condition is Condition.AUDIO
    }
    theirs = cells[null]
    rules = _Rules(
        {name: cells[name] for name in above},
        above,
        {
            "credit": lambda own: measures.level_contrast(own, theirs),
            "probe": measures.recognition,
            "probe, missing": lambda own: measures.recognition(own, "missing"),
            "pairs": lambda own: measures.pairs_recognised(own, runnable),
            "pairs, missing": lambda own: measures.pairs_recognised(own, runnable, "missing"),
            "shift, all cells": lambda own: measures.samples_of(measures.own_shift(own, neutral=None)),
            "shift, cue-bearing": measures.audio_minus_twin,
            "both right": lambda own: measures.both_right(own, bank, runnable),
            _GAIN: lambda own: measures.null_gain(own, theirs),
        },
    )
    corroborated = {
        report.name
        for report in reports
        if report.both_right_against_null is not None and report.both_right_against_null.verdict == "above"
    }
    found = [
        rules.beyond_zero("credit above the null's", "credit"),
        rules.tested("credit significantly above the null's", "credit"),
        rules.at_least(f"probe ≥ {FIXED_THRESHOLD:g}", "probe", FIXED_THRESHOLD),
        rules.at_least(f"probe ≥ {FIXED_THRESHOLD:g}, {_LEFT_OUT}", "probe, missing", FIXED_THRESHOLD),
        rules.at_best("probe, best threshold", "probe"),
        rules.at_best(f"probe, best threshold, {_LEFT_OUT}", "probe, missing"),
        rules.at_best("pair-level recognition, best threshold", "pairs"),
        rules.at_best(f"pair-level recognition, best threshold, {_LEFT_OUT}", "pairs, missing"),
        rules.tested("own shift without a floor, all cells", "shift, all cells"),
        rules.tested("own shift without a floor, cue-bearing cells", "shift, cue-bearing"),
        rules.named("both right significantly above the null's", "both right", corroborated, "Holm over contestants"),
    ]
    return Disagreements(
        tested=tuple(above),
        above=tuple(name for name in above if above[name]),
        rules=tuple(rule for rule in found if rule.compared),
    )


class _Rules:
    """Applies rules to the same targets; their items are drawn once for all."""

    def __init__(
        self,
        cells: Cells,
        above: dict[str, bool],
        by_measure: dict[str, Callable[[Sequence[ScoredCell]], Sequence[Sample]]],
    ) -> None:
        self._above = above
        self._samples = {
            measure: {name: samples(own) for name, own in cells.items()} for measure, samples in by_measure.items()
        }
        self._means = Means(self._samples)

    def beyond_zero(self, name: str, measure: str) -> VerdictRule:
        credited = [one for one, mean in self._means.point[measure].items() if mean > 0]
        span = self._means.disagreement(measure, 0.0, self._above, strictly=True)
        return self._rule(name, measure, credited, span)

    def at_least(self, name: str, measure: str, threshold: float, note: str = "") -> VerdictRule:
        credited = [one for one, mean in self._means.point[measure].items() if mean >= threshold]
        span = self._means.disagreement(measure, threshold, self._above, strictly=False)
        return self._rule(name, measure, credited, span, threshold=threshold, note=note)

    def at_best(self, name: str, measure: str) -> VerdictRule:
        threshold = best_threshold(self._means.point[measure], self._above)
        if threshold is None:
            return self._rule(name, measure, [], note="no threshold does better than crediting nobody")
        return self.at_least(name, measure, threshold, "chosen after the fact, which flatters it")

    def tested(self, name: str, measure: str) -> VerdictRule:
        estimates = {one: difference(own) for one, own in self._samples[measure].items()}
        known = {one: found for one, found in estimates.items() if found is not None and found.p is not None}
        ps = holm([found.p for found in known.values()])
        credited = [
            one
            for (one, found), p in zip(known.items(), ps, strict=True)
            if found.mean > 0 and p is not None and p <= ALPHA
        ]
        return self._rule(name, measure, credited, note="Holm over these", compared=known)

    def named(self, name: str, measure: str, credited: Collection[str], note: str) -> VerdictRule:
        return self._rule(name, measure, credited, note=note)

    def _rule(
        self,
        name: str,
        measure: str,
        credited: Collection[str],
        span: tuple[float | None, float | None] = (None, None),
        *,
        threshold: float | None = None,
        note: str = "",
        compared: Collection[str] | None = None,
    ) -> VerdictRule:
        known = [one for one in self._above if one in (self._means.point[measure] if compared is None else compared)]
        ranks = self._means.ranks(measure, _GAIN, known)
        return VerdictRule(
            name=name,
            compared=len(known),
            credited=tuple(one for one in known if one in credited),
            disagree=tuple(one for one in known if (one in credited) != self._above[one]),
            lo=span[0],
            hi=span[1],
            rho=ranks.rho,
            rho_lo=ranks.lo,
            rho_hi=ranks.hi,
            threshold=threshold,
            note=note,
        )
