"""Acoustic tags of one utterance: what is audible besides the words. NumPy, pure, whole utterance at once.

Simple measures against the fixed thresholds of `LIMITS`; a tag says that a measure passed its limit, and nothing about
the caller's mind. Not a trained classifier. The limits were set by hand with the demo bank's synthetic clips in view,
so what the agents reach on that bank says little about recordings of people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from rig.agents import pitch, tones

Samples = NDArray[np.float64]

FRAME_S = 0.025
HOP_S = 0.010


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a measure becomes a tag."""

    speech_range_db: float = 30.0
    """Frames within this of the loudest count as sound."""
    loud_dbfs: float = -19.5
    """Level of the speech; telephone speech is usually brought to -26 to -20 dBov (active level, ITU-T P.56)."""
    quiet_dbfs: float = -27.0
    child_f0_hz: float = 240.0
    """Median pitch above which a voice that is not raised is taken for a child's."""
    lively_onsets_per_s: float = 4.0
    """A loud voice of at least this pace is taken for alarmed or pressed."""
    slow_onsets_per_s: float = 4.2
    dull_high_share: float = 0.02
    """Share of energy above 2.5 kHz; less, together with a slow pace, is blurred speech."""
    whisper_clarity: float = 0.6
    """Clarity is the 75th percentile of the pitch's strength over sounding frames: 1 for a pure voice, 0 for noise."""
    breathy_clarity: float = 0.87
    swing_cents: float = 235.0
    unhurried_onsets_per_s: float = 5.0
    noise_flatness: float = 0.30
    noise_s: float = 0.25
    cut_drop_db: float = 25.0
    cut_level_db: float = 12.0
    """A cut ends within this of the loud parts' level."""
    second_voice_s: float = 0.25
    second_voice_breathy_s: float = 1.2
    least_beeps: int = 3
    least_keys: int = 2
    floor_gap_db: float = 18.0
    """Steady noise: the quietest tenth of the frames lies less than this below the speech."""


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Heard:
    """Tags (names of `rig.agents.acoustic_words.TAGS`) and the measures behind them, in the units of their names."""

    tags: frozenset[str] = frozenset()
    measures: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


def hear(samples: Samples, rate_hz: int) -> Heard:
    """Tags of mono samples in [-1, 1]; none where there is less than 0.2 s of sound."""
    if samples.size:
        samples = samples - np.mean(samples)
    frames = _frames(samples, rate_hz)
    if frames.shape[0] < 20:
        return Heard()
    levels = 10.0 * np.log10(np.mean(np.square(frames), axis=1) + 1e-12)
    sounding = levels > max(float(levels.max()) - LIMITS.speech_range_db, -65.0)
    if np.count_nonzero(sounding) < 20:
        return Heard()
    found = tones.find(samples, rate_hz)
    track = pitch.track(samples, rate_hz, HOP_S)
    measures = {
        **_level_measures(levels, sounding),
        **_rate_measures(levels, sounding),
        **pitch.measures(track, sounding),
        **_noise_measures(frames, levels, rate_hz),
        **_ending_measures(samples, rate_hz),
        **found,
    }
    return Heard(_tags(measures), MappingProxyType(measures))


def _tags(m: Mapping[str, float]) -> frozenset[str]:
    limits = LIMITS
    noise = m["noise_s"] >= limits.noise_s
    keypad = m["keypad_digits"] >= limits.least_keys
    steady_noise = m["floor_gap_db"] < limits.floor_gap_db and not noise
    whisper = m["clarity"] < limits.whisper_clarity and not noise and not steady_noise
    # Bursts and keys are louder than the caller, so they would stand for the caller's level.
    loud = m["speech_dbfs"] > limits.loud_dbfs and not noise and not keypad
    beeping = m["tone_beeps"] >= limits.least_beeps
    covered = noise or keypad or beeping
    breathy = m["clarity"] < limits.breathy_clarity and not (noise or whisper or steady_noise)
    # What is left of a breathy voice, or under a tone, looks like a second pitch.
    least_s = limits.second_voice_breathy_s if breathy else limits.second_voice_s
    second = m["both_voices_s"] >= least_s and not (whisper or keypad or beeping)
    child = m["f0_hz"] > limits.child_f0_hz and not loud and not whisper
    blurred = m["high_share"] < limits.dull_high_share and m["onsets_per_s"] < limits.slow_onsets_per_s
    drawn_out = m["swing_cents"] > limits.swing_cents and m["onsets_per_s"] < limits.unhurried_onsets_per_s
    checks = {
        "beeping": beeping,
        "keypad": keypad,
        "noise_burst": noise,
        "cut_off": m["cut"] > 0 and not covered,
        "loud": loud,
        "agitated": loud and m["onsets_per_s"] > limits.lively_onsets_per_s,
        "whispered": whisper,
        "quiet": m["speech_dbfs"] < limits.quiet_dbfs,
        "child_voice": child,
        "blurred": blurred,
        "breathy": breathy and not second,
        "exaggerated": drawn_out and not (child or blurred or breathy or second or whisper or covered),
        "second_voice": second,
        "background_noise": steady_noise,
    }
    return frozenset(tag for tag, met in checks.items() if met)


def _frames(samples: Samples, rate_hz: int) -> Samples:
    width, hop = round(FRAME_S * rate_hz), round(HOP_S * rate_hz)
    if samples.size < width:
        return np.zeros((0, width))
    return np.lib.stride_tricks.sliding_window_view(samples, width)[::hop]


def _level_measures(levels: Samples, sounding: NDArray[np.bool_]) -> dict[str, float]:
    speech = float(10.0 * np.log10(np.mean(10.0 ** (levels[sounding] / 10.0))))
    return {
        "speech_dbfs": speech,
        "floor_gap_db": speech - float(np.percentile(levels, 10)),
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


def _noise_measures(frames: Samples, levels: Samples, rate_hz: int) -> dict[str, float]:
    """Longest run of loud frames whose spectrum is flat from 500 to 3400 Hz: noise, where speech has peaks."""
    width = frames.shape[1]
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(width), axis=1)))
    hertz = np.fft.rfftfreq(width, 1.0 / rate_hz)
    band = power[:, (hertz >= 500) & (hertz <= 3400)] + 1e-12
    flatness = np.exp(np.mean(np.log(band), axis=1)) / np.mean(band, axis=1)
    loud = levels > float(levels.max()) - 15.0
    high = np.sum(power[:, hertz > 2500], axis=1) / (np.sum(power, axis=1) + 1e-12)
    return {
        "noise_s": _longest_run(_smoothed(flatness, 5) * loud > LIMITS.noise_flatness) * HOP_S,
        "high_share": float(np.mean(high[levels > float(levels.max()) - 25.0])),
    }


def _smoothed(values: Samples, width: int) -> Samples:
    return np.convolve(np.pad(values, width // 2, mode="edge"), np.full(width, 1.0 / width), mode="valid")


def _longest_run(flags: NDArray[np.bool_]) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return int(np.max(edges[1::2] - edges[::2], initial=0))


def _ending_measures(samples: Samples, rate_hz: int) -> dict[str, float]:
    """1 when the last sound stops at speech level within 5 ms: nothing a mouth or a room can do."""
    step = round(0.005 * rate_hz)
    blocks = samples[: samples.size // step * step].reshape(-1, step)
    levels = 10.0 * np.log10(np.mean(np.square(blocks), axis=1) + 1e-12)
    speech = float(np.percentile(levels, 90))
    last = int(np.flatnonzero(levels > speech - 35.0)[-1])
    before = float(np.mean(levels[max(0, last - 2) : last + 1]))
    after = float(np.max(levels[last + 1 :], initial=-120.0))
    cut = before > speech - LIMITS.cut_level_db and before - after > LIMITS.cut_drop_db
    return {"cut": float(cut)}
