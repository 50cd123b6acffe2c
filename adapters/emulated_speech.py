"""Speech of an emulated agent at the rate that a client's session asked for. Not for measurements."""

from __future__ import annotations

import numpy as np


def at_rate(pcm: bytes, rate_hz: int, wanted_hz: int) -> bytes:
    """PCM16 mono at another rate, by straight lines between samples: no filter, good enough to be heard."""
    if rate_hz == wanted_hz or not pcm:
        return pcm
    samples = np.frombuffer(pcm, "<i2")
    at = np.arange(len(samples) * wanted_hz // rate_hz) * (rate_hz / wanted_hz)
    return bytes(np.interp(at, np.arange(len(samples)), samples).astype("<i2").tobytes())
