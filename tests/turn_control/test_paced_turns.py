"""Playing the caller in real time, on the virtual clock: pacing, commit, padding, catching up."""

from __future__ import annotations

import asyncio
import gc
import itertools
import weakref
from typing import Any

import numpy as np
import pytest

from adapters.dialect import EncodedClip, Setup, TurnMode
from adapters.session import Session, SessionError
from captures.capture import Capture, Condition, Ending, Mark
from captures.clock import LoopClock
from captures.latency import latencies
from transports.memory import MemoryTransport
from turn_control.quiet_gc import no_full_collections
from turn_control.ticker import Ticker
from turn_control.turn import SpokenTurn, TextTurn, TurnRecord, play_turn

ANSWER = (0.5, {"type": "call", "id": "c1", "name": "lookup_order"}, {"type": "end"})


def clip_of(stage: Any, seconds: float, rate_hz: int = 24_000, chunk_ms: int = 20) -> EncodedClip:
    pcm = np.arange(round(seconds * rate_hz), dtype=np.int16).tobytes()
    return stage.session.encode_clip(pcm, rate_hz, chunk_ms)


def capture_of(record: TurnRecord) -> Capture:
    return Capture(
        identity="x",
        target="t",
        item_id="i",
        variant_id="v",
        condition=Condition.AUDIO,
        finished=True,
        started_ns=0,
        adapter="lines",
        wire_version=1,
        parser_version=1,
        ending=record.ending,
        marks=record.marks,
        pacing=record.pacing,
    )


@pytest.mark.parametrize(("ready_s", "greeting"), [(0.3, False), (1.0, True)])
def test_b06_audio_waits_for_the_settings_and_is_not_made_up_for(
    virtual, scripted_peer, line_dialect, capabilities, ready_s, greeting
):
    peer = scripted_peer([ANSWER], ready_s=ready_s, greeting=greeting)

    async def main() -> TurnRecord:
        clock = LoopClock()
        session = Session(line_dialect(capabilities), MemoryTransport(clock, peer), clock)
        await session.open(Setup(instructions="", tools=(), input_rate_hz=16_000), 5.0)
        pcm = np.arange(1234, 1234 + 32_000, dtype=np.uint16).astype(np.int16).tobytes()
        clip = session.encode_clip(pcm, 16_000, 20)
        record = await play_turn(session, SpokenTurn(clip, 1.9), ticker=Ticker(clock), clock=clock)
        assert b"".join(piece for _, piece in peer.audio()) == pcm
        return record

    record = virtual(main)
    times = [t for t, _ in peer.audio()]
    assert record.ending is Ending.CALLED
    assert np.frombuffer(peer.audio()[0][1], np.int16)[0] == 1234
    assert ready_s <= times[0] <= ready_s + 0.021
    assert all(b - a == pytest.approx(0.020, abs=2e-6) for a, b in itertools.pairwise(times))


def test_b06_a_server_that_confirms_nothing_gets_no_audio(virtual, scripted_peer, line_dialect, capabilities):
    peer = scripted_peer(ready_s=None)

    async def main() -> tuple[str, float]:
        clock = LoopClock()
        session = Session(line_dialect(capabilities), MemoryTransport(clock, peer), clock)
        with pytest.raises(SessionError) as raised:
            await session.open(Setup(instructions="", tools=(), input_rate_hz=16_000), 5.0)
        await session.close()
        return raised.value.event.code, asyncio.get_running_loop().time()

    code, ended_s = virtual(main)
    assert code == "not_ready"
    assert ended_s == pytest.approx(5.0)
    assert peer.audio() == []
    assert peer.ended is not None


def test_b17_pieces_of_15_ms_at_44100_hz_keep_whole_samples_and_the_pace(virtual, scripted_peer, stage):
    peer = scripted_peer([ANSWER])

    async def main() -> None:
        scene = await stage(peer)
        await scene.play(SpokenTurn(clip_of(scene, 1.0, 44_100, 15)))

    virtual(main)
    times = [t for t, _ in peer.audio()]
    assert {len(piece) for _, piece in peer.audio()[:-1]} == {1322, 1324}
    assert sum(len(piece) for _, piece in peer.audio()) == 88_200
    assert 0.970 <= times[-1] - times[0] <= 1.000
    assert peer.at("commit")[0] - times[0] == pytest.approx(1.000, abs=2e-6)
    assert peer.at("commit")[0] - times[0] >= 1.000 - 1e-9


def b18(virtual, scripted_peer, stage, advance, block_s: float) -> tuple[Any, TurnRecord]:
    peer = scripted_peer([ANSWER], on_audio=lambda: advance(0.002))

    async def main() -> TurnRecord:
        scene = await stage(peer)
        if block_s:
            asyncio.get_running_loop().call_later(4.0, advance, block_s)
        return await scene.play(SpokenTurn(clip_of(scene, 10.0), speech_end_s=9.5))

    return peer, virtual(main)


def test_b18_costly_sends_do_not_drift_and_the_commit_is_not_early(virtual, scripted_peer, stage, advance):
    peer, record = b18(virtual, scripted_peer, stage, advance, 0.0)
    times = [round(t - peer.audio()[0][0], 9) for t, _ in peer.audio()]
    commit_s = round(peer.at("commit")[0] - peer.audio()[0][0], 9)
    assert len(times) == 500
    assert all(0 <= round(t - 0.020 * k, 9) <= 0.025 for k, t in enumerate(times))
    assert 9.98 <= times[-1] <= 10.0
    assert 10.0 <= commit_s <= 10.05
    assert peer.at("answer_please")[0] - peer.at("commit")[0] == pytest.approx(0)
    assert record.marks[Mark.CALLER_AUDIO_END] - record.marks[Mark.FIRST_CHUNK] == 10_000_000_000
    assert record.marks[Mark.CALLER_SPEECH_END] - record.marks[Mark.FIRST_CHUNK] == 9_500_000_000
    assert record.pacing.chunks == 500
    assert all(latency.void == () for latency in latencies(capture_of(record)))


def test_b18_a_blocked_loop_is_caught_up_and_flagged(virtual, scripted_peer, stage, advance):
    peer, record = b18(virtual, scripted_peer, stage, advance, 0.300)
    first_s = peer.audio()[0][0]
    heard = b"".join(piece for _, piece in peer.audio())
    assert heard == np.arange(240_000, dtype=np.int16).tobytes()  # none dropped, repeated or out of order
    assert 10.0 <= round(peer.at("commit")[0] - first_s, 9) <= 10.05
    assert record.pacing.lateness_max_ns / 1e9 == pytest.approx(0.300, abs=0.025)
    voids = {latency.name: latency.void for latency in latencies(capture_of(record))}
    assert "chunk lateness p99" in voids["commit_to_tool_call"][0]
    assert record.ending is Ending.CALLED  # the action still counts


def test_a_block_after_the_commit_is_seen_as_lag_and_voids_the_latency(virtual, scripted_peer, stage, advance):
    peer = scripted_peer([ANSWER])

    async def main() -> TurnRecord:
        scene = await stage(peer)
        asyncio.get_running_loop().call_later(1.2, advance, 0.080)
        return await scene.play(SpokenTurn(clip_of(scene, 1.0)))

    record = virtual(main)
    assert 0.075e9 <= max(lag.lag_ns for lag in record.pacing.loop_lags) <= 0.080e9
    assert all("event loop" in latency.void[0] for latency in latencies(capture_of(record)))


def test_b03_b_a_60_ms_utterance_is_padded_and_ends_at_60_ms(virtual, scripted_peer, stage):
    peer = scripted_peer([ANSWER])

    async def main() -> TurnRecord:
        scene = await stage(peer, min_commit_s=0.1)
        return await scene.play(SpokenTurn(clip_of(scene, 0.060)))

    record = virtual(main)
    first_s = peer.audio()[0][0]
    assert sum(len(piece) for _, piece in peer.audio()) == 2 * 2400
    assert [round((t - first_s) * 1000) for t, _ in peer.audio()] == [0, 20, 40, 60, 80]
    assert peer.at("commit")[0] - first_s == pytest.approx(0.100, abs=2e-6)
    assert len(peer.at("commit")) == len(peer.at("answer_please")) == 1
    assert record.pacing.padded_s == pytest.approx(0.040)
    assert record.marks[Mark.CALLER_AUDIO_END] - record.marks[Mark.FIRST_CHUNK] == 60_000_000
    assert latencies(capture_of(record))[0].void == ()


def test_pace_0_sends_all_then_commits_and_its_latencies_are_void(virtual, scripted_peer, stage):
    peer = scripted_peer([ANSWER])

    async def main() -> TurnRecord:
        scene = await stage(peer)
        return await scene.play(SpokenTurn(clip_of(scene, 10.0), 9.0), pace=0)

    record = virtual(main)
    assert len(peer.audio()) == 500
    assert peer.at("commit")[0] < 0.001
    assert Mark.CALLER_AUDIO_END not in record.marks
    assert [latency.void for latency in latencies(capture_of(record))] == [("not paced in real time",)]


def test_twice_the_pace_takes_half_the_time(virtual, scripted_peer, stage):
    peer = scripted_peer([ANSWER])

    async def main() -> None:
        scene = await stage(peer)
        await scene.play(SpokenTurn(clip_of(scene, 1.0)), pace=2.0)

    virtual(main)
    assert peer.at("commit")[0] - peer.audio()[0][0] == pytest.approx(0.5, abs=2e-6)


def test_file_mode_holds_every_piece_and_posts_once(virtual, scripted_peer, stage):
    peer = scripted_peer([ANSWER], after="request")

    async def main() -> TurnRecord:
        scene = await stage(peer, streams_audio=False)
        return await scene.play(SpokenTurn(clip_of(scene, 10.0), 9.0))

    record = virtual(main)
    assert [message["type"] for _, message in peer.received_at] == ["setup", "request"]
    assert peer.received_at[-1][1]["pieces"] == 500
    assert record.pacing.chunks == 0
    (latency,) = latencies(capture_of(record))
    assert (latency.name, latency.seconds, latency.void) == ("request_to_tool_call", pytest.approx(0.5), ())


def test_a_text_twin_is_one_frame_and_its_commit_is_that_frame(virtual, scripted_peer, stage):
    peer = scripted_peer([(0.5, {"type": "text", "text": "No."}, {"type": "end"})], after="text")

    async def main() -> TurnRecord:
        scene = await stage(peer)
        return await scene.play(TextTurn("Pay my bill."))

    record = virtual(main)
    assert peer.received_at[-1][1] == {"type": "text", "text": "Pay my bill."}
    assert record.ending is Ending.DECLINED
    assert record.reply_text == "No."
    assert record.marks[Mark.FIRST_TEXT] - record.marks[Mark.COMMIT] == pytest.approx(0.5e9, abs=2000)


def test_sessions_that_start_together_do_not_tick_together(virtual, scripted_peer, stage):
    peers = [scripted_peer([ANSWER]) for _ in range(8)]

    async def main() -> None:
        scenes = [await stage(peer) for peer in peers]
        shared = scenes[0].ticker
        async with asyncio.TaskGroup() as group:
            for scene in scenes:
                turn = SpokenTurn(clip_of(scene, 0.2))
                group.create_task(play_turn(scene.session, turn, ticker=shared, clock=scene.clock))

    virtual(main)
    starts = {round(peer.audio()[0][0], 4) for peer in peers}
    assert len(starts) >= 7
    assert max(starts) <= 0.021


def test_a_turn_mode_that_the_target_lacks_is_refused_before_any_audio(virtual, scripted_peer, stage):
    peer = scripted_peer()

    async def main() -> TurnRecord:
        scene = await stage(peer)
        return await scene.play(SpokenTurn(clip_of(scene, 0.2)), mode=TurnMode.SEMANTIC_VAD)

    record = virtual(main)
    assert record.ending is Ending.CONFIGURATION_ERROR
    assert record.error is not None
    assert "semantic_vad" in record.error.message
    assert peer.audio() == []


def test_a_cancelled_turn_stops_sending(virtual, scripted_peer, stage):
    peer = scripted_peer()

    async def main() -> None:
        scene = await stage(peer)
        playing = asyncio.create_task(scene.play(SpokenTurn(clip_of(scene, 10.0))))
        await asyncio.sleep(1.0)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
        sent = len(peer.audio())
        await asyncio.sleep(1.0)
        assert len(peer.audio()) == sent

    virtual(main)


def test_a_fault_in_sending_reaches_the_caller_of_the_turn(virtual, scripted_peer, stage):
    def broken() -> None:
        raise OSError("no such device")

    async def main() -> None:
        scene = await stage(scripted_peer(on_audio=broken))
        await scene.play(SpokenTurn(clip_of(scene, 1.0)))

    with pytest.raises(OSError, match="no such device"):
        virtual(main)


def test_a_finished_turn_and_its_session_need_no_garbage_collector(virtual, scripted_peer, stage):
    async def main() -> tuple[TurnRecord, weakref.ref[Session]]:
        peer = scripted_peer([ANSWER])
        scene = await stage(peer)
        record = await scene.play(SpokenTurn(clip_of(scene, 1.0)))
        await scene.session.close()
        peer.wire = scene.session._transport = None  # the test's own two ends hold each other
        return record, weakref.ref(scene.session)

    gc.collect()
    gc.disable()
    try:
        record, session = virtual(main)
        assert record.ending is Ending.CALLED
        assert session() is None
    finally:
        gc.enable()


def test_full_collections_are_put_off_and_settings_restored():
    before = gc.get_threshold()
    with no_full_collections():
        assert gc.isenabled()
        assert gc.get_threshold()[:2] == before[:2]
        assert gc.get_threshold()[2] >= 10**9
    assert gc.get_threshold() == before
