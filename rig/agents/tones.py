"""Keypad digits in a recording. NumPy, pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]

_FRAME_S = 0.04
_HOP_S = 0.02
_LEAST_DBFS = -55.0
# ITU-T Q.23.
_ROWS_HZ = (697.0, 770.0, 852.0, 941.0)
_COLUMNS_HZ = (1209.0, 1336.0, 1477.0, 1633.0)
_KEY_SHARE = 0.55


def find(samples: Samples, rate_hz: int) -> dict[str, float]:
    """`keypad_digits`: how many keypad digits are heard."""
    width, hop = round(_FRAME_S * rate_hz), round(_HOP_S * rate_hz)
    if samples.size < 4 * width:
        return {"keypad_digits": 0.0}
    frames = np.lib.stride_tricks.sliding_window_view(samples, width)[::hop]
    size = 4 * width
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(width), size, axis=1)))
    hertz = np.asarray(np.fft.rfftfreq(size, 1.0 / rate_hz), dtype=np.float64)
    loud = 10.0 * np.log10(np.mean(np.square(frames), axis=1) + 1e-12) > _LEAST_DBFS
    return {"keypad_digits": float(sum(stop - start >= 2 for start, stop in _runs(_keys(power, hertz) & loud)))}


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
