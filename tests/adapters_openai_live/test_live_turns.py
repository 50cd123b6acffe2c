"""Whole turns between both halves of OpenAI Live, on the virtual clock."""

from __future__ import annotations

import orjson
import pytest

from adapters.openai_live import DIALECT
from adapters.server import Reply, ReplyCall
from captures.capture import Ending, Mark
from turn_control.limits import Limits

PAY = ReplyCall("pay_bill", {"amount": 12.5, "note": 'ünïcode "quoted"'})


def types(peer):
    return [orjson.loads(frame.payload)["type"] for frame in peer.received_frames]


def test_a_delegated_call_is_read_and_no_turn_is_ever_committed(turn):
    peer, record = turn(Reply(calls=(PAY, ReplyCall("escalate", {})), input_transcript="pay my bill"))
    assert record.ending is Ending.CALLED
    assert [(one.name, one.arguments) for one in record.calls] == [("pay_bill", dict(PAY.arguments)), ("escalate", {})]
    assert record.input_transcript == "pay my bill"
    assert set(types(peer)) == {"session.start", "session.input_audio.append", "session.close"}
    assert Mark.COMMIT not in record.marks
    # 1 s of quiet ends the turn for the emulator, 0.4 s later it calls; the clip's own quiet counts.
    late_s = (record.marks[Mark.FIRST_CALL_COMPLETE] - record.marks[Mark.CALLER_SPEECH_END]) / 1e9
    assert late_s == pytest.approx(1.4, abs=0.03)


def test_a_spoken_answer_ends_when_it_has_been_heard_and_silence_follows(turn, voice):
    _, record = turn(Reply(text="All right then.", pcm=voice(2.0)), end_silence_s=1.0)
    assert record.ending is Ending.DECLINED
    assert record.reply_transcript.split() == ["All", "right", "then."]
    assert record.detail == "1 s of silence"
    spoken_s = (record.marks[Mark.ANSWER_END] - record.marks[Mark.FIRST_AUDIO]) / 1e9
    assert spoken_s == pytest.approx(2.0, abs=0.03)  # in step with the caller's audio, so in real time
    assert sum(len(pcm) for _, pcm in record.reply_pieces) == pytest.approx(48_000 * 3.0, abs=4_000)


def test_16_khz_both_ways(turn, voice):
    _, record = turn(Reply(text="Yes.", pcm=voice(1.0)), rate_hz=16_000, end_silence_s=0.5)
    assert record.ending is Ending.DECLINED
    assert record.reply_rate_hz == 16_000
    spoken_s = (record.marks[Mark.ANSWER_END] - record.marks[Mark.FIRST_AUDIO]) / 1e9
    assert spoken_s == pytest.approx(1.0, abs=0.03)


def test_an_agent_that_keeps_silent_gave_no_answer(turn):
    _, record = turn(Reply(), limits=Limits(turn_s=5.0))
    assert record.ending is Ending.NO_ANSWER
    assert record.reply_pieces == ()
    assert record.pacing.trailing_silence_s == pytest.approx(5.0, abs=0.03)


def test_a_failed_delegate_is_a_failure_and_not_a_silence(turn):
    frames = DIALECT.server().failure("credit_balance_exhausted", "no credit left")
    _, record = turn(frames)
    assert record.ending is Ending.INFRASTRUCTURE_ERROR
    assert (record.error.kind, record.error.code) == ("quota", "credit_balance_exhausted")


@pytest.mark.parametrize(
    ("fault", "arguments"),
    [("call-in-deltas", dict(PAY.arguments)), ("interleaved-calls", dict(PAY.arguments)), ("cut-arguments", None)],
)
def test_misshapen_calls_end_as_calls_readable_or_not(turn, fault, arguments):
    server = DIALECT.server()
    reply = Reply(calls=(PAY, ReplyCall("escalate", {"why": "angry"})))
    frames = list(server.answer_faults[fault](server.answer(reply)))
    _, record = turn(frames)
    assert record.ending is Ending.CALLED
    assert [one.name for one in record.calls] == ["pay_bill", "escalate"]
    assert record.calls[0].arguments == arguments
