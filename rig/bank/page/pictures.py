"""Spectrograms as JPEG: 0 to 8 kHz from bottom to top, the clip's time from left to right, a line where speech ends."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

HIGHEST_HZ = 8000.0
HEIGHT, WIDTH = 120, 720
_WINDOW_S = 0.02
_RANGE_DB = 70.0
_MOST_SAMPLES = 200 * 48_000
"""Of a clip; longer ones get no picture."""


def spectrogram_jpeg(path: Path, speech_end_s: float | None) -> bytes | None:
    """The picture of an audio file; None where it is too long or not to be read."""
    from matplotlib.image import imsave

    try:
        with soundfile.SoundFile(path) as file:
            if file.frames > _MOST_SAMPLES:
                return None
            samples, rate_hz = file.read(dtype="float64", always_2d=True).mean(axis=1), file.samplerate
    except (OSError, soundfile.LibsndfileError):
        return None
    picture = levels(samples, rate_hz)
    if speech_end_s is not None and samples.size:
        picture[:, min(WIDTH - 1, round(speech_end_s * rate_hz / samples.size * WIDTH))] = 1.0
    buffer = io.BytesIO()
    quality = {"quality": 72}
    imsave(buffer, picture, cmap="magma", vmin=0.0, vmax=1.0, format="jpg", origin="lower", pil_kwargs=quality)
    return buffer.getvalue()


def levels(samples: NDArray[np.float64], rate_hz: int) -> NDArray[np.float64]:
    """`HEIGHT` × `WIDTH` levels, 0 for 70 dB below the loudest or less, 1 for the loudest; row 0 is the lowest."""
    width = round(_WINDOW_S * rate_hz)
    padded = np.pad(samples, (width // 2, width))
    starts = np.linspace(0, samples.size, WIDTH, endpoint=False).astype(int)
    frames = padded[starts[:, None] + np.arange(width)] * np.hanning(width)
    # Padded in time, so that the rows of the picture are not coarser than its height.
    power = np.square(np.abs(np.fft.rfft(frames, 4 * width)))
    frequencies_hz = np.fft.rfftfreq(4 * width, 1 / rate_hz)
    rows = np.searchsorted(frequencies_hz, np.linspace(0.0, min(HIGHEST_HZ, rate_hz / 2), HEIGHT, endpoint=False))
    decibels = 10 * np.log10(power[:, rows].T + 1e-12)
    return np.asarray(np.clip((decibels - decibels.max() + _RANGE_DB) / _RANGE_DB, 0.0, 1.0))
