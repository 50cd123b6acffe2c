"""What a sound card is given: every byte once and in order, silence around it, and gaps counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from transports.playout import Playout


def test_nothing_plays_before_enough_is_gathered() -> None:
    playout = Playout(gather_bytes=6, most_bytes=100)
    playout.write(b"abcd")
    assert playout.read(4) == bytes(4)
    playout.write(b"ef")
    assert playout.read(4) == b"abcd"
    assert playout.waiting_bytes == 2


def test_a_gap_counts_once_more_audio_comes() -> None:
    playout = Playout(2, 100)
    playout.write(b"abcd")
    assert playout.read(6) == b"abcd\0\0"
    assert playout.ran_dry == 0  # the caller may simply have finished
    assert playout.read(4) == bytes(4)
    playout.write(b"ef")
    assert playout.ran_dry == 1
    assert playout.read(2) == b"ef"


def test_what_is_too_much_is_dropped_and_counted() -> None:
    playout = Playout(0, 4)
    playout.write(b"abcd")
    playout.write(b"ef")
    assert (playout.dropped_bytes, playout.read(6)) == (2, b"abcd\0\0")


@given(
    st.lists(st.binary(min_size=1, max_size=20).map(lambda raw: raw.replace(b"\0", b"x")), max_size=30),
    st.integers(1, 33),
    st.integers(0, 40),
)
def test_every_byte_is_played_once_and_in_order(pieces: list[bytes], block: int, gather: int) -> None:
    playout = Playout(gather, 10_000)
    played = b""
    for piece in pieces:
        playout.write(piece)
        out = playout.read(block)
        assert len(out) == block
        played += out
    playout._gather = 0  # the rest is short of a new start
    whole = b"".join(pieces)
    for _ in range(len(whole) // block + 1):
        played += playout.read(block)
    assert played.replace(b"\0", b"") == whole
