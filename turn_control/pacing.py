"""Pacing as arithmetic: when each piece of a caller's turn is due, and how late it left. Pure; reads no clock."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from captures.capture import LoopLag, Pacing

_NS_PER_MS = 1_000_000
_NS_PER_S = 1_000_000_000


def chunk_ns(chunk_ms: int, pace: float) -> int:
    """Nanoseconds between two chunks of `chunk_ms` at `pace` (1.0 is real time); 0 at pace 0: all are due at once."""
    return round(chunk_ms * _NS_PER_MS / pace) if pace else 0


def audio_ns(samples: int, rate_hz: int, pace: float = 1.0) -> int:
    """Nanoseconds that `samples` last at `pace`, rounded up, so that nothing timed by it is early; 0 at pace 0."""
    if not pace:
        return 0
    exact = -(-samples * _NS_PER_S // rate_hz)
    return exact if pace == 1.0 else math.ceil(exact / pace)


def padding_ms(samples: int, rate_hz: int, min_commit_s: float) -> int:
    """Whole milliseconds of silence that bring a clip up to the shortest audio that may be committed."""
    missing_samples = round(min_commit_s * rate_hz) - samples
    return max(0, -(-missing_samples * 1000 // rate_hz))


def pieces_ms(duration_ms: int, chunk_ms: int) -> list[int]:
    """`duration_ms` cut into pieces of `chunk_ms`; the last may be shorter."""
    whole, rest = divmod(duration_ms, chunk_ms)
    return [chunk_ms] * whole + [rest] * (rest > 0)


def next_silence_due_ns(due_ns: int, sent_ns: int, step_ns: int) -> int:
    """When the silence after one that was due at `due_ns` and left at `sent_ns` is due.

    Late speech is caught up at once, since all of it was said. Late silence is not: two silences at once would
    shorten the peer's endpointing. A lateness below one step makes no two at once, and leaves the schedule alone.
    """
    late_ns = sent_ns - due_ns
    return due_ns + step_ns + (late_ns if late_ns >= step_ns else 0)


def percentile_ns(ordered: Sequence[int], share: float) -> int:
    """Nearest-rank percentile of ascending values, 0 < `share` ≤ 1; 0 when there are none."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0


class Lateness:
    """Collects how late the pieces of one turn left, and sums it up."""

    def __init__(self) -> None:
        self.each_ns = array("q")
        """Sent minus due of every paced piece, in order; the first piece of a turn is the origin and counts as 0."""
        self.last_chunk_ns = 0
        """Of the clip's last piece."""
        self.commit_ns: int | None = None

    def pacing(
        self,
        *,
        pace: float,
        chunk_ms: int,
        padded_s: float = 0.0,
        trailing_silence_s: float = 0.0,
        loop_lags: tuple[LoopLag, ...] = (),
    ) -> Pacing:
        """The proof of our timing. With no paced piece (text, file mode) `chunks` is 0 and no lateness was measured."""
        ordered = sorted(self.each_ns)
        return Pacing(
            pace=pace,
            chunk_ms=chunk_ms,
            chunks=len(ordered),
            lateness_p50_ns=percentile_ns(ordered, 0.50),
            lateness_p99_ns=percentile_ns(ordered, 0.99),
            lateness_max_ns=percentile_ns(ordered, 1.0),
            last_chunk_ns=self.last_chunk_ns,
            commit_ns=self.commit_ns,
            padded_s=padded_s,
            trailing_silence_s=trailing_silence_s,
            loop_lags=loop_lags,
        )
