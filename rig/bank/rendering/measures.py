"""Measures of a rendered clip's samples: pitch, tremor, voicing, rate, levels, tones, keypad digits.

Pure functions of samples. They judge our own synthetic clips by other means than those that made them (pitch by
autocorrelation, not by the vocoder), and are not the ears of any agent. Limits are `rig.bank.rendering.gates`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rig.bank.rendering import sounds
from rig.bank.rendering.levels import RATE_HZ, Samples, audible, rms_dbfs

HOP_S = 0.01
_FRAME_S = 0.04
_LOWEST_PITCH_HZ, _HIGHEST_PITCH_HZ = 70.0, 500.0
_VOICED = 0.6
_PHRASE_END_S = 0.2
_PHRASE_GAP_S = 0.12


@dataclass(frozen=True, slots=True)
class PitchTrack:
    """Pitch every 10 ms, by the autocorrelation of 40 ms."""

    times_s: Samples
    """Middle of each frame that is audible throughout."""
    pitch_hz: Samples
    """0 where the frame is unvoiced."""

    @property
    def voiced_share(self) -> float:
        """Share of audible frames that have a pitch, 0 to 1."""
        return float(np.mean(self.pitch_hz > 0)) if self.pitch_hz.size else 0.0

    @property
    def voiced_hz(self) -> Samples:
        """The pitches there are; raises ValueError where nothing is voiced."""
        voiced = self.pitch_hz[self.pitch_hz > 0]
        if not voiced.size:
            raise ValueError("nothing voiced")
        return voiced


def pitch_track(samples: Samples) -> PitchTrack:
    """Pitch of every audible frame."""
    width, hop = round(_FRAME_S * RATE_HZ), round(HOP_S * RATE_HZ)
    shortest, longest = round(RATE_HZ / _HIGHEST_PITCH_HZ), round(RATE_HZ / _LOWEST_PITCH_HZ)
    if samples.size < width:
        return PitchTrack(np.zeros(0), np.zeros(0))
    views = np.lib.stride_tricks.sliding_window_view(samples, width)[::hop]
    heard = np.lib.stride_tricks.sliding_window_view(audible(samples), width)[::hop].all(axis=1)
    frames = views[heard] - views[heard].mean(axis=1, keepdims=True)
    lags = np.fft.irfft(np.square(np.abs(np.fft.rfft(frames, 2 * width))))[:, :longest]
    # Divided by the triangle of the overlap, so that long lags are not at a disadvantage.
    strength = lags / (lags[:, :1] + 1e-12) * width / (width - np.arange(longest))
    pitches = np.zeros(len(frames))
    for at, row in enumerate(strength):
        # The first lag nearly as good as the best: twice the period fits as well.
        lag = shortest + int(np.argmax(row[shortest:] >= 0.9 * row[shortest:].max()))
        lag += int(np.argmax(row[lag : lag + shortest // 2]))
        if row[lag] > _VOICED:
            pitches[at] = RATE_HZ / _between(row, lag)
    return PitchTrack(np.asarray(np.flatnonzero(heard) * HOP_S + _FRAME_S / 2, np.float64), pitches)


def _between(row: Samples, lag: int) -> float:
    """The lag of the peak of the parabola through a maximum and its neighbours: pitch finer than one sample."""
    if not 0 < lag < row.size - 1:
        return float(lag)
    before, here, after = row[lag - 1 : lag + 2]
    bend = before - 2 * here + after
    return lag + (float(0.5 * (before - after) / bend) if bend < 0 else 0.0)


def median_pitch_hz(samples: Samples) -> float:
    """Median pitch over voiced frames in hertz; raises ValueError where nothing is voiced."""
    return float(np.median(pitch_track(samples).voiced_hz))


@dataclass(frozen=True, slots=True)
class PitchPairs:
    """Pitch of a delivery beside the pitch of the neutral speech that it was made from, frame by frame."""

    times_s: Samples
    """In the delivery, ascending."""
    neutral_st: Samples
    """Semitones against the neutral median."""
    spoken_st: Samples
    """Semitones against the same."""
    phrase_end: NDArray[np.bool_]
    """In the last 0.2 s of voice of a phrase."""

    def change_st(self, pitch_range: float) -> float:
        """By how much the pitch lies higher, semitones (median), where it moves `pitch_range` times as far."""
        return float(np.median(self.spoken_st - pitch_range * self.neutral_st))

    @property
    def range_ratio(self) -> float:
        """How far the pitch moves for each semitone that it moves in the neutral speech (slope, phrase ends apart)."""
        before, after = self.neutral_st[~self.phrase_end], self.spoken_st[~self.phrase_end]
        return float(np.polyfit(before, after, 1)[0]) if before.size > 2 else float("nan")

    def left_over_st(self, pitch_range: float) -> Samples:
        """What of the pitch's movement the neutral one, its range changed, does not explain; median 0."""
        rest = self.spoken_st - pitch_range * self.neutral_st
        return np.asarray(rest - np.median(rest[~self.phrase_end])) if (~self.phrase_end).any() else rest


def pitch_pairs(neutral: PitchTrack, spoken: PitchTrack, source_s: Callable[[Samples], Samples]) -> PitchPairs:
    """Both pitches where both are voiced; `source_s` tells which neutral time each delivered time comes from.

    Raises ValueError where fewer than ten frames are voiced in both.
    """
    at_s = source_s(spoken.times_s)
    nearest = np.clip(np.searchsorted(neutral.times_s, at_s - HOP_S / 2), 0, max(0, neutral.times_s.size - 1))
    near = np.abs(neutral.times_s[nearest] - at_s) <= HOP_S if neutral.times_s.size else np.zeros(0, bool)
    both = near & (spoken.pitch_hz > 0) & (neutral.pitch_hz[nearest] > 0)
    # An octave's error of either track is no change of pitch.
    ratio = np.where(both, spoken.pitch_hz / np.where(both, neutral.pitch_hz[nearest], 1.0), 1.0)
    both &= np.abs(np.log2(ratio / np.median(ratio[both]))) < 0.6 if both.any() else both
    if both.sum() < 10:
        raise ValueError("hardly anything voiced in both the delivery and the neutral speech")
    median_hz = float(np.median(neutral.voiced_hz))
    times_s = spoken.times_s[both]
    final = np.zeros(times_s.size, dtype=bool)
    # A phrase ends where nothing is audible for a while: unvoiced consonants do not end one.
    for stop_s in spoken.times_s[np.diff(spoken.times_s, append=np.inf) > _PHRASE_GAP_S]:
        before = times_s[times_s <= stop_s]
        if before.size:
            final |= (times_s > before[-1] - _PHRASE_END_S) & (times_s <= before[-1])
    neutral_st = 12 * np.log2(neutral.pitch_hz[nearest[both]] / median_hz)
    spoken_st = 12 * np.log2(spoken.pitch_hz[both] / median_hz)
    return PitchPairs(times_s, neutral_st, spoken_st, final)


def level_swing_db(neutral: Samples, spoken: Samples, source_s: Callable[[Samples], Samples], hertz: float) -> float:
    """Amplitude at `hertz` of the delivery's level against the neutral one's, decibels of amplitude."""
    before, after = _levels_db(neutral), _levels_db(spoken)
    times_s = np.arange(after.size, dtype=np.float64) * HOP_S
    at = np.round(source_s(times_s) / HOP_S)
    loud = (at >= 0) & (at < before.size)
    at = np.where(loud, at, 0).astype(int)
    loud &= before[at] > before.max() - 25
    return swing(times_s[loud], after[loud] - before[at][loud], hertz)


def _levels_db(samples: Samples) -> Samples:
    """Level of 30 ms around every 10 ms, dBFS."""
    width, hop = round(0.03 * RATE_HZ), round(HOP_S * RATE_HZ)
    views = np.lib.stride_tricks.sliding_window_view(np.pad(samples, width // 2), width)[::hop]
    return np.asarray(10 * np.log10(np.mean(np.square(views), axis=1) + 1e-9))


def swing(times_s: Samples, values: Samples, hertz: float) -> float:
    """Amplitude of the sine of this frequency in values whose slow course (one period, 0.3 s at least) is taken out."""
    if values.size < 20:
        return 0.0
    near = np.abs(times_s[:, None] - times_s[None, :]) <= max(0.15, 0.5 / hertz)
    quick = values - (near @ values) / near.sum(axis=1)
    # Steps from one sound to the next are no tremor: what is far out counts no more than its limit.
    quick = np.clip(quick, *np.percentile(quick, [5, 95]))
    return float(2 * np.abs(np.mean(quick * np.exp(-2j * np.pi * hertz * times_s))))


def tone_rise_db(samples: Samples, stem: Samples, frequency_hz: float, width_hz: float = 30.0) -> float:
    """Power within ±`width_hz` of a frequency in a clip over that in its stem, of equal length, in dB (at most 60)."""
    inside = np.abs(np.fft.rfftfreq(samples.size, 1 / RATE_HZ) - frequency_hz) <= width_hz
    with_tone, without = (float(np.square(np.abs(np.fft.rfft(part)))[inside].sum()) for part in (samples, stem))
    return float(10 * np.log10(min(max(with_tone, 1e-12) / max(without, 1e-12), 1e6)))


def keypad_digits(samples: Samples, start_s: float, count: int) -> str:
    """The digits of `count` keypad tones in a row from `start_s` on, by the strongest row and column of each."""
    digits = ""
    for index in range(count):
        start = round((start_s + index * 2 * sounds.DTMF_ON_S) * RATE_HZ)
        tone = samples[start : start + round(sounds.DTMF_ON_S * RATE_HZ)]
        times_s = np.arange(tone.size) / RATE_HZ

        def strength(frequency_hz: float, tone: Samples = tone, times_s: Samples = times_s) -> float:
            return float(np.abs(np.dot(tone * np.hanning(tone.size), np.exp(-2j * np.pi * frequency_hz * times_s))))

        row = max(sounds.DTMF_ROWS_HZ, key=lambda keys: strength(sounds.DTMF_ROWS_HZ[keys]))
        column = int(np.argmax([strength(column_hz) for column_hz in sounds.DTMF_COLUMNS_HZ]))
        digits += row[column]
    return digits


def end_level_dbfs(samples: Samples) -> float:
    """RMS of the last 30 ms in dBFS: high where a clip ends in the middle of sound."""
    return rms_dbfs(samples[-round(0.03 * RATE_HZ) :])


def audible_s(samples: Samples, within: NDArray[np.bool_] | None = None) -> float:
    """Seconds of audible sound, where `within` holds (per sample)."""
    heard = audible(samples)
    return float((heard if within is None else heard & within).sum()) / RATE_HZ


def inner_silence_s(samples: Samples) -> float:
    """Seconds without audible sound between the first and the last that is audible."""
    heard = np.flatnonzero(audible(samples))
    return (float(heard[-1] - heard[0] + 1) - heard.size) / RATE_HZ if heard.size else 0.0


def longest_silence_s(samples: Samples) -> float:
    """The longest stretch without audible sound between the first and the last that is audible, seconds."""
    heard = np.flatnonzero(audible(samples))
    return float(np.diff(heard).max(initial=1) - 1) / RATE_HZ


def clipped_runs(samples: Samples) -> int:
    """How often three or more neighbouring samples stand at the clip's own peak: a flattened top."""
    peak = np.abs(samples).max(initial=0.0)
    top = np.concatenate(([False], np.abs(samples) >= peak - 1 / 32768, [False])) if peak > 0.05 else np.zeros(2, bool)
    edges = np.flatnonzero(np.diff(top.astype(np.int8))).reshape(-1, 2)
    return int(np.sum(edges[:, 1] - edges[:, 0] >= 3))


def above_db(samples: Samples, frequency_hz: float) -> float:
    """Power above a frequency against the whole, dB (at least -120)."""
    power = np.square(np.abs(np.fft.rfft(samples)))
    share = power[np.fft.rfftfreq(samples.size, 1 / RATE_HZ) > frequency_hz].sum() / max(power.sum(), 1e-20)
    return float(10 * np.log10(max(share, 1e-12)))
