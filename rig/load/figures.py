"""What one level of a load showed, from the captures of its calls. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from captures.capture import Capture, Mark
from captures.latency import latencies

SMALLEST_N = {"p50": 1, "p95": 20}
SATURATED_CPU = 0.85
SATURATED_VOID = 0.05


class _Figures(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Spread(_Figures):
    """Seconds; None where there are too few values."""

    p50: float | None
    p95: float | None
    n: int


class OwnState(_Figures):
    """The harness itself at this level."""

    chunk_p99_ms: float | None
    """Lateness of our chunks: the 99th percentile over calls of each call's own p99."""
    void_share: float
    """Of calls: our timing spoilt a latency."""
    loop_lag_ms: float
    """Largest lag of the event loop."""
    cpu_share: float
    """Processor time of this process over wall time; 1 is one core."""
    backlogged: int
    """Calls whose audio the operating system had not taken by the commit."""

    @property
    def saturated(self) -> bool:
        """The limit seen here is ours, not the target's."""
        return self.cpu_share > SATURATED_CPU or self.void_share > SATURATED_VOID


class LoadLevel(_Figures):
    """One number of calls at once."""

    concurrency: int
    seconds: float
    calls: int
    endings: dict[str, int]
    errors: dict[str, int]
    """Infrastructure and configuration errors by code."""
    error_share: float
    latency: dict[str, Spread]
    """By name; without void values. `set_up`: connecting until the settings were confirmed."""
    own: OwnState
    spent: float | None
    """US dollars; None without a price."""
    stopped: str | None
    """Why it ended before its time."""


def spread(values: Sequence[float]) -> Spread:
    """Percentiles by linear interpolation."""
    p50, p95 = (
        float(np.quantile(values, share)) if len(values) >= SMALLEST_N[name] else None
        for name, share in (("p50", 0.50), ("p95", 0.95))
    )
    return Spread(p50=p50, p95=p95, n=len(values))


def level_of(
    concurrency: int,
    seconds: float,
    captures: Sequence[Capture],
    *,
    void_limit_s: float,
    loop_lag_ns: int,
    cpu_share: float,
    spent: float | None,
    stopped: str | None,
) -> LoadLevel:
    """The figures of one level."""
    valid: dict[str, list[float]] = {}
    void = 0
    for capture in captures:
        if not capture.ending.scored:
            continue
        spoilt = False
        for latency in latencies(capture, void_limit_s):
            spoilt |= bool(latency.void)
            if not latency.void:
                valid.setdefault(latency.name, []).append(latency.seconds)
        void += spoilt
        if Mark.CONNECT_START in capture.marks and Mark.SESSION_READY in capture.marks:
            ready_ns = capture.marks[Mark.SESSION_READY] - capture.marks[Mark.CONNECT_START]
            valid.setdefault("set_up", []).append(ready_ns / 1e9)
    failed = [capture for capture in captures if capture.error is not None and not capture.ending.scored]
    own = OwnState(
        chunk_p99_ms=_p99_ms(captures),
        void_share=void / len(captures) if captures else 0.0,
        loop_lag_ms=loop_lag_ns / 1e6,
        cpu_share=cpu_share,
        backlogged=sum(any("still unsent" in warning for warning in capture.warnings) for capture in captures),
    )
    return LoadLevel(
        concurrency=concurrency,
        seconds=seconds,
        calls=len(captures),
        endings=dict(Counter(str(capture.ending) for capture in captures)),
        errors=dict(Counter(capture.error.code for capture in failed if capture.error is not None)),
        error_share=len(failed) / len(captures) if captures else 0.0,
        latency={name: spread(values) for name, values in sorted(valid.items())},
        own=own,
        spent=spent,
        stopped=stopped,
    )


def _p99_ms(captures: Iterable[Capture]) -> float | None:
    each = sorted(
        capture.pacing.lateness_p99_ns for capture in captures if capture.pacing is not None and capture.pacing.chunks
    )
    return each[max(0, math.ceil(0.99 * len(each)) - 1)] / 1e6 if each else None
