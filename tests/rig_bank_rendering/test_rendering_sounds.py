from __future__ import annotations

import numpy as np
import pytest

from rig.bank.rendering import sounds
from rig.bank.rendering.levels import RATE_HZ, rms_dbfs
from rig.bank.rendering.measures import above_db, clipped_runs, keypad_digits, tone_rise_db
from rig.bank.rendering.surroundings import SOUNDS


def _loudest_hz(samples):
    return float(np.fft.rfftfreq(samples.size, 1 / RATE_HZ)[np.argmax(np.abs(np.fft.rfft(samples)))])


def _pulses_s(samples):
    """Start and stop of each pulse, seconds."""
    envelope = np.convolve(np.abs(samples), np.ones(48) / 48, mode="same") > 0.05
    edges = np.flatnonzero(np.diff(np.concatenate(([False], envelope, [False])).astype(int)))
    return [(float(start) / RATE_HZ, float(stop) / RATE_HZ) for start, stop in edges.reshape(-1, 2)]


def test_the_co_alarm_has_its_frequency_and_temporal_four_pattern():
    alarm = sounds.co_alarm(7.0)
    assert _loudest_hz(alarm[: round(0.1 * RATE_HZ)]) == pytest.approx(3100, abs=15)
    starts = [start for start, _ in _pulses_s(alarm)]
    assert starts == pytest.approx([0.0, 0.2, 0.4, 0.6, 5.7, 5.9, 6.1, 6.3], abs=0.01)
    assert all(stop - start == pytest.approx(0.1, abs=0.01) for start, stop in _pulses_s(alarm))


def test_the_monitor_beeps_75_times_a_minute_at_960_hz():
    beeps = sounds.monitor_beep(4.0)
    assert _loudest_hz(beeps) == pytest.approx(960, abs=5)
    assert [start for start, _ in _pulses_s(beeps)] == pytest.approx([0.0, 0.8, 1.6, 2.4, 3.2], abs=0.01)


def test_a_tone_is_measured_where_it_is_and_nowhere_else(stem):
    beeps = sounds.monitor_beep(stem.size / RATE_HZ)[: stem.size] * 0.05
    assert tone_rise_db(stem + beeps, stem, 960) > 6
    assert tone_rise_db(stem + beeps, stem, 2000) == pytest.approx(0, abs=1)


def test_every_keypad_digit_is_decoded_from_its_tones():
    assert keypad_digits(sounds.dtmf("0123456789*#ABCD"), 0.0, 16) == "0123456789*#ABCD"


def test_digits_lie_where_they_should_under_a_voice(stem):
    mixed = stem.copy()
    tones = sounds.dtmf("2580") * 0.1
    mixed[RATE_HZ : RATE_HZ + tones.size] += tones
    assert keypad_digits(mixed, 1.0, 4) == "2580"


@pytest.mark.parametrize("digits", ["", "12x", "٣"])
def test_no_keypad_digits(digits):
    with pytest.raises(ValueError, match="keypad"):
        sounds.dtmf(digits)


def test_noises_have_unit_rms_low_peaks_and_their_band():
    rng = np.random.default_rng(5)
    white, squelch = sounds.white_noise(1.0, rng), sounds.radio_squelch(1.0, rng)
    for noise, crest_db in ((white, 5.0), (squelch, 9.0)):
        assert rms_dbfs(noise) == pytest.approx(0.0, abs=0.1)
        assert 20 * np.log10(np.max(np.abs(noise))) < crest_db
    power = np.square(np.abs(np.fft.rfft(squelch)))
    inside = (np.fft.rfftfreq(squelch.size, 1 / RATE_HZ) >= 400) & (np.fft.rfftfreq(squelch.size, 1 / RATE_HZ) <= 3400)
    assert power[~inside].sum() < 1e-9 * power.sum()


def test_the_same_seed_gives_the_same_noise():
    for noise in (sounds.white_noise, sounds.radio_squelch):
        np.testing.assert_array_equal(noise(0.3, np.random.default_rng(1)), noise(0.3, np.random.default_rng(1)))
        assert not np.array_equal(noise(0.3, np.random.default_rng(1)), noise(0.3, np.random.default_rng(2)))


def _made(name, seconds=5.0, seed=1):
    return SOUNDS[name].make(seconds, np.random.default_rng(seed))


@pytest.mark.parametrize("name", sorted(SOUNDS))
def test_a_sound_is_as_long_as_asked_audible_and_the_same_for_the_same_seed(name):
    sound = _made(name)
    assert sound.size == 5 * RATE_HZ
    assert np.isfinite(sound).all()
    assert np.std(sound[: 2 * RATE_HZ]) > 0
    np.testing.assert_array_equal(sound, _made(name))


def test_the_promised_names_are_there():
    promised = (
        "monitor_beep co_alarm smoke_alarm siren glass_break baby_cry dog_bark water_running machine_hum car_horn crowd"
    )
    assert set(promised.split()) <= set(SOUNDS)


def test_the_smoke_alarm_has_temporal_three_pattern():
    alarm = _made("smoke_alarm", 9.0)
    assert _loudest_hz(alarm[: RATE_HZ // 2]) == pytest.approx(3100, abs=5)
    starts = [start for start, _ in _pulses_s(alarm)]
    assert starts == pytest.approx([0, 1, 2, 4, 5, 6, 8], abs=0.01)
    assert all(stop - start == pytest.approx(0.5, abs=0.01) for start, stop in _pulses_s(alarm)[:6])


def test_a_siren_sweeps():
    siren = _made("siren")
    low, high = (_loudest_hz(siren[round(at * RATE_HZ) :][: RATE_HZ // 20]) for at in (0.0, 1.575))
    assert low == pytest.approx(650, abs=40)
    assert high == pytest.approx(1500, abs=60)


def test_each_sound_lies_where_its_source_does():
    assert above_db(_made("glass_break"), 2000) > -1.5
    assert above_db(_made("machine_hum"), 2000) < -12
    assert 330 < _loudest_hz(_made("baby_cry")) < 1600
    assert 300 < _loudest_hz(_made("dog_bark")) < 1900
    assert _loudest_hz(_made("car_horn")) in (pytest.approx(405, abs=3), pytest.approx(495, abs=3))


def test_only_tones_claim_to_be_what_they_are():
    assert {name for name, sound in SOUNDS.items() if sound.reason is None} == {
        "monitor_beep",
        "co_alarm",
        "smoke_alarm",
        "reversing_alarm",
    }


def test_flattened_tops_are_counted(stem):
    assert clipped_runs(stem) == 0
    assert clipped_runs(np.clip(stem, -0.1, 0.1)) > 3
