from __future__ import annotations

import numpy as np
import pytest

from rig.bank.rendering.deliveries import CHILD_PITCH, DELIVERIES, processed, whispered
from rig.bank.rendering.levels import rms_dbfs
from rig.bank.rendering.measures import median_pitch_hz, voiced_share
from rig.bank.rendering.stretch import revoiced, stretched


@pytest.mark.parametrize("pitch_hz", [95.0, 160.0, 230.0])
def test_pitch_is_measured(voice, pitch_hz):
    assert median_pitch_hz(voice(1.0, pitch_hz)) == pytest.approx(pitch_hz, rel=0.02)


def test_a_childs_pitch_is_raised_at_the_same_pace(voice):
    child = revoiced(voice(2.0), 1.0, CHILD_PITCH)
    assert median_pitch_hz(child) == pytest.approx(160 * CHILD_PITCH, rel=0.03)
    assert child.size == pytest.approx(voice(2.0).size, rel=0.01)


@pytest.mark.parametrize("factor", [0.7, 0.83, 1.2, 1.35])
def test_stretching_keeps_pitch_and_level(voice, factor):
    longer = stretched(voice(2.0), factor)
    assert longer.size == round(voice(2.0).size * factor)
    assert median_pitch_hz(longer) == pytest.approx(160, rel=0.02)
    assert rms_dbfs(longer) == pytest.approx(rms_dbfs(voice(2.0)), abs=1.5)


def test_urgent_is_faster_and_higher(voice):
    urgent = DELIVERIES["urgent"]
    changed = revoiced(voice(2.0), urgent.rate, urgent.pitch)
    assert voice(2.0).size / changed.size == pytest.approx(1.2, rel=0.01)
    assert median_pitch_hz(changed) / 160 == pytest.approx(2 ** (2 / 12), rel=0.03)
    assert urgent.gain_db == 6.0


def test_a_whisper_keeps_level_and_silence_but_not_the_voice(stem):
    quiet = whispered(stem, np.random.default_rng(1))
    assert voiced_share(stem) > 0.8
    assert voiced_share(quiet) < 0.15
    assert rms_dbfs(quiet) == pytest.approx(rms_dbfs(stem), abs=3)


@pytest.mark.parametrize("name", sorted(DELIVERIES))
def test_a_delivery_is_deterministic_bounded_and_silent_where_the_stem_is(stem, name):
    first, second = (processed(stem, DELIVERIES[name], np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.size == stem.size
    assert np.isfinite(first).all()
    assert not first[:4800].any()


def test_all_but_neutral_say_why_they_only_approximate():
    assert [name for name, delivery in DELIVERIES.items() if delivery.reason is None] == ["neutral"]
