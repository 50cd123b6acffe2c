"""Loudness, silences and the end of speech, on mono float64 samples in [-1, 1] at `RATE_HZ`.

Pure functions of samples. Not a voice-activity detector: "audible" here means a 30 ms window above a level, which is
right for clean synthetic stems and for nothing else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]

RATE_HZ = 24_000
AUDIBLE_DBFS = -50.0
WINDOW_S = 0.030
SPEECH_RMS_DBFS = -23.0
PEAK_CEILING_DBFS = -1.5
LEAD_IN_S = 0.25
LONGEST_PAUSE_S = 0.35
LEAD_OUT_S = 0.30
_FADE_S = 0.005


def db_to_gain(db: float) -> float:
    """Amplitude factor of `db` decibels."""
    return float(10.0 ** (db / 20.0))


def rms_dbfs(samples: Samples) -> float:
    """RMS level in dB relative to full scale 1.0; -inf for silence or no samples."""
    power = float(np.mean(np.square(samples))) if samples.size else 0.0
    return float(10.0 * np.log10(power)) if power > 0 else float("-inf")


def peak_dbfs(samples: Samples) -> float:
    """Highest absolute sample in dB relative to full scale 1.0."""
    peak = float(np.max(np.abs(samples))) if samples.size else 0.0
    return float(20.0 * np.log10(peak)) if peak > 0 else float("-inf")


def window_levels_db(samples: Samples) -> Samples:
    """Level in dBFS of the 30 ms window that starts at each sample (window mean removed); fewer by one window."""
    width = round(WINDOW_S * RATE_HZ)
    if samples.size < width:
        return np.zeros(0)
    sums = np.concatenate(([0.0], np.cumsum(samples)))
    squares = np.concatenate(([0.0], np.cumsum(np.square(samples))))
    means = (sums[width:] - sums[:-width]) / width
    power = (squares[width:] - squares[:-width]) / width - np.square(means)
    return np.asarray(10.0 * np.log10(np.maximum(power, 1e-12)))


def audible(samples: Samples, threshold_dbfs: float = AUDIBLE_DBFS) -> NDArray[np.bool_]:
    """Per sample: does any 30 ms window above the threshold cover it?"""
    width = round(WINDOW_S * RATE_HZ)
    loud = window_levels_db(samples) > threshold_dbfs
    steps = np.zeros(samples.size + 1, dtype=np.int64)
    starts = np.flatnonzero(loud)
    np.add.at(steps, starts, 1)
    np.add.at(steps, starts + width, -1)
    return np.asarray(np.cumsum(steps)[:-1] > 0)


def speech_end_s(stem: Samples) -> float:
    """Time in seconds just after the last audible sample of a clean stem.

    That is the last sample whose size passes -50 dBFS (offset removed) inside a 30 ms window whose RMS does, so that
    neither a lone spike nor the window's own length moves it. Raises ValueError when nothing is audible.
    """
    loud = np.abs(stem - np.median(stem)) > db_to_gain(AUDIBLE_DBFS)
    heard = np.flatnonzero(audible(stem) & loud)
    if not heard.size:
        raise ValueError("no audible speech in the stem")
    return float(heard[-1] + 1) / RATE_HZ


def speech_rms_dbfs(samples: Samples) -> float:
    """RMS in dBFS over the windows within 30 dB of the loudest one, so that pauses do not count."""
    levels = window_levels_db(samples)
    if not levels.size:
        return float("-inf")
    active = levels[levels > levels.max() - 30.0]
    return float(10.0 * np.log10(np.mean(10.0 ** (active / 10.0))))


def limited(samples: Samples, ceiling_dbfs: float = PEAK_CEILING_DBFS) -> Samples:
    """The same samples with peaks turned down smoothly (5 ms either side), never clipped."""
    ceiling = db_to_gain(ceiling_dbfs)
    gain = np.minimum(1.0, ceiling / np.maximum(np.abs(samples), 1e-9))
    if gain.min(initial=1.0) >= 1.0:
        return samples
    reach = round(_FADE_S * RATE_HZ)
    padded = np.pad(gain, 2 * reach, constant_values=1.0)
    lowest = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).min(axis=1)
    smooth = np.convolve(lowest, np.hanning(2 * reach + 3)[1:-1] / np.hanning(2 * reach + 3)[1:-1].sum(), mode="valid")
    return np.asarray(samples * smooth)


def with_speech_level(samples: Samples, rms_dbfs_wanted: float = SPEECH_RMS_DBFS) -> Samples:
    """Scaled so that speech has this RMS, then limited.

    Raises ValueError on silence.
    """
    level = speech_rms_dbfs(samples)
    if not np.isfinite(level) or level < -90:
        raise ValueError("the synthesiser gave silence")
    return limited(samples * db_to_gain(rms_dbfs_wanted - level))


def tightened(samples: Samples) -> Samples:
    """Lead-in cut or padded to 0.25 s, pauses shortened to at most 0.35 s, lead-out 0.30 s of silence.

    Expects samples at speech level. Cuts fall in the middle of silences and are faded over 5 ms.
    """
    mask = audible(samples)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    fade = round(_FADE_S * RATE_HZ)
    pieces = [np.zeros(round(LEAD_IN_S * RATE_HZ))]
    for index in range(0, edges.size, 2):
        start, stop = int(edges[index]), int(edges[index + 1])
        if index:
            pause = min(start - int(edges[index - 1]), round(LONGEST_PAUSE_S * RATE_HZ))
            pieces.append(np.zeros(pause))
        piece = samples[start:stop].copy()
        ramp = np.linspace(0.0, 1.0, min(fade, piece.size))
        piece[: ramp.size] *= ramp
        piece[piece.size - ramp.size :] *= ramp[::-1]
        pieces.append(piece)
    pieces.append(np.zeros(round(LEAD_OUT_S * RATE_HZ)))
    return np.concatenate(pieces)


def to_pcm16(samples: Samples) -> NDArray[np.int16]:
    """Rounded to 16-bit, full scale 32768; raises ValueError rather than clip."""
    scaled = np.round(samples * 32768.0)
    if samples.size and (scaled.max() > 32767 or scaled.min() < -32768):
        raise ValueError("samples pass full scale")
    return scaled.astype(np.int16)


def as_stored(samples: Samples) -> Samples:
    """What a reader of the stored clip gets: the samples after rounding to 16-bit."""
    return to_pcm16(samples) / 32768.0
