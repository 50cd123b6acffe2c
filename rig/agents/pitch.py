"""Pitch of voiced speech over time, how far it moves, and whether there are two. NumPy, pure.

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
_REST_SHARE = 0.1
_SECOND_VOICED = 0.6
_LEAST_RUN_S = 0.04
_JUMP_CENTS = 120.0
_FARTHEST_CENTS = 900.0
_LEAST_VOICED_FRAMES = 10


@dataclass(frozen=True, slots=True)
class Track:
    """Pitch per hop; `f0_hz` is 0 where unvoiced."""

    f0_hz: Samples
    strength: Samples
    second: NDArray[np.bool_]
    """A second pitch is there at the same time."""
    hop_s: float


def track(samples: Samples, rate_hz: int, hop_s: float) -> Track:
    """Pitch per hop of mono samples."""
    low_rate_hz = 8000
    low = _decimated(samples, rate_hz, low_rate_hz)
    width, hop = round(_FRAME_S * low_rate_hz), round(hop_s * low_rate_hz)
    if low.size < width:
        return Track(np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool), hop_s)
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
    f0 = np.where(strength > _VOICED, f0, 0.0)
    return Track(f0, strength, _second_pitch(low, f0, low_rate_hz, hop_s), hop_s)


def _second_pitch(samples: Samples, f0_hz: Samples, rate_hz: int, hop_s: float) -> NDArray[np.bool_]:
    """Frames whose remainder, once the main pitch is combed out, has a clear pitch of its own."""
    hop, width = round(hop_s * rate_hz), round(_FRAME_S * rate_hz)
    longest = int(rate_hz / LOWEST_HZ)
    found = np.zeros(f0_hz.size, dtype=bool)
    window = np.hanning(width + 2)[1:-1]
    own = np.fft.irfft(np.square(np.abs(np.fft.rfft(window, 1024))))[:width]
    for at in np.flatnonzero(f0_hz).tolist():
        period = rate_hz / float(f0_hz[at])
        start = at * hop
        if start < longest + 2:
            continue
        places = start + np.arange(width) - period
        frame = samples[start : start + width]
        whole = np.floor(places).astype(int)
        share = places - whole
        rest = (frame - (samples[whole] * (1 - share) + samples[whole + 1] * share)) * window
        energy = float(np.sum(np.square(rest)))
        if energy < _REST_SHARE * float(np.sum(np.square(frame * window))):
            continue
        lags = np.fft.irfft(np.square(np.abs(np.fft.rfft(rest, 1024))))[:width]
        normal = lags / (lags[0] + 1e-12) / (own / own[0])
        low, high = int(rate_hz / HIGHEST_HZ), longest + 1
        best = low + int(np.argmax(normal[low:high]))
        ratio = max(best / period, period / best)
        unrelated = abs(ratio - round(ratio)) > 0.12
        found[at] = unrelated and normal[best] > _SECOND_VOICED
    return found


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


def measures(found: Track, sounding: NDArray[np.bool_]) -> dict[str, float]:
    """Pitch of the utterance, `sounding` being per hop, as long as the track or a little longer.

    `f0_hz`: median, 0 where nothing is voiced; `range_st`: semitones between its 5th and 95th percentile; `clarity`:
    75th percentile of the pitch's strength over sounding frames (1 for a pure voice, 0 for noise); `voiced_share` of
    sounding frames; `voiced_run_s`: mean length of runs without a jump; `both_voices_s`: how long two pitches sound.
    """
    size = min(found.f0_hz.size, sounding.size)
    f0, sounding = found.f0_hz[:size], sounding[:size]
    voiced = (f0 > 0) & sounding
    result = {
        "f0_hz": 0.0,
        "range_st": 0.0,
        "clarity": float(np.percentile(found.strength[:size][sounding], 75)),
        "voiced_share": float(np.count_nonzero(voiced) / np.count_nonzero(sounding)),
        "voiced_run_s": 0.0,
        "both_voices_s": float(np.count_nonzero(found.second[:size] & sounding)) * found.hop_s,
    }
    if np.count_nonzero(voiced) >= _LEAST_VOICED_FRAMES:
        median = float(np.median(f0[voiced]))
        cents = np.where(voiced, 1200.0 * np.log2(np.maximum(f0, 1.0) / median), 0.0)
        low, high = np.percentile(cents[voiced], (5, 95))
        runs = _smooth_runs(cents, voiced, round(_LEAST_RUN_S / found.hop_s))
        result |= {
            "f0_hz": median,
            "range_st": float(high - low) / 100.0,
            "voiced_run_s": float(np.mean([stop - start for start, stop in runs] or [0])) * found.hop_s,
        }
    return result


def _smooth_runs(cents: Samples, voiced: NDArray[np.bool_], least: int) -> list[tuple[int, int]]:
    """Runs of at least `least` voiced frames without a jump of the pitch, near enough to the median to be trusted."""
    trusted = voiced & (np.abs(cents) < _FARTHEST_CENTS)
    jumps = np.abs(np.diff(cents, prepend=0.0)) > _JUMP_CENTS
    runs: list[tuple[int, int]] = []
    start = -1
    for at in range(trusted.size + 1):
        inside = at < trusted.size and bool(trusted[at])
        if start >= 0 and (not inside or jumps[at]):
            if at - start >= least:
                runs.append((start, at))
            start = -1
        if start < 0 and inside:
            start = at
    return runs
