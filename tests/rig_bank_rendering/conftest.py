"""A stand-in for speech: a voiced, syllable-like signal whose pitch, pauses and end are known exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rig.bank.rendering.levels import RATE_HZ, Samples, with_speech_level


def _voice(seconds: float, pitch_hz: float = 160.0) -> Samples:
    """Harmonics of `pitch_hz` with falling strength, swelling four times a second, at speech level."""
    times_s = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    partials = np.arange(1, int(4000 / pitch_hz))
    tones = sum(np.sin(2 * np.pi * pitch_hz * partial * times_s + partial**2) / partial for partial in partials)
    return with_speech_level(np.asarray(tones) * (0.55 + 0.45 * np.sin(2 * np.pi * 4 * times_s)))


@pytest.fixture(scope="session")
def voice() -> Callable[..., Samples]:
    """voice(seconds, pitch_hz=160.0) → samples."""
    return _voice


@pytest.fixture(scope="session")
def stem(voice: Callable[..., Samples]) -> Samples:
    """0.25 s of silence, 2 s of voice, 0.3 s of silence."""
    return np.concatenate((np.zeros(round(0.25 * RATE_HZ)), voice(2.0), np.zeros(round(0.3 * RATE_HZ))))
