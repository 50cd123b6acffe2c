"""Points of the report's plots that no table holds as they are."""

from __future__ import annotations

from dataclasses import dataclass

from rig.report.model import Report
from rig.stats.bootstrap import Estimate


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """One target's median latency against its credit on cue-bearing cells. Two origins never share a plot."""

    target: str
    latency: str
    p50: float
    """Seconds."""
    lo: float | None
    hi: float | None
    credit: Estimate


def latency_against_credit(report: Report) -> list[LatencyPoint]:
    """One point per target and latency of which both figures were measured."""
    return [
        LatencyPoint(target.name, name, found.p50, found.lo, found.hi, target.credit_cue_bearing)
        for target in report.targets
        for name, found in target.latency.items()
        if found is not None and found.p50 is not None and target.credit_cue_bearing is not None
    ]
