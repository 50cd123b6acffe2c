from __future__ import annotations

import numpy as np
import pytest

from rig.bank.rendering import scenes
from rig.bank.rendering.levels import RATE_HZ, rms_dbfs, speech_end_s
from rig.bank.rendering.measures import end_level_dbfs


def _cut(samples, start_s, stop_s):
    return samples[round(start_s * RATE_HZ) : round(stop_s * RATE_HZ)]


@pytest.mark.parametrize("noise", sorted(scenes.NOISES))
def test_slot_noise_has_its_snr_over_the_slot_and_nothing_elsewhere(stem, noise):
    mix = scenes.with_slot_noise(stem, noise, (1.0, 1.4), -12.0, np.random.default_rng(3))
    assert rms_dbfs(_cut(stem, 1.0, 1.4)) - rms_dbfs(_cut(mix.added, 1.0, 1.4)) == pytest.approx(-12.0, abs=0.5)
    margin_s = scenes.SLOT_MARGIN_S
    assert not _cut(mix.added, 0, 1.0 - margin_s).any()
    assert not _cut(mix.added, 1.4 + margin_s, 9).any()
    assert np.max(np.abs(mix.samples)) < 1


@pytest.mark.parametrize("snr_db", [20.0, 6.0, 0.0])
@pytest.mark.parametrize("tone", sorted(scenes.TONES))
def test_a_tone_has_the_asked_level_and_start(stem, tone, snr_db):
    mix = scenes.with_tone(stem, tone, snr_db, 0.5)
    assert scenes.speech_gap_db(mix, stem) == pytest.approx(snr_db, abs=0.2)
    assert not _cut(mix.added, 0, 0.5).any()
    assert mix.samples.size == stem.size


def test_a_second_voice_may_outlast_the_caller_without_moving_the_end_of_speech(stem, voice):
    mix = scenes.mixed(stem, voice(2.0, 110.0), 6.0, 1.5)
    assert mix.samples.size == round(3.5 * RATE_HZ)
    assert speech_end_s(stem) == pytest.approx(2.25, abs=0.03)
    assert speech_end_s(mix.samples) > 3.4


def test_a_line_drop_ends_abruptly_inside_the_slots_first_word(stem):
    cut_s = scenes.line_drop_s(stem, (1.0, 1.4))
    cut = scenes.cut_at(stem, cut_s)
    assert 1.1 <= cut_s <= 1.22
    assert cut.size == round(cut_s * RATE_HZ)
    np.testing.assert_array_equal(cut, stem[: cut.size])
    assert end_level_dbfs(cut) > -35 > end_level_dbfs(stem)


def test_a_scene_is_the_same_for_the_same_seed(stem):
    first, second = (
        scenes.with_slot_noise(stem, "radio_squelch", (1.0, 1.4), -12.0, np.random.default_rng(9)) for _ in range(2)
    )
    np.testing.assert_array_equal(first.samples, second.samples)
