"""Marks come back when the audio has played, not when it arrives (bug case B13)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.twilio_media.playback import MAX_MARKS, NS_PER_BYTE, Playback, PlaybackFullError

_MS = 1_000_000
_T0 = 7_000 * _MS


def _five_pieces() -> Playback:
    playback = Playback()
    for number in range(1, 6):
        assert playback.audio(160, _T0) == _T0 + (number - 1) * 20 * _MS
        playback.mark(f"m{number}", _T0)
    return playback


def test_marks_follow_the_audio_before_them() -> None:
    playback = _five_pieces()
    assert playback.due(_T0) == []
    for number in range(1, 6):
        due_ns = playback.next_due_ns()
        assert due_ns == _T0 + number * 20 * _MS
        assert playback.due(due_ns - 1) == []
        assert playback.due(due_ns) == [f"m{number}"]
    assert playback.next_due_ns() is None
    assert playback.heard_ns(_T0 + 500 * _MS) == 100 * _MS


def test_clear_returns_the_rest_at_once_and_counts_only_what_was_heard() -> None:
    playback = _five_pieces()
    now_ns = _T0 + 50 * _MS
    assert playback.due(now_ns) == ["m1", "m2"]
    assert playback.clear(now_ns) == ["m3", "m4", "m5"]
    assert playback.heard_ns(now_ns + 900 * _MS) == 50 * _MS
    assert playback.cleared_ns == 50 * _MS
    assert playback.audio(160, now_ns) == now_ns


def test_a_mark_without_audio_is_due_at_once_and_marks_are_bounded() -> None:
    playback = Playback()
    playback.mark("now", _T0)
    assert playback.due(_T0) == ["now"]
    for _ in range(MAX_MARKS):
        playback.mark("m", _T0)
    with pytest.raises(PlaybackFullError, match="marks"):
        playback.mark("m", _T0)
    with pytest.raises(PlaybackFullError, match="600 s"):
        playback.audio(8000 * 601, _T0)


@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 500), st.booleans()), max_size=30))
def test_all_audio_is_either_heard_or_cleared(steps: list[tuple[int, int, bool]]) -> None:
    playback, now_ns, queued = Playback(), _T0, 0
    for size, wait_ms, clear in steps:
        playback.audio(size, now_ns)
        queued += size
        now_ns += wait_ms * _MS
        if clear:
            playback.clear(now_ns)
    now_ns += 10**12
    assert playback.heard_ns(now_ns) + playback.cleared_ns == queued * NS_PER_BYTE
