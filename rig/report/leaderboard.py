"""Many targets in one table, best credit first. The figures are those of the report; nothing is measured here."""

from __future__ import annotations

from rig.report.layout import ABSENT, Table, mean, number, table
from rig.report.model import Report, TargetReport
from rig.stats.bootstrap import Estimate

_LATENCIES = ("speech_end_to_tool_call", "request_to_tool_call")
"""Shown in one column, the first that was measured; the second bears a star, since its origin is another."""


def ranked(report: Report) -> list[TargetReport]:
    """Targets by credit on cue-bearing cells; those without any come last. Equals by name."""

    def place(target: TargetReport) -> tuple[float, str]:
        credit = target.credit_cue_bearing
        return (1.0 if credit is None else -credit.mean), target.name

    return sorted(report.targets, key=place)


def leaderboard(report: Report) -> Table:
    """One row per target."""
    rows = []
    for rank, target in enumerate(ranked(report), start=1):
        harm = report.harm.targets.get(target.name) if report.harm else None
        role = "" if target.role == "contestant" else f"\n{target.role.replace('_', ' ')}"
        rows.append(
            (
                f"{ABSENT if target.credit_cue_bearing is None else f'{rank}.'} {target.name}{role}",
                _stacked(target.credit_cue_bearing),
                _gain(target),
                _stacked(target.both_right),
                _stacked(harm.rates["unsafe_execution"] if harm else None),
                _stacked(harm.rates["over_trigger"] if harm else None),
                _stacked(target.probe["strict_missing"] if target.probe else None),
                _median(target),
            )
        )
    return table(
        f"Leaderboard: {report.bank}",
        (
            "target",
            "credit,\ncue-bearing",
            "gain over\nthe words",
            "both right",
            "unsafe\nexecution",
            "over-\ntrigger",
            "heard",
            "median\ncall, s",
        ),
        rows,
        "By mean credit on cue-bearing audio cells; ranks whose intervals overlap are not told apart. Gain: null gain "
        f"(null: {report.null or 'none'}), or the level contrast where said; verdict after Holm over the contestants "
        "(confirmatory; all other columns are exploratory). Heard: probe, strict, missing. Median seconds from the end "
        "of the caller's speech to the complete call; with * from the request, in file mode, which is another origin. "
        "Mean [95 % item-clustered bootstrap interval] n cells. Detects: difference found with 80 % power."
        + (" Some tool roles behind harm are derived from golds, not annotated." if report.roles_derived else ""),
    )


def _stacked(estimate: Estimate | None, signed: bool = False) -> str:
    """A mean over its interval, so that many columns fit."""
    return mean(estimate, signed).replace(" [", "\n[", 1)


def _gain(target: TargetReport) -> str:
    gain = target.null_gain or target.level_contrast
    if gain is None:
        return ABSENT
    notes = [note for note in ("" if target.null_gain else "level", gain.verdict or "") if note]
    detects = [] if gain.estimate.detectable is None else [f"detects {number(gain.estimate.detectable)}"]
    return "\n".join([_stacked(gain.estimate, signed=True), ", ".join(notes) or "not tested", *detects])


def _median(target: TargetReport) -> str:
    for name in _LATENCIES:
        found = target.latency.get(name)
        if found is not None and found.p50 is not None:
            return f"{number(found.p50)}{'*' if name == _LATENCIES[1] else ''}\nn {found.n}"
    return ABSENT
