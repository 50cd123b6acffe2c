"""How a clip is cut into pieces: B17 A, and what must hold for every clip, rate and length of a piece."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.chunks import pieces


def test_b17_a_15_ms_at_44100_hz() -> None:
    sizes = [len(piece) for piece in pieces(bytes(88_200), 44_100, 15)]
    assert set(sizes[:-1]) == {1_322, 1_324}
    assert sizes[:4] == [1_324, 1_322, 1_324, 1_322]
    assert sum(sizes) == 88_200
    last_leaves_s = (len(sizes) - 1) * 0.015
    assert 0.970 <= last_leaves_s <= 1.000


@pytest.mark.parametrize(("samples", "sizes"), [(1_000, [960, 960, 80]), (960, [960, 960]), (0, [])])
def test_whole_pieces_and_a_short_last_one(samples: int, sizes: list[int]) -> None:
    assert [len(piece) for piece in pieces(bytes(2 * samples), 24_000, 20)] == sizes


@pytest.mark.parametrize(("n_bytes", "chunk_ms"), [(3, 20), (4, 0), (4, -20)])
def test_half_a_sample_and_no_time_are_refused(n_bytes: int, chunk_ms: int) -> None:
    with pytest.raises(ValueError, match="whole 16-bit samples and chunks of at least 1 ms"):
        list(pieces(bytes(n_bytes), 24_000, chunk_ms))


@given(
    n_samples=st.integers(0, 100_000),
    rate_hz=st.sampled_from([8_000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000]),
    chunk_ms=st.integers(1, 200),
)
def test_every_sample_once_in_order_and_on_time(n_samples: int, rate_hz: int, chunk_ms: int) -> None:
    pcm = np.arange(n_samples, dtype=np.uint32).astype("<u2").tobytes()
    cut = list(pieces(pcm, rate_hz, chunk_ms))
    assert b"".join(cut) == pcm
    assert all(cut)
    start = 0
    for k, piece in enumerate(cut):
        assert abs(start - k * rate_hz * chunk_ms / 1000) <= 0.5
        start += len(piece) // 2
