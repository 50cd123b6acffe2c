"""Cuts a clip into the pieces that dialects make frames of. Not here: when a piece is due (`turn_control.pacing`)."""

from __future__ import annotations

from collections.abc import Iterator


def samples_in(rate_hz: int, duration_ms: int) -> int:
    """Whole samples in a time, halves rounded up."""
    return (rate_hz * duration_ms + 500) // 1000


def pieces(pcm: bytes, rate_hz: int, chunk_ms: int) -> Iterator[bytes]:
    """PCM16 mono in pieces of `chunk_ms`; piece k begins at sample `round(k * rate_hz * chunk_ms / 1000)`.

    Raises:
        ValueError: half a sample, or a chunk length below 1 ms.
    """
    if len(pcm) % 2 or chunk_ms < 1:
        raise ValueError("needs whole 16-bit samples and chunks of at least 1 ms")
    samples, start, k = len(pcm) // 2, 0, 0
    while start < samples:
        k += 1
        end = min(samples, samples_in(rate_hz, k * chunk_ms))
        yield pcm[2 * start : 2 * end]
        start = end
