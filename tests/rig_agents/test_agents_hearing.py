"""Acoustic tags on synthesised signals whose properties are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rig.agents.alarms import TEMPORAL_FOUR_S, TEMPORAL_THREE_S
from rig.agents.hearing import Heard, hear

RATE_HZ = 24_000
Samples = NDArray[np.float64]


def _voice(pitch_hz: float = 140.0, seconds: float = 3.0, dbfs: float = -23.0, rate_hz: int = RATE_HZ) -> Samples:
    """A harmonic stack with a formant-like fall, five syllables a second, silence around."""
    at = np.arange(round(seconds * rate_hz)) / rate_hz
    hertz = pitch_hz * (1.0 + 0.03 * np.sin(2 * np.pi * 0.4 * at))
    phase = 2 * np.pi * np.cumsum(hertz) / rate_hz
    partials = np.arange(1, int(3600 / pitch_hz))
    stack = np.sum([np.sin(partial * phase + partial**2) / partial**0.7 for partial in partials], axis=0)
    syllables = stack * np.clip(0.5 - 0.6 * np.cos(2 * np.pi * 5.0 * at), 0.0, 1.0)
    level = np.sqrt(np.mean(np.square(syllables)))
    fade = np.minimum(1.0, np.minimum(at, at[::-1]) / 0.1)
    quiet = np.zeros(round(0.3 * rate_hz))
    return np.concatenate((quiet, syllables * fade / level * 10 ** (dbfs / 20), quiet))


def _tags(samples: Samples, rate_hz: int = RATE_HZ) -> frozenset[str]:
    return hear(samples, rate_hz).tags


def _tone(hertz: float, size: int) -> Samples:
    return np.sin(2 * np.pi * hertz * np.arange(size) / RATE_HZ)


def test_a_plain_voice_has_no_tags() -> None:
    assert _tags(_voice()) == frozenset()


@pytest.mark.parametrize("samples", [np.zeros(0), np.zeros(100), np.zeros(RATE_HZ), np.full(RATE_HZ, 0.5)])
def test_silence_has_no_tags(samples: Samples) -> None:
    heard = hear(samples, RATE_HZ)
    assert isinstance(heard, Heard)
    assert not heard.tags & {"beeping", "keypad", "second_voice", "child_voice"}


@pytest.mark.parametrize("rate_hz", [8000, 16_000, 48_000])
def test_pitch_is_measured_at_every_rate(rate_hz: int) -> None:
    heard = hear(_voice(140.0, rate_hz=rate_hz), rate_hz)
    assert heard.measures["f0_hz"] == pytest.approx(140.0, rel=0.03)


def test_level() -> None:
    assert "loud" in _tags(_voice(dbfs=-15.0))
    assert "quiet" in _tags(_voice(dbfs=-34.0))
    assert hear(_voice(dbfs=-23.0), RATE_HZ).measures["speech_dbfs"] == pytest.approx(-23.0, abs=2.0)


def test_a_high_voice_is_a_childs_unless_raised() -> None:
    assert "child_voice" in _tags(_voice(290.0))
    assert "child_voice" not in _tags(_voice(290.0, dbfs=-14.0))
    assert "child_voice" not in _tags(_voice(190.0))


def _pulses(hertz: float, on_off_s: tuple[float, ...], seconds: float, level: float = 0.08) -> Samples:
    """A tone that sounds and pauses by turns, over and over."""
    flags = np.concatenate([np.full(round(s * RATE_HZ), 1.0 - at % 2) for at, s in enumerate(on_off_s)])
    return level * np.resize(flags, round(seconds * RATE_HZ)) * _tone(hertz, round(seconds * RATE_HZ))


PATTERNS = {
    "monitor_beep": (960.0, (0.12, 0.68)),
    "co_alarm": (3100.0, TEMPORAL_FOUR_S),
    "smoke_alarm": (3100.0, TEMPORAL_THREE_S),
    "beeping": (1250.0, (0.5, 0.5)),
}


@pytest.mark.parametrize("tag", PATTERNS)
@pytest.mark.parametrize("rate_hz_of_line", [RATE_HZ, 8000])
def test_alarms_are_told_by_their_pattern(tag: str, rate_hz_of_line: int) -> None:
    voice = _voice(seconds=4.5)
    hertz, on_off_s = PATTERNS[tag]
    samples = voice + _pulses(hertz, on_off_s, voice.size / RATE_HZ)[: voice.size]
    step = RATE_HZ // rate_hz_of_line
    heard = hear(samples[::step], rate_hz_of_line)
    assert heard.tags & (set(PATTERNS) | {"siren", "second_voice", "keypad"}) == {tag}
    assert heard.measures["tone_hz"] == pytest.approx(hertz, abs=20.0)


def test_a_siren_wails() -> None:
    voice = _voice(seconds=4.5)
    at = np.arange(voice.size) / RATE_HZ
    sweep_hz = 650.0 * (1500.0 / 650.0) ** (0.5 - 0.5 * np.cos(2 * np.pi * at / 3.2))
    heard = hear(voice + 0.12 * np.sin(2 * np.pi * np.cumsum(sweep_hz) / RATE_HZ), RATE_HZ)
    assert "siren" in heard.tags
    assert not heard.tags & set(PATTERNS)
    assert heard.measures["siren_cents"] > 1000


def test_a_steady_tone_is_no_alarm() -> None:
    voice = _voice()
    heard = hear(voice + 0.03 * _tone(1800.0, voice.size), RATE_HZ)
    assert not heard.tags & (set(PATTERNS) | {"siren"})


def test_keypad() -> None:
    voice = _voice()
    for key, (low_hz, high_hz) in enumerate(((697, 1209), (770, 1336), (941, 1477))):
        start = round((0.4 + 0.3 * key) * RATE_HZ)
        voice[start : start + 2400] += 0.15 * (_tone(low_hz, 2400) + _tone(high_hz, 2400))
    assert "keypad" in _tags(voice)


def test_noise_burst() -> None:
    voice = _voice()
    voice[24_000:36_000] += 0.3 * np.random.default_rng(1).uniform(-1, 1, 12_000)
    tags = _tags(voice)
    assert "noise_burst" in tags
    assert not tags & {"loud", "whispered", "cut_off"}


def test_abrupt_end() -> None:
    voice = _voice()
    loudest = round((0.3 + 2.1) * RATE_HZ)
    assert "cut_off" in _tags(voice[:loudest])
    padded = np.concatenate((voice[:loudest], np.zeros(RATE_HZ)))
    assert "cut_off" in _tags(padded)
    assert "cut_off" not in _tags(voice)


def test_two_voices_at_once() -> None:
    assert "second_voice" in _tags(_voice(130.0) + _voice(200.0, dbfs=-29.0))


def test_whisper() -> None:
    noise = np.random.default_rng(2).standard_normal(3 * RATE_HZ)
    at = np.arange(noise.size) / RATE_HZ
    spectrum = np.fft.rfft(noise)
    hertz = np.fft.rfftfreq(noise.size, 1 / RATE_HZ)
    spectrum *= np.exp(-(((hertz - 1500.0) / 500.0) ** 2)) + 0.05 * (hertz > 3000)
    shaped = np.fft.irfft(spectrum, noise.size) * np.clip(0.5 - 0.6 * np.cos(2 * np.pi * 4.0 * at), 0.0, 1.0)
    assert "whispered" in _tags(0.03 * shaped / np.std(shaped))


def test_hearing_is_repeatable() -> None:
    assert hear(_voice(), RATE_HZ) == hear(_voice(), RATE_HZ)


@given(
    rate_hz=st.sampled_from([8000, 11_025, 16_000, 24_000, 48_000]),
    seconds=st.floats(0.0, 3.0),
    kind=st.sampled_from(["noise", "click", "tone", "square"]),
    level=st.floats(1e-5, 1.0),
)
@settings(max_examples=30, deadline=None)
def test_any_sound_at_any_rate_is_heard_without_fail(rate_hz: int, seconds: float, kind: str, level: float) -> None:
    at = np.arange(round(seconds * rate_hz)) / rate_hz
    sound = {
        "noise": np.random.default_rng(3).uniform(-1, 1, at.size),
        "click": (np.arange(at.size) % (rate_hz // 4) == 0).astype(np.float64),
        "tone": np.sin(2 * np.pi * 997.0 * at),
        "square": np.sign(np.sin(2 * np.pi * 3.0 * at)),
    }[kind]
    heard = hear(level * sound, rate_hz)
    assert all(np.isfinite(value) for value in heard.measures.values())
    assert all(0.0 <= sure <= 1.0 for sure in heard.confidence.values())
