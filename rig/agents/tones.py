"""Tones in a recording: repeated beeps of one pitch, and keypad digits. NumPy, pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]

_FRAME_S = 0.04
_HOP_S = 0.02
_LOWEST_HZ = 880.0
"""Below, a harmonic inside a vowel's first formant looks like a tone."""
_HIGHEST_HZ = 3900.0
_PEAK_SHARE = 0.35
"""A tone holds at least this share of its frame's energy between 500 and 4000 Hz, within 50 Hz."""
_LEAST_DBFS = -55.0
_STEADY_HZ = 15.0
_LEAST_BEEP_S = 0.06
_LONGEST_BEEP_S = 1.5
# ITU-T Q.23.
_ROWS_HZ = (697.0, 770.0, 852.0, 941.0)
_COLUMNS_HZ = (1209.0, 1336.0, 1477.0, 1633.0)
_KEY_SHARE = 0.55


def find(samples: Samples, rate_hz: int) -> dict[str, float]:
    """`tone_beeps`: beeps of one common pitch; `tone_hz`: that pitch; `keypad_digits`: keypad digits heard."""
    width, hop = round(_FRAME_S * rate_hz), round(_HOP_S * rate_hz)
    nothing = {"tone_beeps": 0.0, "tone_hz": 0.0, "keypad_digits": 0.0}
    if samples.size < 4 * width:
        return nothing
    frames = np.lib.stride_tricks.sliding_window_view(samples, width)[::hop]
    size = 4 * width
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(width), size, axis=1)))
    hertz = np.asarray(np.fft.rfftfreq(size, 1.0 / rate_hz), dtype=np.float64)
    loud = 10.0 * np.log10(np.mean(np.square(frames), axis=1) + 1e-12) > _LEAST_DBFS
    keys = _keys(power, hertz) & loud
    pitch, share = _peaks(power, hertz)
    beeps_hz = [
        float(np.median(pitch[start:stop]))
        for start, stop in _steady_runs(pitch, (share > _PEAK_SHARE) & loud & ~keys)
        if _LEAST_BEEP_S <= (stop - start - 1) * _HOP_S + _FRAME_S <= _LONGEST_BEEP_S
        and (stop - start) * _HOP_S >= 0.05
    ]
    common = max(beeps_hz, key=lambda hz: sum(abs(hz - other) < 2 * _STEADY_HZ for other in beeps_hz), default=0.0)
    beeps = sum(abs(common - other) < 2 * _STEADY_HZ for other in beeps_hz)
    digits = sum(stop - start >= 2 for start, stop in _runs(keys))
    return {"tone_beeps": float(beeps), "tone_hz": common, "keypad_digits": float(digits)}


def _peaks(power: Samples, hertz: Samples) -> tuple[Samples, Samples]:
    """Per frame, the strongest pitch and its share of the energy."""
    band = (hertz >= 500) & (hertz <= 4000)
    inside = power[:, band]
    at = hertz[band]
    step = float(at[1] - at[0])
    reach = max(1, round(50.0 / step))
    sums = np.cumsum(np.pad(inside, ((0, 0), (reach + 1, reach))), axis=1)
    around = sums[:, 2 * reach + 1 :] - sums[:, : -2 * reach - 1]
    best = np.argmax(inside, axis=1)
    rows = np.arange(inside.shape[0])
    share = around[rows, best] / (np.sum(inside, axis=1) + 1e-12)
    pitch = at[best]
    return pitch, np.where((pitch > _LOWEST_HZ) & (pitch < _HIGHEST_HZ), share, 0.0)


def _keys(power: Samples, hertz: Samples) -> NDArray[np.bool_]:
    """Frames in which one row and one column frequency of a keypad hold most of the energy, at similar levels."""
    total = np.sum(power[:, (hertz >= 300) & (hertz <= 4000)], axis=1) + 1e-12

    def strongest(frequencies_hz: tuple[float, ...]) -> Samples:
        return np.asarray(
            np.max([np.sum(power[:, np.abs(hertz - hz) < 30.0], axis=1) for hz in frequencies_hz], axis=0)
        )

    row, column = strongest(_ROWS_HZ), strongest(_COLUMNS_HZ)
    even = np.minimum(row, column) > 0.15 * np.maximum(row, column)
    return np.asarray((row + column > _KEY_SHARE * total) & even)


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _steady_runs(pitch: Samples, flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Runs of flagged frames within which the pitch does not move."""
    runs: list[tuple[int, int]] = []
    start = -1
    for at in range(flags.size + 1):
        inside = at < flags.size and bool(flags[at])
        if start >= 0 and (not inside or abs(float(pitch[at] - pitch[start])) > _STEADY_HZ):
            runs.append((start, at))
            start = -1
        if start < 0 and inside:
            start = at
    return runs
