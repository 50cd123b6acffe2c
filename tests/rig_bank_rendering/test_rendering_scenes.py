from __future__ import annotations

import numpy as np
import pytest

from rig.bank.rendering import scenes
from rig.bank.rendering.levels import RATE_HZ, rms_dbfs, speech_end_s
from rig.bank.rendering.measures import end_level_dbfs, longest_silence_s
from rig.bank.rendering.similarity import audible_share, outside_likeness
from rig.bank.rendering.surroundings import SOUNDS


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


@pytest.mark.parametrize("snr_db", [20.0, 0.0])
@pytest.mark.parametrize("name", sorted(SOUNDS))
def test_a_sound_has_the_asked_level_and_start_and_leaves_the_rest_alone(stem, name, snr_db):
    mix = scenes.with_sound(stem, name, snr_db, 0.5, np.random.default_rng(2))
    assert scenes.speech_gap_db(mix, stem) == pytest.approx(snr_db, abs=0.7)
    assert not _cut(mix.added, 0, 0.5).any()
    assert mix.samples.size == stem.size
    assert outside_likeness(stem, mix.samples, mix.added) > 0.9
    assert (audible_share(stem, mix.added) > 0.15) or snr_db == 20.0


def test_a_late_sound_outlasts_the_speech(stem):
    mix = scenes.with_sound(stem, "siren", 6.0, 2.3, np.random.default_rng(2))
    assert mix.samples.size == round((2.3 + scenes.SHORTEST_SOUND_S) * RATE_HZ)


def test_what_was_changed_besides_the_sound_is_seen(stem):
    mix = scenes.with_sound(stem, "monitor_beep", 6.0, 0.5, np.random.default_rng(2))
    swapped = np.concatenate((stem[stem.size // 2 :], stem[: stem.size // 2])) + mix.added
    assert outside_likeness(stem, swapped, mix.added) < 0.9


@pytest.mark.parametrize("restart", [True, False])
def test_a_caller_halts_before_a_word(stem, restart):
    halted = scenes.halted(stem, 1.0, (1.0, 1.3) if restart else None, 1.2)
    begun_s = 0.18 if restart else 0.0
    assert halted.size == stem.size + round((1.2 + begun_s) * RATE_HZ)
    assert longest_silence_s(halted) == pytest.approx(1.2, abs=0.07)
    np.testing.assert_array_equal(_cut(halted, 2.3 + begun_s, 3.0), _cut(stem, 1.1, 1.8 - begun_s))


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


def test_a_sound_under_the_speech_is_not_audible(stem):
    assert audible_share(stem, stem * 0.1) == 0
    assert audible_share(stem, stem * 2) == 1
