"""Resampling: exact length, no shift, no loss of the tail, full scale kept in bounds, results shared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.audio.reader import Clip
from rig.audio.resample import _Cache, resample

RATES = (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)


def _tone(rate_hz: int, duration_s: float, amplitude: int = 10_000) -> Clip:
    time_s = np.arange(round(rate_hz * duration_s)) / rate_hz
    return Clip(np.rint(amplitude * np.sin(2 * np.pi * 440 * time_s)).astype(np.int16), rate_hz)


@pytest.mark.parametrize(
    ("rate_in", "rate_out"), [(24_000, 16_000), (44_100, 24_000), (16_000, 24_000), (48_000, 8_000)]
)
def test_a_tone_stays_where_it_was(rate_in: int, rate_out: int) -> None:
    out = resample(_tone(rate_in, 0.5), rate_out).samples.astype(float)
    expected = _tone(rate_out, 0.5).samples.astype(float)
    edge = rate_out // 20  # the filter rings where the tone begins and breaks off
    assert np.abs(out - expected)[edge:-edge].max() <= 2.5


def test_the_tail_is_not_lost() -> None:
    samples = np.zeros(24_000, dtype=np.int16)
    samples[-48:] = 8_000
    out = resample(Clip(samples, 24_000), 16_000).samples
    assert len(out) == 16_000
    assert np.abs(out[-30:-2].astype(int) - 8_000).max() < 1_500


def test_full_scale_is_clipped_not_wrapped() -> None:
    square = np.where(np.arange(4_800) // 24 % 2, -32_768, 32_767).astype(np.int16)
    out = resample(Clip(square, 48_000), 24_000).samples
    assert out.max() == 32_767
    assert out.min() == -32_768
    assert (out[7] > 0) == (square[14] > 0)


def test_equal_rates_change_nothing_and_results_are_shared() -> None:
    clip = _tone(24_000, 0.2)
    assert resample(clip, 24_000) is clip
    first, second = resample(clip, 16_000), resample(_tone(24_000, 0.2), 16_000)
    assert first.samples is second.samples
    assert first.notes == ("resampled from 24000 to 16000 Hz",)


def test_the_cache_is_bounded() -> None:
    cache = _Cache(max_bytes=1_000)
    for index in range(5):
        cache.put((str(index), 1, 2), np.zeros(200, dtype=np.int16))
    assert cache.get(("0", 1, 2)) is None
    assert cache.get(("3", 1, 2)) is not None
    assert cache.get(("4", 1, 2)) is not None


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 3_000), rate_in=st.sampled_from(RATES), rate_out=st.sampled_from(RATES))
def test_length_is_exact(n: int, rate_in: int, rate_out: int) -> None:
    samples = np.random.default_rng(n).integers(-32_768, 32_768, n).astype(np.int16)
    assert len(resample(Clip(samples, rate_in), rate_out).samples) == round(n * rate_out / rate_in)
