from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.bank.rendering.levels import (
    RATE_HZ,
    as_stored,
    db_to_gain,
    limited,
    peak_dbfs,
    rms_dbfs,
    speech_end_s,
    speech_rms_dbfs,
    tightened,
    to_pcm16,
    with_speech_level,
)


def test_speech_ends_where_the_voice_ends(stem):
    assert speech_end_s(stem) == pytest.approx(2.25, abs=0.005)


def test_what_lies_below_the_threshold_does_not_move_the_end(stem):
    hum = np.sin(2 * np.pi * 50 * np.arange(stem.size) / RATE_HZ) * db_to_gain(-58)
    assert speech_end_s(stem + hum) == pytest.approx(speech_end_s(stem), abs=0.01)


def test_an_offset_is_not_audible(stem):
    assert speech_end_s(stem + 0.1) == pytest.approx(speech_end_s(stem), abs=0.03)


def test_a_lone_spike_is_no_speech(stem):
    clicked = stem.copy()
    clicked[-100] = 0.02
    assert speech_end_s(clicked) == speech_end_s(stem)


def test_silence_has_no_speech_end():
    with pytest.raises(ValueError, match="no audible speech"):
        speech_end_s(np.zeros(RATE_HZ))


def test_pauses_and_margins_are_tightened(voice):
    loose = np.concatenate((np.zeros(RATE_HZ), voice(1.0), np.zeros(RATE_HZ), voice(0.5), np.zeros(RATE_HZ)))
    tight = tightened(loose)
    assert tight.size / RATE_HZ == pytest.approx(0.25 + 1.0 + 0.35 + 0.5 + 0.30, abs=0.13)
    assert not tight[: round(0.24 * RATE_HZ)].any()
    assert speech_end_s(tight) == pytest.approx(tight.size / RATE_HZ - 0.30, abs=0.04)


def test_a_short_pause_stays(voice):
    pause = np.zeros(round(0.2 * RATE_HZ))
    assert tightened(np.concatenate((voice(1.0), pause, voice(1.0)))).size / RATE_HZ == pytest.approx(2.75, abs=0.06)


def test_speech_level_ignores_pauses(voice):
    paused = np.concatenate((voice(1.0), np.zeros(3 * RATE_HZ), voice(1.0)))
    assert speech_rms_dbfs(with_speech_level(paused * 0.1)) == pytest.approx(-23.0, abs=0.5)


def test_silence_cannot_be_levelled():
    with pytest.raises(ValueError, match="silence"):
        with_speech_level(np.zeros(RATE_HZ))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 8.0))
def test_limited_keeps_the_ceiling_and_never_inverts(seed, scale):
    samples = np.random.default_rng(seed).standard_normal(3000) * scale
    kept = limited(samples)
    assert kept.size == samples.size
    assert peak_dbfs(kept) <= -1.5 + 1e-6
    assert np.all(kept * samples >= 0)


def test_what_needs_no_limiting_is_untouched(stem):
    np.testing.assert_array_equal(limited(stem * 0.1), stem * 0.1)


def test_pcm_is_refused_rather_than_clipped():
    assert to_pcm16(np.array([0.5, -1.0, 0.0])).tolist() == [16384, -32768, 0]
    with pytest.raises(ValueError, match="full scale"):
        to_pcm16(np.array([1.0]))


def test_stored_samples_are_stored_unchanged(stem):
    np.testing.assert_array_equal(as_stored(as_stored(stem)), as_stored(stem))
    assert np.max(np.abs(as_stored(stem) - stem)) <= 0.5 / 32768


def test_levels_of_nothing():
    assert rms_dbfs(np.zeros(0)) == peak_dbfs(np.zeros(10)) == float("-inf")
