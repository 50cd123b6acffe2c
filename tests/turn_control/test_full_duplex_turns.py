"""Agents whose audio never pauses and whose turns no event ends: silence and open work decide. On the virtual clock."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from adapters.dialect import TurnMode
from captures.capture import Ending, Mark
from turn_control.limits import Limits
from turn_control.turn import SpokenTurn

CLIP_S = 1.0
QUIET_S = 1.5


def sound(ms: int, level: int = 3000) -> dict[str, str]:
    wave = (level * np.sin(np.arange(24 * ms) / 5)).astype("<i2")
    return {"type": "audio", "pcm": base64.b64encode(wave.tobytes()).decode()}


def silence(ms: int) -> dict[str, str]:
    return sound(ms, 0)


def work(work_id: str, still_open: bool) -> dict[str, object]:
    return {"type": "delegated", "id": work_id, "open": still_open}


def call(call_id: str, name: str) -> dict[str, object]:
    return {"type": "call", "id": call_id, "name": name, "arguments": {}}


def hum(start_s: float, end_s: float, every_s: float = 0.1):
    """Digital silence of an agent that never pauses."""
    count = round((end_s - start_s) / every_s)
    return [(round(start_s + k * every_s, 6), silence(round(every_s * 1000))) for k in range(count)]


@pytest.fixture
def duplex(virtual, scripted_peer, stage):
    """One spoken turn of `CLIP_S`; step times count from the first piece of the clip."""

    def run(steps, *, speech_end_s=0.8, limits=None, pace=1.0):
        peer = scripted_peer(sorted(steps, key=lambda step: step[0]), after="audio")

        async def main():
            scene = await stage(peer, ends_by_silence_s=QUIET_S, continuous_audio=True, deterministic_turns=False)
            pcm = np.ones(round(24_000 * CLIP_S), np.int16).tobytes()
            clip = scene.session.encode_clip(pcm, 24_000, 20)
            return await scene.play(SpokenTurn(clip, speech_end_s), limits=limits, mode=TurnMode.SERVER_VAD, pace=pace)

        return peer, virtual(main)

    return run


def since_start_s(peer, record, mark: Mark) -> float:
    return (record.marks[mark] - record.marks[Mark.FIRST_CHUNK]) / 1e9


def ended_s(peer) -> float:
    return peer.loop.time() - peer.audio()[0][0]


def test_silence_after_speech_ends_the_turn_and_caller_audio_goes_on_until_then(duplex):
    steps = [*hum(0.1, 4.0), (1.6, sound(300)), (1.9, sound(300))]
    peer, record = duplex(steps)
    assert record.ending is Ending.DECLINED
    assert record.detail == "1.5 s of silence"
    assert since_start_s(peer, record, Mark.ANSWER_END) == pytest.approx(1.9, abs=2e-6)
    heard_s = 1.9 + 0.3
    assert ended_s(peer) == pytest.approx(heard_s + QUIET_S, abs=2e-3)
    sent = [t for t, _ in peer.audio()]
    assert np.diff(sent) == pytest.approx([0.02] * (len(sent) - 1), abs=2e-6)
    assert sent[-1] - sent[0] == pytest.approx(heard_s + QUIET_S, abs=0.021)
    assert record.pacing.trailing_silence_s == pytest.approx(heard_s - CLIP_S + QUIET_S, abs=0.021)


def test_no_commit_is_sent_or_marked_and_latencies_start_at_the_end_of_the_speech(duplex):
    peer, record = duplex([*hum(0.1, 5.0), (1.6, sound(100)), (2.0, call("c1", "pay_bill"))])
    assert Mark.COMMIT not in record.marks
    assert Mark.SERVER_SPEECH_STOPPED not in record.marks
    assert peer.at("commit") == peer.at("answer_please") == []
    assert record.pacing.commit_ns is None
    assert since_start_s(peer, record, Mark.CALLER_SPEECH_END) == pytest.approx(0.8, abs=2e-6)
    assert since_start_s(peer, record, Mark.FIRST_CALL_COMPLETE) == pytest.approx(2.0, abs=2e-6)


def test_silence_is_neither_first_audio_nor_part_of_the_reply(duplex):
    peer, record = duplex([*hum(0.1, 4.0), (1.6, sound(200)), (1.8, silence(100)), (1.9, sound(200))])
    assert since_start_s(peer, record, Mark.FIRST_AUDIO) == pytest.approx(1.6, abs=2e-6)
    first_ns, first = record.reply_pieces[0]
    assert first_ns == record.marks[Mark.FIRST_AUDIO]
    assert np.frombuffer(first, "<i2").any()
    assert any(not np.frombuffer(pcm, "<i2").any() for _, pcm in record.reply_pieces[1:])  # pauses are kept


def test_a_turn_with_open_work_is_not_over(duplex):
    steps = [*hum(0.1, 12.0), (1.4, sound(200)), (1.5, work("d1", True)), (6.0, call("c1", "pay_bill"))]
    peer, record = duplex([*steps, (6.1, work("d1", False))])
    assert record.ending is Ending.CALLED
    assert [one.name for one in record.calls] == ["pay_bill"]
    assert since_start_s(peer, record, Mark.ANSWER_END) == pytest.approx(6.0, abs=2e-6)
    assert ended_s(peer) == pytest.approx(6.1 + QUIET_S, abs=2e-3)
    assert peer.audio()[-1][0] - peer.audio()[0][0] > 7.5  # a call does not stop the caller's side


def test_one_of_two_pieces_of_work_still_open_keeps_the_turn_open(duplex):
    steps = [(1.2, work("d1", True)), (1.3, work("d2", True)), (1.4, call("c1", "pay_bill")), (1.5, work("d1", False))]
    peer, record = duplex([*steps, (5.0, work("d2", False))])
    assert record.ending is Ending.CALLED
    assert ended_s(peer) == pytest.approx(5.0 + QUIET_S, abs=2e-3)


def test_work_that_never_ends_is_cut_by_the_turn_limit(duplex):
    peer, record = duplex([(1.2, work("d1", True)), (1.4, sound(200))], limits=Limits(turn_s=4.0))
    assert record.ending is Ending.UNFINISHED
    assert record.detail == "turn limit of 4 s passed with delegated work open"
    assert ended_s(peer) == pytest.approx(CLIP_S + 4.0, abs=2e-3)


def test_what_is_said_while_the_caller_speaks_is_no_answer_yet(duplex):
    peer, record = duplex([(0.4, sound(100)), (4.0, call("c1", "pay_bill"))])
    assert record.ending is Ending.CALLED
    assert ended_s(peer) == pytest.approx(4.0 + QUIET_S, abs=2e-3)


def test_a_listener_that_says_nothing_more_gave_no_answer(duplex):
    _, record = duplex([(0.4, sound(100)), *hum(0.5, 6.0)], limits=Limits(turn_s=5.0))
    assert record.ending is Ending.NO_ANSWER
    assert record.pacing.trailing_silence_s == pytest.approx(5.0, abs=0.021)


def test_only_silence_is_no_answer(duplex):
    _, record = duplex(hum(0.1, 6.0), limits=Limits(turn_s=5.0))
    assert record.ending is Ending.NO_ANSWER
    assert record.reply_pieces == ()
    assert Mark.FIRST_EVENT not in record.marks


def test_an_answer_in_the_noise_after_the_speech_ends_after_the_clip(duplex):
    peer, record = duplex([(0.85, sound(50))])
    assert record.ending is Ending.DECLINED
    assert ended_s(peer) == pytest.approx(CLIP_S + QUIET_S, abs=2e-3)


def test_a_call_while_the_caller_speaks_lets_the_clip_play_to_its_end(duplex):
    peer, record = duplex([(0.5, call("c1", "pay_bill"))])
    assert record.ending is Ending.CALLED
    assert sum(np.frombuffer(pcm, "<i2").any() for _, pcm in peer.audio()) == 50
    assert ended_s(peer) == pytest.approx(CLIP_S + QUIET_S, abs=2e-3)
    assert Mark.CALLER_AUDIO_END in record.marks


def test_audio_stops_when_the_connection_fails(duplex):
    failed = {"type": "failed", "kind": "transient", "code": "expired", "message": "session over"}
    peer, record = duplex([(1.5, failed)])
    assert record.ending is Ending.INFRASTRUCTURE_ERROR
    assert peer.audio()[-1][0] - peer.audio()[0][0] <= 1.5


def test_silence_at_pace_0_is_sent_in_real_time(duplex):
    peer, record = duplex([(0.5, sound(100)), (0.9, call("c1", "pay_bill"))], pace=0)
    assert record.ending is Ending.CALLED
    assert peer.loop.time() == pytest.approx(0.9 + QUIET_S, abs=0.05)
    assert len(peer.audio()) == pytest.approx(50 + (0.9 + QUIET_S) / 0.02, abs=2)
