"""Latency percentiles, their parts, and pacing of one target, from its captures. Audio cells only: a twin has no clip,
and a probe another prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from captures.capture import Capture, Condition
from captures.latency import FILE_SPANS, PARTS, SPANS, Latency, latencies, parts
from rig.report.model import Gaps, LatencySummary, PacingSummary
from rig.stats.bootstrap import Sample
from rig.stats.median import median_interval

SMALLEST_N = {0.50: 1, 0.90: 10, 0.95: 20, 0.99: 100}
"""Quantile → fewest values it is given for."""

ORIGINS = {name: origin.replace("_", " ") for name, (origin, _) in SPANS.items()}
ORIGINS |= dict.fromkeys(FILE_SPANS, "request sent (whole clip)")
"""Latency → its origin in words."""


def latency_summaries(captures: Iterable[Capture], void_limit_s: float) -> dict[str, LatencySummary | None]:
    """Every latency name; None where no capture has its marks."""
    return _summaries(captures, void_limit_s, tuple(ORIGINS), latencies)


def part_summaries(captures: Iterable[Capture], void_limit_s: float) -> dict[str, LatencySummary | None]:
    """The parts of voice to voice; None where no capture has their marks."""
    return _summaries(captures, void_limit_s, PARTS, parts)


def _summaries(
    captures: Iterable[Capture],
    void_limit_s: float,
    names: Sequence[str],
    measure: Callable[[Capture, float], list[Latency]],
) -> dict[str, LatencySummary | None]:
    valid: dict[str, list[Sample]] = {name: [] for name in names}
    void = dict.fromkeys(names, 0)
    for capture in captures:
        if capture.condition is not Condition.AUDIO or not capture.ending.scored:
            continue
        for latency in measure(capture, void_limit_s):
            if latency.void:
                void[latency.name] += 1
            else:
                valid[latency.name].append(Sample(latency.seconds, capture.item_id, capture.repeat))
    return {name: _summary(valid[name], void[name]) if valid[name] or void[name] else None for name in names}


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


def gaps(captures: Iterable[Capture]) -> Gaps | None:
    """How often replies would have run dry while being heard; None where none was heard, or watched for it."""
    heard = [
        capture.reply_audio
        for capture in captures
        if capture.condition is Condition.AUDIO and capture.reply_audio is not None and capture.reply_audio.received_s
    ]
    watched = [(audio.gaps, audio.gaps_s, audio.received_s) for audio in heard if audio.gaps is not None]
    if not watched:
        return None
    return Gaps(
        replies=len(watched),
        with_gaps=sum(count > 0 for count, _, _ in watched),
        seconds=sum(seconds or 0.0 for _, seconds, _ in watched),
        longest_share=max((seconds or 0.0) / ((seconds or 0.0) + received) for _, seconds, received in watched),
    )


def _summary(samples: Sequence[Sample], void: int) -> LatencySummary:
    values = [sample.value for sample in samples]
    p50, p90, p95, p99 = (
        float(np.quantile(values, q)) if len(values) >= smallest else None for q, smallest in SMALLEST_N.items()
    )
    lo, hi, method = median_interval(samples)
    return LatencySummary(p50, p90, p95, p99, len(values), void, lo, hi, method)
