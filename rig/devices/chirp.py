"""Where known chirps lie in a recording: the delay of a loop of devices. Pure.

A logarithmic sweep is matched by its normalised cross-correlation (Farina, AES 108, 2000, for the sweep; the matched
filter is textbook). A match below `FOUND` is none: a delay is never made up from noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

CHIRP_S: Final = 0.100
LOW_HZ: Final = 300.0
HIGH_HZ: Final = 3_400.0
"""The band of a telephone, so that softphones pass it."""
FOUND: Final = 0.5
"""Least normalised correlation (1 is a perfect copy)."""

Samples = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class DeviceDelay:
    """The delay over several chirps, seconds."""

    median_s: float
    uncertainty_s: float
    """Half the range of all chirps found, and half a block at least."""
    found: int
    played: int


def chirp(rate_hz: int) -> bytes:
    """The sweep as PCM16 mono, at half of full scale, with soft ends."""
    t = np.arange(round(CHIRP_S * rate_hz)) / rate_hz
    k = np.log(HIGH_HZ / LOW_HZ) / CHIRP_S
    wave = np.sin(2 * np.pi * LOW_HZ * (np.exp(k * t) - 1) / k)
    edge = round(0.005 * rate_hz)
    ramp = np.minimum(1.0, np.minimum(np.arange(len(t)), np.arange(len(t))[::-1]) / edge)
    pcm: bytes = (wave * ramp * 16_384).astype("<i2").tobytes()
    return pcm


def found_at(recording: bytes, rate_hz: int) -> float | None:
    """Seconds from the start of `recording` (PCM16 mono) to where a chirp begins; None when there is none."""
    heard = np.frombuffer(recording, "<i2").astype(np.float64)
    sought = np.frombuffer(chirp(rate_hz), "<i2").astype(np.float64)
    if len(heard) < len(sought):
        return None
    size = 1 << (len(heard) + len(sought) - 1).bit_length()
    matched: Samples = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(sought, size)), size)
    matched = matched[: len(heard) - len(sought) + 1]
    power = np.concatenate([[0.0], np.cumsum(heard**2)])
    norm = np.sqrt((power[len(sought) :] - power[: -len(sought)]) * float(sought @ sought))
    # Where next to nothing is heard, rounding alone would correlate.
    quiet = norm < float(sought @ sought) * 1e-4
    score = np.where(quiet, 0.0, np.abs(matched) / np.where(quiet, 1.0, norm))
    at = int(score.argmax())
    return at / rate_hz if score[at] >= FOUND else None


def delay(found_s: list[float], played: int, block_s: float) -> DeviceDelay | None:
    """The delay of the chirps that were found; None when fewer than half were."""
    if 2 * len(found_s) < played or not found_s:
        return None
    spread = (max(found_s) - min(found_s)) / 2
    return DeviceDelay(float(np.median(found_s)), max(spread, block_s / 2), len(found_s), played)
