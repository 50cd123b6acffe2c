"""How alike two clips are in the time-frequency plane: is a delivery the same speech, is a scene only added?

Log-mel spectra, 24 bands from 100 Hz to 8 kHz, every 5 ms as the vocoder's frames are. Pure functions of samples.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from rig.bank.rendering.levels import RATE_HZ, Samples
from rig.bank.rendering.vocoder import FRAME_S

BANDS = 24
_WIDTH = 600
_FLOOR_DB = -80.0
_QUIET_DB = 30.0
"""Cells this far below a clip's loudest are not heard."""
_LOWEST_HZ, _HIGHEST_HZ = 100.0, 8000.0


@cache
def _filters() -> Samples:
    """Triangles on the mel scale, bins × bands."""

    def mel(hertz: float) -> float:
        return float(1127.0 * np.log1p(hertz / 700.0))

    edges_hz = 700.0 * np.expm1(np.linspace(mel(_LOWEST_HZ), mel(_HIGHEST_HZ), BANDS + 2) / 1127.0)
    frequencies_hz = np.fft.rfftfreq(_WIDTH, 1 / RATE_HZ)[:, None]
    low, middle, high = edges_hz[:-2], edges_hz[1:-1], edges_hz[2:]
    rising, falling = (frequencies_hz - low) / (middle - low), (high - frequencies_hz) / (high - middle)
    return np.asarray(np.clip(np.minimum(rising, falling), 0.0, None))


def log_mel(samples: Samples) -> Samples:
    """Level of each band in each frame of 5 ms, dB, frames × 24; frames are centred."""
    hop = round(FRAME_S * RATE_HZ)
    padded = np.pad(samples, (_WIDTH // 2, _WIDTH // 2))
    views = np.lib.stride_tricks.sliding_window_view(padded, _WIDTH)[::hop]
    power = np.square(np.abs(np.fft.rfft(views * np.hanning(_WIDTH)))) @ _filters() / _WIDTH
    return np.asarray(10 * np.log10(np.maximum(power, 10 ** (_FLOOR_DB / 10))))


def likeness(neutral: Samples, spoken: Samples, source_frames: Samples) -> float:
    """Correlation of the spectra of a delivery and of the neutral frames it came from, -1 to 1.

    Each band's mean is taken out, so that level and tilt do not count; inserted pauses and silences do not either.
    """
    before, after = log_mel(neutral), log_mel(spoken)
    size = min(source_frames.size, len(after))
    frames = np.minimum(np.round(source_frames[:size]).astype(int), len(before) - 1)
    before, after = before[np.maximum(frames, 0)], after[:size]
    heard = (frames >= 0) & (before.max(axis=1) > before.max() - _QUIET_DB)
    return _correlation(before[heard] - before[heard].mean(axis=0), after[heard] - after[heard].mean(axis=0))


def motion_ratio(neutral: Samples, spoken: Samples, source_frames: Samples) -> float:
    """How much the spectrum moves along the source's frames, against the neutral voice: below 1 where blurred."""
    before, after = log_mel(neutral), log_mel(spoken)
    order = np.flatnonzero(source_frames[: len(after)] >= 0)
    frames = np.arange(0, min(len(before), int(source_frames.max()) + 1), 4)
    nearest = order[np.minimum(np.searchsorted(source_frames[order], frames), order.size - 1)]
    heard = before[frames].max(axis=1) > before.max() - _QUIET_DB
    both = heard[1:] & heard[:-1]
    moves = [np.abs(np.diff(rows, axis=0))[both].mean() for rows in (after[nearest], before[frames])]
    return float(moves[0] / max(moves[1], 1e-9))


def audible_share(stem: Samples, added: Samples) -> float:
    """Share of the time-frequency cells of an added sound in which it stands 3 dB or more above the speech."""
    speech, sound = log_mel(np.pad(stem, (0, max(0, added.size - stem.size)))), log_mel(added)
    cells = sound > max(sound.max() - _QUIET_DB, _FLOOR_DB + 10)
    return float(np.mean(sound[cells] > speech[cells] + 3.0)) if cells.any() else 0.0


def outside_likeness(stem: Samples, mix: Samples, added: Samples) -> float:
    """Correlation of a scene's clip with the same speech without it, over the cells that the sound leaves free.

    Free are cells of audible speech that lie 10 dB or more above the added sound. 0 where the sound leaves none.
    """
    size = min(stem.size, mix.size)
    speech, both, sound = (log_mel(part[:size]) for part in (stem, mix, added))
    free = (speech > speech.max() - 2 * _QUIET_DB) & (speech > sound + 10.0)
    return _correlation(speech[free], both[free]) if free.sum() > 2 * BANDS else 0.0


def formant_ratio(neutral: Samples, spoken: Samples) -> float:
    """By how much the long-term spectrum has moved along a logarithmic frequency axis, 200 Hz to 6 kHz."""
    axis_hz = np.geomspace(200.0, 6000.0, 340)  # 1 % a step

    def shape(samples: Samples) -> Samples:
        views = np.lib.stride_tricks.sliding_window_view(samples, 1024)[::256]
        power = np.square(np.abs(np.fft.rfft(views * np.hanning(1024)))).mean(axis=0)
        levels = np.interp(axis_hz, np.fft.rfftfreq(1024, 1 / RATE_HZ), 10 * np.log10(power + 1e-12))
        levels = np.convolve(levels, np.hanning(25) / np.hanning(25).sum(), mode="same")
        slope = np.polyval(np.polyfit(np.log(axis_hz), levels, 1), np.log(axis_hz))
        return np.asarray(levels - slope)[12:-12]

    before, after = shape(neutral), shape(spoken)
    shifts = range(-30, 31)
    fits = [_correlation(before[30:-30], after[30 + shift : after.size - 30 + shift]) for shift in shifts]
    return float((6000.0 / 200.0) ** (shifts[int(np.argmax(fits))] / 339))


def _correlation(first: Samples, second: Samples) -> float:
    first, second = first.ravel() - first.mean(), second.ravel() - second.mean()
    return float(np.dot(first, second) / max(np.linalg.norm(first) * np.linalg.norm(second), 1e-12))
