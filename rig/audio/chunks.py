"""Where a clip is cut into the chunks that are sent: arithmetic on sample counts, no audio and no clock."""

from __future__ import annotations


def chunk_bounds(n_samples: int, rate_hz: int, chunk_ms: int) -> list[tuple[int, int]]:
    """(start, end) of each chunk in samples, in order, without gap or overlap; the last may be short.

    Chunk k starts at the sample nearest to k × `chunk_ms` (halves go up), so that where a chunk is not a whole number
    of samples (44.1 kHz, 15 ms) sizes alternate and the pace stays true for ever. Raises ValueError when a chunk
    would hold less than one sample or `n_samples` is negative.
    """
    if n_samples < 0:
        raise ValueError(f"n_samples is {n_samples}: a clip cannot be shorter than nothing")
    if rate_hz * chunk_ms < 1000:
        raise ValueError(f"{chunk_ms} ms at {rate_hz} Hz is less than one sample: use longer chunks")
    bounds: list[tuple[int, int]] = []
    start = 0
    while start < n_samples:
        end = min(n_samples, (2 * (len(bounds) + 1) * rate_hz * chunk_ms + 1000) // 2000)
        bounds.append((start, end))
        start = end
    return bounds
