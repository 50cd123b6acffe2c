"""Turn figures from stretches that are given, by example and by property."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.audio.voice import Stretch
from rig.timing.turns import dead_air_s, overlap_s, pauses_s, replies, take_rates, utterances
from rig.timing.words import Word, first_word_s, looks_swapped


def _stretches(*spans: tuple[float, float]) -> list[Stretch]:
    return [Stretch(*span) for span in spans]


def test_each_utterance_has_the_first_reply_before_the_next_one() -> None:
    caller = _stretches((0, 2), (6, 8), (12, 14))
    agent = _stretches((2.4, 4), (4.5, 5), (16, 17))
    assert [(reply.caller.end_s, reply.latency_s) for reply in replies(caller, agent)] == [
        (2, pytest.approx(0.4)),
        (14, 2),
    ]


def test_a_reply_inside_the_callers_speech_is_negative_and_an_interruption() -> None:
    (reply,) = replies(_stretches((0, 5)), _stretches((3, 6)))
    assert reply.latency_s == -2
    assert reply.interrupts
    (late,) = replies(_stretches((0, 5)), _stretches((4.95, 6)))  # within the detector's own error of the end
    assert not late.interrupts


def test_speech_of_the_agent_from_before_is_no_reply() -> None:
    assert replies(_stretches((2, 3)), _stretches((0, 4))) == []


def test_take_rates_count_points_by_length_of_the_callers_silence() -> None:
    caller = _stretches((0, 1), (1.7, 3), (8, 9), (20, 21))
    agent = _stretches((3.8, 5), (8.5, 10))
    half, one, *_, three = take_rates(caller, agent, 22.0)
    # After 1 s: a pause of 0.7 s without the agent. After 3 s: the agent comes 0.8 s later. At 9 s it speaks already.
    assert (half.points, half.taken, half.agent_spoke) == (3, 0, 1)
    assert (one.points, one.taken, one.agent_spoke) == (2, 1, 1)
    assert (three.points, three.taken, three.agent_spoke) == (1, 1, 1)  # the last silence is 1 s long


def test_pauses_dead_air_and_overlap() -> None:
    caller = _stretches((0, 1), (1.5, 2), (9, 10))
    agent = _stretches((3, 4), (9.5, 11))
    assert pauses_s(caller) == [0.5]
    assert dead_air_s(caller, agent) == [5.0]
    assert overlap_s(caller, agent) == 0.5


def test_gaps_within_an_utterance_are_closed() -> None:
    assert utterances(_stretches((0, 1), (1.2, 2), (2.5, 3))) == _stretches((0, 2), (2.5, 3))


_SPANS = st.lists(st.tuples(st.floats(0.1, 3.0), st.floats(0.3, 5.0)), max_size=8)


def _laid_out(spans: list[tuple[float, float]]) -> list[Stretch]:
    found, at = [], 0.0
    for length, gap in spans:
        found.append(Stretch(at + gap, at + gap + length))
        at += gap + length
    return found


@given(_SPANS, _SPANS)
def test_later_is_the_same(caller: list[tuple[float, float]], agent: list[tuple[float, float]]) -> None:
    ours, theirs = _laid_out(caller), _laid_out(agent)

    def moved(stretches: list[Stretch]) -> list[Stretch]:
        return [Stretch(one.start_s + 64.0, one.end_s + 64.0) for one in stretches]

    before, after = replies(ours, theirs), replies(moved(ours), moved(theirs))
    assert [reply.latency_s for reply in after] == pytest.approx([reply.latency_s for reply in before], abs=1e-9)
    assert len(before) <= len(ours)


def _word(side: str, word: str, start_s: float) -> Word:
    return Word.model_validate({"side": side, "word": word, "start_s": start_s, "end_s": start_s + 0.2})


def test_the_first_word_is_the_first_that_is_no_filler() -> None:
    (reply,) = replies(_stretches((0, 1)), _stretches((1.5, 4)))
    words = [_word("agent", "Um,", 1.5), _word("agent", "so…", 1.8), _word("agent", "Your", 2.2)]
    assert first_word_s(reply, words) == pytest.approx(1.2)
    assert first_word_s(reply, words[:2]) is None


def test_words_that_sound_on_the_other_channel_are_seen() -> None:
    words = [_word("caller", "hello", 0.3), _word("agent", "yes", 2.3)]
    caller, agent = _stretches((0, 1)), _stretches((2, 3))
    assert not looks_swapped(words, caller, agent)
    assert looks_swapped(words, agent, caller)
