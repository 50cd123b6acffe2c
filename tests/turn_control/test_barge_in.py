"""The caller cuts in on the agent's speech, on the virtual clock."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.dialect import TurnMode
from captures.capture import Ending, Mark
from captures.playback import play
from turn_control.barge_in import BargeInRecord, barge_in
from turn_control.heard_speech import HeardSpeech
from turn_control.limits import Limits
from turn_control.turn import SpokenTurn, TextTurn

Virtual = Callable[[Callable[[], Any]], Any]
RATE_HZ = 24_000


def _tone(seconds: float) -> bytes:
    t = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    return bytes((8_000 * np.sin(2 * np.pi * 400 * t)).astype("<i2").tobytes())


def _speech(seconds: float) -> dict[str, Any]:
    return {"type": "audio", "pcm": base64.b64encode(_tone(seconds)).decode()}


class Talk:
    """A session, a caller turn of 0.3 s, and a barging clip of 0.4 s."""

    def __init__(self, stage: Any, peer: Any, **differences: Any) -> None:
        self.stage, self.peer, self.differences = stage, peer, differences
        self.can_cancel = False

    async def run(self, after_s: float, mode: TurnMode, text: bool = False) -> BargeInRecord:
        ready = await self.stage(self.peer, **self.differences)
        ready.session.dialect.can_cancel = self.can_cancel
        into = SpokenTurn(ready.session.encode_clip(_tone(0.3), RATE_HZ, 20))
        clip = SpokenTurn(ready.session.encode_clip(_tone(0.4), RATE_HZ, 20))
        return await barge_in(
            ready.session,
            TextTurn("hello") if text else into,
            clip,
            after_s=after_s,
            ticker=ready.ticker,
            clock=ready.clock,
            limits=Limits(turn_s=10, trailing_silence_s=2),
            mode=mode,
        )


def _on_barge(peer: Any, from_s: float, *steps: tuple[Any, ...]) -> None:
    """Steps timed from the first caller audio at or after `from_s` of the loop's time."""
    left = list(steps)

    def heard() -> None:
        if peer.loop.time() >= from_s and left:
            for seconds, *messages in left:
                peer.loop.call_later(seconds, peer.say, *messages)
            left.clear()

    peer.on_audio = heard


ANSWER_TO_IT = ({"type": "text", "text": "Yes?"}, {"type": "end"})


def test_speech_stops_when_the_peer_says_that_it_heard_the_caller(
    virtual: Virtual, stage: Any, scripted_peer: Any
) -> None:
    # 2 s of speech arrive at once at 0.5 s, and the answer's end with it.
    peer = scripted_peer(((0.5, _speech(2), {"type": "end"}),), after="audio")
    _on_barge(peer, 1.4, (0.25, {"type": "speech_started"}), (0.6, *ANSWER_TO_IT))
    talk = Talk(stage, peer)
    talk.can_cancel = True
    record = virtual(lambda: talk.run(1.0, TurnMode.SERVER_VAD))

    assert record.not_played == ""
    heard_ns = record.interrupted.marks[Mark.FIRST_AUDIO]
    assert 1.0 <= (record.onset_ns - heard_ns) / 1e9 <= 1.0 + 0.021  # within one chunk of its time
    assert record.stopped_by == "peer"
    assert record.stop_latency_s == pytest.approx(0.25, abs=0.02)
    # the peer is told how much of its speech was heard, and nothing was left to cancel
    assert record.truncated_ms == pytest.approx((record.onset_ns - heard_ns) / 1e6 + 250, abs=2)
    assert [message["ms"] for _, message in peer.received_at if message["type"] == "truncate"] == [record.truncated_ms]
    assert (record.cancelled, peer.at("cancel")) == (False, [])
    assert record.answer.reply_text == "Yes?"
    assert record.answer.ending is Ending.DECLINED
    assert record.answer.reply_pieces == ()


def test_an_agent_that_does_not_yield_is_heard_to_its_end(virtual: Virtual, stage: Any, scripted_peer: Any) -> None:
    peer = scripted_peer(((0.5, _speech(2), {"type": "end"}),), after="audio")
    _on_barge(peer, 1.4, (0.6, *ANSWER_TO_IT))
    record = virtual(lambda: Talk(stage, peer).run(1.0, TurnMode.SERVER_VAD))
    assert (record.stopped_by, record.truncated_ms) == ("itself", None)
    spoken_ns = record.interrupted.marks[Mark.FIRST_AUDIO] + 2_000_000_000
    assert record.last_audible_ns == pytest.approx(spoken_ns, abs=11_000_000)
    assert record.stop_latency_s == pytest.approx((spoken_ns - record.onset_ns) / 1e9, abs=0.011)


def test_in_manual_turns_a_running_answer_is_cancelled_and_what_still_comes_counts(
    virtual: Virtual, stage: Any, scripted_peer: Any
) -> None:
    # Speech in real time from 0.5 s after the commit; a fifth of a second more comes after the cancel.
    pieces = [(0.5 + k / 10, _speech(0.1)) for k in range(12)]
    peer = scripted_peer((*pieces, (1.72, {"type": "end", "reason": "cancelled"})))
    talk = Talk(stage, peer)
    talk.can_cancel = True

    answered: list[float] = []

    def heard() -> None:
        if not answered and peer.at("cancel"):
            answered.append(peer.loop.time())
            peer.loop.call_later(0.9, peer.say, {"type": "call", "id": "c2", "name": "book"}, {"type": "end"})

    peer.on_audio = heard
    record = virtual(lambda: talk.run(1.0, TurnMode.MANUAL))
    assert (record.cancelled, record.stopped_by) == (True, "us")
    assert record.interrupted.ending is Ending.UNFINISHED
    assert record.interrupted.detail == "the caller cut in after 1 s of speech"
    (cancelled_s,) = peer.at("cancel")
    assert record.onset_ns == round(cancelled_s * 1e9)
    assert record.truncated_ms == pytest.approx(1000, abs=2)
    # two more pieces arrived at the cut and 0.1 s later
    assert record.stop_latency_s == pytest.approx(0.2, abs=0.011)
    # nothing of the interrupted answer is in the record of the next
    assert record.answer.reply_pieces == ()
    assert [call.name for call in record.answer.calls] == ["book"]
    assert record.answer.ending is Ending.CALLED


def test_manual_turns_cut_what_is_left_of_a_whole_answer(virtual: Virtual, stage: Any, scripted_peer: Any) -> None:
    peer = scripted_peer(((0.2, _speech(3), {"type": "end"}),), after="text")
    _on_barge(peer, 0.5, (1, *ANSWER_TO_IT))
    talk = Talk(stage, peer)
    talk.can_cancel = True
    record = virtual(lambda: talk.run(0.5, TurnMode.MANUAL, text=True))
    assert (record.cancelled, record.stopped_by) == (False, "us")
    assert record.truncated_ms == pytest.approx(500, abs=2)
    assert record.stop_latency_s == pytest.approx(0, abs=0.011)
    assert record.interrupted.ending is Ending.DECLINED
    assert record.answer.reply_text == "Yes?"


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (((0.2, _speech(0.6), {"type": "end"}),), "over before it had lasted 2 s"),
        (((0.2, {"type": "call", "id": "c", "name": "book"}, {"type": "end"}),), "nothing audible"),
        (((0.2, _speech(3)), (0.3, 1011, "gone")), "the session failed"),
    ],
)
def test_there_is_no_barge_in(virtual: Virtual, stage: Any, scripted_peer: Any, steps: Any, why: str) -> None:
    peer = scripted_peer(steps)
    record = virtual(lambda: Talk(stage, peer).run(2.0, TurnMode.MANUAL))
    assert why in record.not_played
    assert (record.answer, record.onset_ns, record.stop_latency_s) == (None, None, None)
    assert len(peer.at("commit")) == 1


def test_calls_of_the_interrupted_answer_are_counted_and_belong_to_no_turn(
    virtual: Virtual, stage: Any, scripted_peer: Any
) -> None:
    late = {"type": "call", "id": "c1", "name": "pay"}
    peer = scripted_peer(((0.5, _speech(2)), (1.7, late), (1.75, {"type": "end"})), after="audio")
    _on_barge(peer, 1.4, (0.8, *ANSWER_TO_IT))
    record = virtual(lambda: Talk(stage, peer).run(1.0, TurnMode.SERVER_VAD))
    assert record.calls_after_onset == 1
    assert (record.interrupted.calls, record.answer.calls) == ((), ())


def test_full_duplex_speech_after_the_clip_answers_the_clip(virtual: Virtual, stage: Any, scripted_peer: Any) -> None:
    quiet = {"type": "audio", "pcm": base64.b64encode(bytes(4_800)).decode()}
    steps = [(0.5 + k / 10, _speech(0.1)) for k in range(12)] + [(1.7 + k / 10, quiet) for k in range(4)]
    peer = scripted_peer((*steps, (2.2, _speech(0.3))), after="audio")
    talk = Talk(stage, peer, continuous_audio=True, ends_by_silence_s=0.5)
    record = virtual(lambda: talk.run(1.0, TurnMode.SERVER_VAD))
    assert record.stopped_by == "itself"
    assert record.stop_latency_s == pytest.approx(0.2, abs=0.03)
    assert play(record.answer.reply_pieces, RATE_HZ).received_s == pytest.approx(0.3)
    assert record.answer.ending is Ending.DECLINED


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 4_801)), min_size=1, max_size=8),
    st.integers(0, 1_500),
)
def test_nothing_is_heard_after_a_cut_but_what_arrives_later(arrivals: list[tuple[int, int]], cut_ms: int) -> None:
    speech, uncut, t_ms = HeardSpeech(RATE_HZ), [], 0
    for wait_ms, size in arrivals:
        t_ms += wait_ms
        if t_ms <= cut_ms:
            speech.add(t_ms * 1_000_000, bytes(size), "i")
            uncut.append((t_ms * 1_000_000, bytes(size)))
    before_ms = speech.heard_ms(cut_ms * 1_000_000, "i")
    speech.cut(cut_ms * 1_000_000)
    whole, cut = play(uncut, RATE_HZ), speech.playback()
    assert not speech.plays_at(cut_ms * 1_000_000)
    assert cut.end_ns is None or cut.end_ns <= cut_ms * 1_000_000 + 50_000
    assert cut.received_s <= whole.received_s + 1e-9
    assert speech.heard_ms(10**12, "i") == before_ms == int(cut.received_s * 1000 + 1e-6)
    speech.add(10_000 * 1_000_000, bytes(960), "j")
    assert speech.heard_ms(20_000 * 1_000_000, "j") in (19, 20)
