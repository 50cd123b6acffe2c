"""Latency percentiles and pacing of one target, from its captures. Audio cells only: a twin has no clip, and a probe
another prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from captures.capture import Capture, Condition
from captures.latency import FILE_SPANS, SPANS, latencies
from rig.report.model import LatencySummary, PacingSummary

SMALLEST_N = {0.50: 1, 0.90: 1, 0.95: 20, 0.99: 100}
"""Quantile → fewest values it is given for."""

ORIGINS = {name: origin.replace("_", " ") for name, (origin, _) in SPANS.items()}
ORIGINS |= dict.fromkeys(FILE_SPANS, "request sent (whole clip)")
"""Latency → its origin in words."""


def latency_summaries(captures: Iterable[Capture], void_limit_s: float) -> dict[str, LatencySummary | None]:
    """Every latency name; None where no capture has its marks."""
    valid: dict[str, list[float]] = {name: [] for name in ORIGINS}
    void = dict.fromkeys(ORIGINS, 0)
    for capture in captures:
        if capture.condition is not Condition.AUDIO or not capture.ending.scored:
            continue
        for latency in latencies(capture, void_limit_s):
            if latency.void:
                void[latency.name] += 1
            else:
                valid[latency.name].append(latency.seconds)
    return {name: _summary(valid[name], void[name]) if valid[name] or void[name] else None for name in ORIGINS}


def pacing_summary(captures: Iterable[Capture]) -> PacingSummary | None:
    """Lateness over all captures that streamed audio in time; None where none did."""
    paced = [
        capture.pacing
        for capture in captures
        if capture.pacing is not None and capture.pacing.chunks and capture.pacing.pace
    ]
    if not paced:
        return None
    return PacingSummary(
        p50_ms=float(np.median([pacing.lateness_p50_ns for pacing in paced])) / 1e6,
        p99_ms=max(pacing.lateness_p99_ns for pacing in paced) / 1e6,
        max_ms=max(pacing.lateness_max_ns for pacing in paced) / 1e6,
        captures=len(paced),
    )


def _summary(values: Sequence[float], void: int) -> LatencySummary:
    p50, p90, p95, p99 = (
        float(np.quantile(values, q)) if len(values) >= smallest else None for q, smallest in SMALLEST_N.items()
    )
    return LatencySummary(p50, p90, p95, p99, len(values), void)
