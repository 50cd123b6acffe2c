"""Measures that a rendered clip's gates are made of: is the cue that the item claims really in the audio?

Pure functions of samples. They judge our own synthetic clips and are not the ears of any agent.
"""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict

from rig.bank.rendering import sounds
from rig.bank.rendering.levels import RATE_HZ, Samples, audible, rms_dbfs

_FRAME_S = 0.04
_LOWEST_PITCH_HZ, _HIGHEST_PITCH_HZ = 70.0, 500.0
_VOICED = 0.6


class Gate(BaseModel):
    """One measured value and the limits that it must keep."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def passed(self) -> bool:
        """True within both limits."""
        above = self.at_least is None or self.value >= self.at_least
        return above and (self.at_most is None or self.value <= self.at_most)

    def __str__(self) -> str:
        limits = [f"at least {self.at_least:g}"] if self.at_least is not None else []
        limits += [f"at most {self.at_most:g}"] if self.at_most is not None else []
        return f"{self.value:.3g}, must be {' and '.join(limits)}"


def gate(value: float, *, at_least: float | None = None, at_most: float | None = None) -> Gate:
    """A gate with its value rounded to three decimals, as the manifest stores it."""
    return Gate(value=round(value, 3), at_least=at_least, at_most=at_most)


def pitch_track_hz(samples: Samples) -> tuple[Samples, float]:
    """Pitch of each voiced 40 ms frame (autocorrelation peak above 0.6), and the share of audible frames voiced."""
    width = round(_FRAME_S * RATE_HZ)
    shortest, longest = round(RATE_HZ / _HIGHEST_PITCH_HZ), round(RATE_HZ / _LOWEST_PITCH_HZ)
    mask = audible(samples)
    pitches: list[float] = []
    frames = 0
    for start in range(0, samples.size - width, width // 2):
        if not mask[start : start + width].all():
            continue
        frames += 1
        frame = samples[start : start + width] - samples[start : start + width].mean()
        lags = np.fft.irfft(np.square(np.abs(np.fft.rfft(frame, 2 * width))))[:longest]
        # Divided by the triangle of the overlap, so that long lags are not at a disadvantage.
        strength = lags / (lags[0] + 1e-12) * width / (width - np.arange(longest))
        # The first lag nearly as good as the best: twice the period fits as well.
        lag = shortest + int(np.argmax(strength[shortest:] >= 0.9 * strength[shortest:].max()))
        lag += int(np.argmax(strength[lag : lag + shortest // 2]))
        if strength[lag] > _VOICED:
            pitches.append(RATE_HZ / lag)
    return np.asarray(pitches), len(pitches) / frames if frames else 0.0


def median_pitch_hz(samples: Samples) -> float:
    """Median pitch over voiced frames in hertz; raises ValueError where nothing is voiced."""
    pitches, _ = pitch_track_hz(samples)
    if not pitches.size:
        raise ValueError("nothing voiced")
    return float(np.median(pitches))


def voiced_share(samples: Samples) -> float:
    """Share of audible frames that have a pitch, 0 to 1."""
    return pitch_track_hz(samples)[1]


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


def audible_s(samples: Samples) -> float:
    """Seconds of audible speech."""
    return float(audible(samples).sum()) / RATE_HZ
