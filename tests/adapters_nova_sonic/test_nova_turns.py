"""Whole turns between both halves of Nova Sonic, on the virtual clock."""

from __future__ import annotations

import orjson
import pytest

from adapters.server import AnswerWanted, Reply, ReplyCall
from captures.capture import Ending, Mark
from turn_control.limits import Limits

FORECAST = ReplyCall("forecast", {"city": "Lima", "days": 2})


def names(peer):
    return [next(iter(orjson.loads(frame.payload)["event"])) for frame in peer.received_frames]


@pytest.mark.parametrize(("sensitivity", "silence_s"), [("HIGH", 1.5), ("MEDIUM", 1.75), ("LOW", 2.0)])
def test_the_vendors_endpointing_ends_the_turn_in_our_paced_silence(turn, sensitivity, silence_s):
    _, record = turn(Reply((FORECAST,), input_transcript="the weather"), sensitivity=sensitivity)
    assert record.ending is Ending.CALLED
    assert record.detail == "the agent waits for the result"
    assert [(one.name, one.arguments) for one in record.calls] == [("forecast", {"city": "Lima", "days": 2})]
    assert record.input_transcript == "the weather"
    late_s = (record.marks[Mark.FIRST_CALL_COMPLETE] - record.marks[Mark.CALLER_SPEECH_END]) / 1e9
    assert late_s == pytest.approx(silence_s + 0.2, abs=0.03)
    assert Mark.COMMIT not in record.marks
    assert record.pacing.trailing_silence_s == pytest.approx(silence_s + 0.2 - 0.3 + 1.0, abs=0.05)


def test_events_go_in_the_vendors_order(turn):
    peer, _ = turn(Reply((FORECAST,)))
    order = [name for name in names(peer) if name != "audioInput"]
    text = ["contentStart", "textInput", "contentEnd"]
    assert order == ["sessionStart", "promptStart", *text, "contentStart", "contentEnd", "promptEnd", "sessionEnd"]


def test_a_spoken_answer_ends_with_its_audio_and_keeps_the_words_that_follow(turn):
    _, record = turn(Reply(text="One moment", pcm=b"\x01\x10" * 24_000))
    assert record.ending is Ending.DECLINED
    assert record.reply_transcript == "One moment"
    assert sum(len(pcm) for _, pcm in record.reply_pieces) == 48_000
    assert record.reply_rate_hz == 24_000


def test_the_text_twin_goes_beside_the_open_audio(turn):
    peer, record = turn(Reply((FORECAST,)), words="What is the weather?")
    assert record.ending is Ending.CALLED
    assert AnswerWanted("What is the weather?") in peer.intents
    assert "audioInput" not in names(peer)


def test_a_silent_agent_is_bounded_by_the_turn_limit(turn):
    _, record = turn(Reply(), limits=Limits(turn_s=4.0))
    assert record.ending is Ending.NO_ANSWER
    assert record.pacing.trailing_silence_s == pytest.approx(4.0, abs=0.03)
