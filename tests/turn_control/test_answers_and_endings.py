"""Whole turns against scripted peers on the virtual clock: when an answer ends, and how."""

from __future__ import annotations

import base64
import itertools

import numpy as np
import pytest

from adapters.dialect import TurnMode
from captures.capture import Ending, Mark
from turn_control.limits import Limits
from turn_control.turn import SpokenTurn

END = {"type": "end"}


def call(call_id: str, name: str | None, index: int = 0, **arguments: object) -> dict[str, object]:
    return {"type": "call", "id": call_id, "name": name, "index": index, "arguments": arguments}


def audio(ms: int) -> dict[str, str]:
    return {"type": "audio", "pcm": base64.b64encode(bytes(48 * ms)).decode()}


@pytest.fixture
def answer_to(virtual, scripted_peer, stage):
    """Plays one spoken turn to a peer with these steps; the peer and the turn's record."""

    def run(steps, *, clip_s=0.2, speech_end_s=None, limits=None, mode=TurnMode.MANUAL, after="answer_please", **able):
        peer = scripted_peer(steps, after=after)

        async def main():
            scene = await stage(peer, **able)
            pcm = np.ones(round(24_000 * clip_s), np.int16).tobytes()
            clip = scene.session.encode_clip(pcm, 24_000, 20)
            return await scene.play(SpokenTurn(clip, speech_end_s), limits=limits, mode=mode)

        return peer, virtual(main)

    return run


def since_commit_s(record, mark: Mark) -> float:
    return (record.marks[mark] - record.marks[Mark.COMMIT]) / 1e9


def test_b07_a_audio_on_both_sides_of_the_call_is_kept(answer_to):
    steps = [(0.3, audio(200)), (0.5, call("f1", "send_code", phone="5550100")), (0.8, audio(300)), (1.0, END)]
    _, record = answer_to(steps, waits_for_tool_result=True)
    assert record.ending is Ending.CALLED
    assert [(one.name, one.arguments) for one in record.calls] == [("send_code", {"phone": "5550100"})]
    assert sum(len(pcm) for _, pcm in record.reply_pieces) == 500 * 48
    assert record.reply_rate_hz == 24_000
    assert since_commit_s(record, Mark.FIRST_AUDIO) == pytest.approx(0.3, abs=2e-6)
    assert since_commit_s(record, Mark.FIRST_CALL_COMPLETE) == pytest.approx(0.5, abs=2e-6)
    assert since_commit_s(record, Mark.ANSWER_END) == pytest.approx(1.0, abs=2e-6)


def test_b07_b_the_quiet_limit_ends_a_turn_that_waits_for_the_tool(answer_to, virtual):
    peer, record = answer_to([(0.3, audio(200)), (0.5, call("f1", "send_code"))], waits_for_tool_result=True)
    assert record.ending is Ending.CALLED
    assert record.error is None
    assert since_commit_s(record, Mark.ANSWER_END) == pytest.approx(0.5, abs=2e-6)
    assert peer.loop.time() - peer.at("commit")[0] == pytest.approx(1.5, abs=1e-3)


def test_b08_trailing_silence_stops_when_the_call_has_been_read(answer_to):
    steps = [(3.2, call("f1", "send_code"))]
    peer, record = answer_to(steps, clip_s=3.0, after="audio", mode=TurnMode.SERVER_VAD, waits_for_tool_result=True)
    call_s = peer.audio()[0][0] + 3.2
    assert record.ending is Ending.CALLED
    assert call_s - 0.021 <= peer.audio()[-1][0] <= call_s
    assert peer.at("commit") == []
    assert record.pacing.trailing_silence_s == pytest.approx(0.2, abs=0.021)
    assert record.pacing.commit_ns is None


def test_b08_a_close_after_the_call_still_counts_as_called(answer_to):
    steps = [(0.2, call("f1", "send_code")), (0.4, 1008, "no audio now")]
    _, record = answer_to(steps, waits_for_tool_result=True)
    assert record.ending is Ending.CALLED
    assert (record.closed.code, record.closed.reason) == (1008, "no audio now")
    assert "1008" in record.detail


def test_b08_a_close_before_any_answer_is_an_infrastructure_error(answer_to):
    peer, record = answer_to([(1.5, 1008, "policy")], clip_s=3.0, after="audio", waits_for_tool_result=True)
    assert record.ending is Ending.INFRASTRUCTURE_ERROR
    assert (record.error.code, record.error.message) == ("1008", "policy")
    assert peer.audio()[-1][0] - peer.audio()[0][0] <= 1.5
    assert Mark.CALLER_AUDIO_END not in record.marks
    assert peer.at("commit") == []


def test_a_lost_connection_without_a_close_frame_is_an_infrastructure_error(answer_to):
    _, record = answer_to([(0.5, audio(100)), (0.7, None, "")])
    assert record.ending is Ending.INFRASTRUCTURE_ERROR
    assert (record.error.kind, record.error.code) == ("transient", "connection_lost")


def test_a_close_during_the_grace_leaves_the_answer_as_it_is(answer_to):
    steps = [(0.5, {"type": "text", "text": "No."}, END), (0.6, None, "")]
    _, record = answer_to(steps, late_call_grace_s=2.0)
    assert record.ending is Ending.DECLINED


def test_an_answer_does_not_end_at_its_first_call(answer_to):
    steps = [(0.5, call("c2", "escalate", 1)), (0.9, call("c1", "pay_bill", 0)), (1.2, END)]
    _, record = answer_to(steps)
    assert record.ending is Ending.CALLED
    assert [one.name for one in record.calls] == ["pay_bill", "escalate"]  # lowest output index first
    assert since_commit_s(record, Mark.FIRST_CALL_COMPLETE) == pytest.approx(0.9, abs=2e-6)


def test_a_call_within_the_grace_counts_and_one_after_it_does_not(answer_to):
    steps = [(0.5, END), (0.8, call("c1", "pay_bill")), (1.6, call("c2", "escalate"))]
    _, record = answer_to(steps, late_call_grace_s=0.5)
    assert record.ending is Ending.CALLED
    assert [one.name for one in record.calls] == ["pay_bill"]
    assert since_commit_s(record, Mark.ANSWER_END) == pytest.approx(0.5, abs=2e-6)


def test_events_behind_the_end_in_the_same_frame_are_kept(answer_to):
    _, record = answer_to([(0.5, {"type": "said", "text": "Done."}, END, {"type": "usage", "counts": {"tokens": 7}})])
    assert record.ending is Ending.DECLINED
    assert record.usage == {"tokens": 7}
    assert record.reply_transcript == "Done."


def test_silence_up_to_the_turn_limit_is_no_answer(answer_to):
    peer, record = answer_to([], limits=Limits(turn_s=8))
    assert record.ending is Ending.NO_ANSWER
    assert Mark.ANSWER_END not in record.marks
    assert peer.loop.time() - peer.at("commit")[0] == pytest.approx(8.0, abs=1e-3)


def test_b03_a_refused_commit_without_an_answer_is_not_no_answer(answer_to):
    warning = {"type": "warned", "code": "input_audio_buffer_commit_empty", "message": "buffer too small"}
    _, record = answer_to([(0.05, warning)], limits=Limits(turn_s=8))
    assert record.ending is Ending.NO_ANSWER, "a warning about something else excuses no silence"
    _, record = answer_to([(0.05, warning | {"spoils_turn": True})], limits=Limits(turn_s=8))
    assert record.ending is Ending.INFRASTRUCTURE_ERROR
    assert record.error.code == "input_audio_buffer_commit_empty"


def test_b03_a_with_an_answer_the_same_complaint_is_a_warning(answer_to):
    warning = {"type": "warned", "code": "input_audio_buffer_commit_empty", "message": "buffer too small"}
    _, record = answer_to([(0.05, warning), (0.5, call("c1", "lookup_order"), END)])
    assert record.ending is Ending.CALLED
    assert record.warnings == ("input_audio_buffer_commit_empty: buffer too small",)


@pytest.mark.parametrize("reason", ["length", "content_filter", "incomplete", "cancelled"])
def test_an_answer_cut_short_is_unfinished_under_its_own_reason(answer_to, reason):
    steps = [
        (0.5, {"type": "call_started", "id": "c1", "name": "pay"}, {"type": "call_part", "id": "c1", "part": '{"a'})
    ]
    steps += [(0.6, {"type": "end", "reason": reason, "detail": "said so"})]
    _, record = answer_to(steps)
    assert (record.ending, record.detail) == (Ending.UNFINISHED, f"{reason}: said so")
    (cut,) = record.calls
    assert (cut.name, cut.complete, cut.arguments, cut.arguments_json) == ("pay", False, None, '{"a')
    assert Mark.FIRST_CALL_NAMED in record.marks
    assert Mark.FIRST_CALL_COMPLETE not in record.marks


def test_the_turn_limit_while_answering_is_unfinished(answer_to):
    _, record = answer_to([(0.5 * k, audio(100)) for k in range(1, 20)], limits=Limits(turn_s=3))
    assert record.ending is Ending.UNFINISHED
    assert "turn limit of 3 s" in record.detail


def test_a_call_that_never_became_whole_is_a_call(answer_to):
    _, record = answer_to([(0.5, {"type": "call_started", "id": "c1"}), (0.6, END)])
    assert record.ending is Ending.CALLED
    assert (record.calls[0].name, record.calls[0].complete) == (None, False)


def test_a_failure_and_a_refusal_have_their_own_endings(answer_to):
    _, failed = answer_to([(0.5, {"type": "failed", "kind": "rate_limit", "code": "rl", "message": "slow down"})])
    assert (failed.ending, failed.error.kind, failed.error.code) == (Ending.INFRASTRUCTURE_ERROR, "rate_limit", "rl")
    _, refused = answer_to([(0.5, {"type": "refused", "code": "bad_tool", "message": "tools[3]"})])
    assert (refused.ending, refused.error.kind) == (Ending.CONFIGURATION_ERROR, "refused")


def test_b09_an_empty_interrupted_pair_before_the_commit_ends_nothing(answer_to):
    steps = [
        (0.0, {"type": "interrupted"}, END),
        (2.2, audio(20)),
        (2.4, call("c1", "pay_bill", amount=40)),
        (2.5, END),
    ]
    _, record = answer_to(steps, clip_s=1.5, after="audio")
    assert record.ending is Ending.CALLED
    assert record.calls[0].arguments == {"amount": 40}
    assert since_commit_s(record, Mark.FIRST_AUDIO) == pytest.approx(0.7, abs=2e-6)


def test_the_peers_turn_detection_ends_the_silence_and_gets_no_commit(answer_to):
    steps = [(1.5, {"type": "speech_stopped"}, {"type": "committed"}), (2.0, call("c1", "pay_bill"), END)]
    peer, record = answer_to(steps, clip_s=1.0, speech_end_s=0.9, after="audio", mode=TurnMode.SERVER_VAD)
    first_s = peer.audio()[0][0]
    assert record.ending is Ending.CALLED
    assert peer.audio()[-1][0] - first_s == pytest.approx(1.48, abs=0.021)
    assert peer.at("commit") == peer.at("answer_please") == []
    assert Mark.COMMIT not in record.marks
    stopped_ns, spoken_ns = record.marks[Mark.SERVER_SPEECH_STOPPED], record.marks[Mark.CALLER_SPEECH_END]
    assert (stopped_ns - spoken_ns) / 1e9 == pytest.approx(0.6, abs=1e-3)


def test_a_pause_in_the_speech_that_the_peer_takes_for_its_end_stops_nothing(answer_to):
    stopped = {"type": "speech_stopped"}
    steps = [(0.5, stopped), (0.6, audio(20)), (0.7, {"type": "end", "reason": "cancelled"})]
    steps += [(1.5, stopped), (2.0, call("c1", "pay_bill"), END)]
    peer, record = answer_to(steps, clip_s=1.0, after="audio", mode=TurnMode.SERVER_VAD)
    assert record.ending is Ending.CALLED
    assert peer.audio()[-1][0] - peer.audio()[0][0] == pytest.approx(1.48, abs=0.021)


def test_an_answer_to_half_the_question_is_all_there_is_when_nothing_follows(answer_to):
    steps = [(0.5, audio(20)), (0.6, END)]
    _, record = answer_to(steps, clip_s=1.0, after="audio", mode=TurnMode.SERVER_VAD, limits=Limits(turn_s=5))
    assert (record.ending, record.detail) == (Ending.DECLINED, "answered before the caller had finished")


def test_trailing_silence_is_bounded(answer_to):
    limits = Limits(turn_s=12, trailing_silence_s=4)
    peer, record = answer_to([], clip_s=1.0, mode=TurnMode.SERVER_VAD, limits=limits)
    assert record.ending is Ending.NO_ANSWER
    assert record.pacing.trailing_silence_s == pytest.approx(4.0)
    assert peer.audio()[-1][0] - peer.audio()[0][0] == pytest.approx(4.98, abs=1e-3)


def test_late_silence_is_not_made_up_for_with_a_burst(answer_to, advance, scripted_peer, monkeypatch):
    """A loop blocked for 200 ms in the trailing silence: afterwards pieces are a chunk apart again."""
    original = scripted_peer.connected

    def connected(peer, wire, endpoint):
        original(peer, wire, endpoint)
        peer.loop.call_later(2.0, advance, 0.2)

    monkeypatch.setattr(scripted_peer, "connected", connected)
    peer, record = answer_to([], clip_s=1.0, mode=TurnMode.SERVER_VAD, limits=Limits(turn_s=5, trailing_silence_s=3))
    times = [t for t, _ in peer.audio()]
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert max(gaps) == pytest.approx(0.2, abs=0.021)
    assert min(gaps) == pytest.approx(0.020, abs=1e-5)
    assert record.pacing.lateness_max_ns / 1e9 == pytest.approx(0.2, abs=0.021)


def test_audio_stops_at_a_call_before_the_commit(answer_to):
    peer, record = answer_to([(0.5, call("c1", "pay_bill")), (0.6, END)], clip_s=2.0, after="audio")
    assert record.ending is Ending.CALLED
    assert peer.audio()[-1][0] - peer.audio()[0][0] <= 0.5
    assert peer.at("commit") == []
    assert "before the end of the caller's turn" in record.warnings[0]


def test_reply_audio_and_words_are_bounded(answer_to):
    limits = Limits(max_reply_bytes=10_000, max_text_chars=5)
    _, record = answer_to(
        [(0.1 * k, audio(100), {"type": "said", "text": "abc"}) for k in (1, 2, 3)] + [(0.5, END)], limits=limits
    )
    assert sum(len(pcm) for _, pcm in record.reply_pieces) == 9_600
    assert record.reply_transcript == "abcab"
    assert len(record.warnings) == 2
