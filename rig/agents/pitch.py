"""Pitch of voiced speech over time, and what its movement tells. NumPy, pure.

Normalised autocorrelation per frame (as in Boersma 1993: the window's own autocorrelation divided out), at 8 kHz. The
track is of the strongest voice only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]

LOWEST_HZ = 75.0
HIGHEST_HZ = 450.0
_FRAME_S = 0.04
_VOICED = 0.55
"""Least height of the autocorrelation's peak for a voiced frame."""
_OCTAVE_COST = 0.03
_LEAST_RUN_S = 0.08
_OTHER_VOICE_CENTS = 450.0
_OTHER_VOICE_DB = 5.0


@dataclass(frozen=True, slots=True)
class Track:
    """Pitch per hop; `f0_hz` is 0 where unvoiced."""

    f0_hz: Samples
    strength: Samples
    hop_s: float


def track(samples: Samples, rate_hz: int, hop_s: float) -> Track:
    """Pitch per hop of mono samples."""
    low_rate_hz = 8000
    low = _decimated(samples, rate_hz, low_rate_hz)
    width, hop = round(_FRAME_S * low_rate_hz), round(hop_s * low_rate_hz)
    if low.size < width:
        return Track(np.zeros(0), np.zeros(0), hop_s)
    frames = np.lib.stride_tricks.sliding_window_view(low, width)[::hop]
    window = np.hanning(width + 2)[1:-1]
    size = 1024
    own = np.fft.irfft(np.square(np.abs(np.fft.rfft(window, size))))[:width]
    shaped = (frames - frames.mean(axis=1, keepdims=True)) * window
    lags = np.fft.irfft(np.square(np.abs(np.fft.rfft(shaped, size, axis=1))), axis=1)[:, :width]
    shortest, longest = int(low_rate_hz / HIGHEST_HZ), int(low_rate_hz / LOWEST_HZ)
    normal = lags / (lags[:, :1] + 1e-9) / (own / own[0])
    area = normal[:, shortest : longest + 1]
    peaks = np.zeros_like(area)
    middle = area[:, 1:-1]
    peaks[:, 1:-1] = np.where((middle >= area[:, :-2]) & (middle > area[:, 2:]), middle, 0.0)
    cost = _OCTAVE_COST * np.log2(np.arange(shortest, longest + 1) / shortest)
    best = np.argmax(peaks - cost, axis=1)
    rows = np.arange(area.shape[0])
    strength = np.clip(peaks[rows, best], 0.0, 1.0)
    f0 = low_rate_hz / (shortest + best + _parabola(area, rows, best))
    return Track(np.where(strength > _VOICED, f0, 0.0), strength, hop_s)


def _parabola(area: Samples, rows: NDArray[np.intp], best: NDArray[np.intp]) -> Samples:
    inner = np.clip(best, 1, area.shape[1] - 2)
    left, top, right = area[rows, inner - 1], area[rows, inner], area[rows, inner + 1]
    curve = left - 2 * top + right
    return np.asarray(np.clip(np.where(np.abs(curve) > 1e-9, 0.5 * (left - right) / curve, 0.0), -0.5, 0.5))


def _decimated(samples: Samples, rate_hz: int, low_rate_hz: int) -> Samples:
    """Samples at the low rate: cut in the spectrum, then read between samples."""
    spectrum = np.fft.rfft(samples)
    hertz = np.fft.rfftfreq(samples.size, 1.0 / rate_hz)
    spectrum[hertz > 0.45 * low_rate_hz] = 0
    band = np.fft.irfft(spectrum, samples.size)
    at = np.arange(int(samples.size * low_rate_hz / rate_hz)) * (rate_hz / low_rate_hz)
    return np.asarray(np.interp(at, np.arange(samples.size), band))


def measures(found: Track, levels: Samples, sounding: NDArray[np.bool_]) -> dict[str, float]:
    """Median pitch, share of voiced frames, tremor, slow swing, and seconds in which another voice is audible.

    `levels` (dBFS) and `sounding` are per hop, as long as the track or a little longer.
    """
    size = min(found.f0_hz.size, levels.size)
    f0, levels, sounding = found.f0_hz[:size], levels[:size], sounding[:size]
    voiced = (f0 > 0) & sounding
    share = int(np.count_nonzero(voiced)) / max(1, int(np.count_nonzero(sounding)))
    if np.count_nonzero(voiced) < 10:
        zeros = dict.fromkeys(("tremor_cents", "swing_cents", "other_voice_s"), 0.0)
        return {"f0_hz": 0.0, "voiced_share": share, **zeros}
    median = float(np.median(f0[voiced]))
    cents = np.where(voiced, 1200.0 * np.log2(np.maximum(f0, 1.0) / median), np.nan)
    runs = _runs(voiced, round(_LEAST_RUN_S / found.hop_s))
    return {
        "f0_hz": median,
        "voiced_share": share,
        "tremor_cents": _tremor(cents, runs, found.hop_s),
        "swing_cents": _swing(cents),
        "other_voice_s": _other_voice_s(cents, levels, runs, found.hop_s),
    }


def _runs(flags: NDArray[np.bool_], least: int) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    pairs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    return [(start, stop) for start, stop in pairs if stop - start >= least]


def _tremor(cents: Samples, runs: list[tuple[int, int]], hop_s: float) -> float:
    """RMS of the pitch's movement faster than about 4 Hz, within voiced runs of 0.2 s and more."""
    width = round(0.2 / hop_s)
    moves = []
    for start, stop in runs:
        if stop - start < width:
            continue
        piece = cents[start + 2 : stop - 2]
        if np.max(np.abs(np.diff(piece)), initial=0.0) > 200.0:
            continue
        at = np.linspace(-1.0, 1.0, piece.size)
        moves.append(piece - np.polyval(np.polyfit(at, piece, 2), at))
    return float(np.sqrt(np.mean(np.square(np.concatenate(moves))))) if moves else 0.0


def _swing(cents: Samples) -> float:
    """Half the distance between the 10th and 90th percentile of the pitch, cents."""
    known = cents[~np.isnan(cents)]
    return float(np.percentile(known, 90) - np.percentile(known, 10)) / 2.0


def _other_voice_s(cents: Samples, levels: Samples, runs: list[tuple[int, int]], hop_s: float) -> float:
    """Seconds of voiced runs that are both weaker than the caller and far from the caller's pitch."""
    voiced_level = float(np.median(levels[~np.isnan(cents)]))
    frames = 0
    for start, stop in runs:
        far = abs(float(np.median(cents[start:stop]))) > _OTHER_VOICE_CENTS
        if far and float(np.mean(levels[start:stop])) < voiced_level - _OTHER_VOICE_DB:
            frames += stop - start
    return frames * hop_s
