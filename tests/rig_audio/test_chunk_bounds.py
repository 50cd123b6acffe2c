"""Chunk arithmetic: B17 A, and what must hold for every clip, rate and chunk length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.audio.chunks import chunk_bounds


def test_b17_a_15_ms_at_44100_hz() -> None:
    bounds = chunk_bounds(44_100, 44_100, 15)
    sizes = [2 * (end - start) for start, end in bounds]
    assert set(sizes[:-1]) == {1_322, 1_324}
    assert sizes[:4] == [1_324, 1_322, 1_324, 1_322]
    assert sum(sizes) == 88_200
    last_leaves_s = (len(bounds) - 1) * 0.015
    assert 0.970 <= last_leaves_s <= 1.000


def test_whole_chunks_and_a_short_last_one() -> None:
    assert chunk_bounds(1_000, 24_000, 20) == [(0, 480), (480, 960), (960, 1_000)]
    assert chunk_bounds(960, 24_000, 20) == [(0, 480), (480, 960)]
    assert chunk_bounds(0, 24_000, 20) == []


def test_chunks_below_one_sample_are_refused() -> None:
    with pytest.raises(ValueError, match="less than one sample"):
        chunk_bounds(10, 800, 1)
    with pytest.raises(ValueError, match="n_samples is -1"):
        chunk_bounds(-1, 16_000, 20)


@given(
    n_samples=st.integers(0, 100_000),
    rate_hz=st.sampled_from([8_000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000]),
    chunk_ms=st.integers(1, 200),
)
def test_every_sample_once_in_order_and_on_time(n_samples: int, rate_hz: int, chunk_ms: int) -> None:
    bounds = chunk_bounds(n_samples, rate_hz, chunk_ms)
    assert [sample for pair in bounds for sample in pair] == sorted(sample for pair in bounds for sample in pair)
    assert sum(end - start for start, end in bounds) == n_samples
    assert all(start < end for start, end in bounds)
    for k, (start, _) in enumerate(bounds):
        assert abs(start - k * rate_hz * chunk_ms / 1000) <= 0.5
