"""Acoustic tags of one utterance: what is audible besides the words. NumPy, pure, whole utterance at once.

Measures here and in `pitch`, `tones` and `alarms`; which of them make a tag, and from where on: `rig.agents.tagging`. A
tag says that measures passed their limits, and nothing about the caller's mind. Not a trained classifier: up to three
limits for each tag, fitted on half of the demo bank's synthetic items (`rig.agents.evaluation`), so what the agents
reach on that bank says little about recordings of people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from rig.agents import alarms, pitch, tones
from rig.agents.tagging import AUDIBLE, confidences

Samples = NDArray[np.float64]

FRAME_S = 0.025
HOP_S = 0.010
_SPEECH_RANGE_DB = 30.0
"""Frames within this of the loudest count as sound."""
_SOFT_DB = (22.0, 50.0)
"""So far below the loudest frame lie breaths and the noise of a slack voice."""
_NOISE_FLATNESS = 0.30
_CUT_LEVEL_DB = 12.0
"""A cut ends within this of the loud parts' level."""
_BANDS = 16
_BANDS_HZ = (200.0, 3400.0)
_CHANGE_FRAMES = 5


@dataclass(frozen=True, slots=True)
class Heard:
    """How sure each tag (of `rig.agents.acoustic_words.TAGS`) is, and the measures in the units of their names."""

    confidence: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Tag → 0 to 1; empty where there was too little sound to tell."""
    measures: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def tags(self) -> frozenset[str]:
        """The tags that are sure enough to be given."""
        return frozenset(tag for tag, sure in self.confidence.items() if sure >= AUDIBLE)


def hear(samples: Samples, rate_hz: int) -> Heard:
    """Tags of mono samples in [-1, 1]; none where there is less than 0.2 s of sound."""
    measures = measure(samples, rate_hz)
    return Heard(MappingProxyType(confidences(measures)) if measures else {}, MappingProxyType(measures))


def measure(samples: Samples, rate_hz: int) -> dict[str, float]:
    """What tags are made of; empty where there is less than 0.2 s of sound."""
    if samples.size:
        samples = samples - np.mean(samples)
    frames = _frames(samples, rate_hz)
    if frames.shape[0] < 20:
        return {}
    levels = 10.0 * np.log10(np.mean(np.square(frames), axis=1) + 1e-12)
    sounding = levels > max(float(levels.max()) - _SPEECH_RANGE_DB, -65.0)
    if np.count_nonzero(sounding) < 20:
        return {}
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(frames.shape[1]), axis=1)))
    track = pitch.track(samples, rate_hz, HOP_S)
    return {
        **_level_measures(levels, sounding),
        **_rate_measures(levels, sounding),
        **pitch.measures(track, sounding),
        **_noise_measures(power, levels, rate_hz),
        **_articulation(power, levels, sounding, rate_hz),
        **_ending_measures(samples, rate_hz),
        **tones.find(samples, rate_hz),
        **alarms.find(samples, rate_hz),
    }


def _frames(samples: Samples, rate_hz: int) -> Samples:
    width, hop = round(FRAME_S * rate_hz), round(HOP_S * rate_hz)
    if samples.size < width:
        return np.zeros((0, width))
    return np.lib.stride_tricks.sliding_window_view(samples, width)[::hop]


def _level_measures(levels: Samples, sounding: NDArray[np.bool_]) -> dict[str, float]:
    speech = float(10.0 * np.log10(np.mean(10.0 ** (levels[sounding] / 10.0))))
    below = float(levels.max()) - levels
    return {
        "speech_dbfs": speech,
        "floor_gap_db": speech - float(np.percentile(levels, 10)),
        "soft_share": float(np.mean((below > _SOFT_DB[0]) & (below < _SOFT_DB[1]))),
    }


def _rate_measures(levels: Samples, sounding: NDArray[np.bool_]) -> dict[str, float]:
    """Onsets of syllables: rises of the smoothed level by 3 dB, per second of sound (short pauses counted)."""
    smooth = np.convolve(np.pad(levels, 3, mode="edge"), np.hanning(9)[1:-1] / np.hanning(9)[1:-1].sum(), mode="valid")
    onsets, low, rising = 0, float(smooth[0]), False
    high = low
    for level, on in zip(smooth.tolist(), sounding.tolist(), strict=True):
        if rising:
            high = max(high, level)
            if level < high - 3.0:
                rising, low = False, level
        else:
            low = min(low, level)
            if on and level > low + 3.0:
                onsets, rising, high = onsets + 1, True, level
    seconds = np.count_nonzero(sounding) * HOP_S
    return {"onsets_per_s": float(onsets / seconds)}


def _noise_measures(power: Samples, levels: Samples, rate_hz: int) -> dict[str, float]:
    """Longest run of loud frames whose spectrum is flat from 500 to 3400 Hz: noise, where speech has peaks."""
    loud = levels > float(levels.max()) - 15.0
    flat = _smoothed(_flatness(power, rate_hz), 5) * loud > _NOISE_FLATNESS
    return {"noise_s": _longest_run(flat) * HOP_S}


def _flatness(power: Samples, rate_hz: int) -> Samples:
    hertz = np.linspace(0.0, rate_hz / 2, power.shape[1])
    band = power[:, (hertz >= 500) & (hertz <= 3400)] + 1e-12
    return np.asarray(np.exp(np.mean(np.log(band), axis=1)) / np.mean(band, axis=1))


def _articulation(power: Samples, levels: Samples, sounding: NDArray[np.bool_], rate_hz: int) -> dict[str, float]:
    """How far the shape of the spectrum (mel bands, level taken off) moves within 50 ms of loud speech, dB."""
    bands = 10.0 * np.log10(power @ _mel(power.shape[1], rate_hz).T + 1e-9)
    shape = bands - bands.mean(axis=1, keepdims=True)
    moved = np.mean(np.abs(shape[_CHANGE_FRAMES:] - shape[:-_CHANGE_FRAMES]), axis=1)
    loud = sounding & (levels > levels.max() - 20.0)
    both = loud[_CHANGE_FRAMES:] & sounding[:-_CHANGE_FRAMES]
    return {"articulation_db": float(np.mean(moved[both])) if both.any() else 0.0}


@cache
def _mel(size: int, rate_hz: int) -> Samples:
    """Triangles over the bins of a spectrum, equally wide on the mel scale (O'Shaughnessy's formula)."""

    def mel(hertz: Samples) -> Samples:
        return np.asarray(1127.0 * np.log1p(hertz / 700.0))

    at = mel(np.linspace(0.0, rate_hz / 2, size))[None, :]
    low, high = mel(np.asarray(_BANDS_HZ)).tolist()
    edges = np.linspace(low, high, _BANDS + 2)
    width = edges[1] - edges[0]
    return np.asarray(np.maximum(0.0, 1.0 - np.abs(at - edges[1:-1, None]) / width))


def _smoothed(values: Samples, width: int) -> Samples:
    return np.convolve(np.pad(values, width // 2, mode="edge"), np.full(width, 1.0 / width), mode="valid")


def _longest_run(flags: NDArray[np.bool_]) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return int(np.max(edges[1::2] - edges[::2], initial=0))


def _ending_measures(samples: Samples, rate_hz: int) -> dict[str, float]:
    """How many dB the last sound drops within 5 ms where it stops at speech level (nothing a mouth or a room can do),
    and how noise-like its last 25 ms are."""
    step = round(0.005 * rate_hz)
    blocks = samples[: samples.size // step * step].reshape(-1, step)
    levels = 10.0 * np.log10(np.mean(np.square(blocks), axis=1) + 1e-12)
    speech = float(np.percentile(levels, 90))
    last = int(np.flatnonzero(levels > speech - 35.0)[-1])
    before = float(np.mean(levels[max(0, last - 2) : last + 1]))
    after = float(np.max(levels[last + 1 :], initial=-120.0))
    stop = (last + 1) * step
    ending = samples[max(0, stop - round(FRAME_S * rate_hz)) : stop]
    power = np.square(np.abs(np.fft.rfft(ending * np.hanning(ending.size))))[None, :]
    return {
        "cut_db": before - after if before > speech - _CUT_LEVEL_DB else 0.0,
        "end_flatness": float(_flatness(power, rate_hz)[0]),
    }
