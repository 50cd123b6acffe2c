"""Bug cases B18 and B19 with many calls on one event loop and one ticker, on the virtual clock."""

from __future__ import annotations

import asyncio
import base64
import random
from typing import Any

import numpy as np
import pytest

from adapters.dialect import Setup
from adapters.session import Session
from captures.capture import Ending, Mark
from captures.clock import LoopClock
from captures.playback import play
from transports.memory import MemoryTransport
from turn_control.ticker import Ticker
from turn_control.turn import SpokenTurn, TurnRecord, play_turn

CALLS = 60
RATE_HZ = 24_000
CLIP_S = 10.0
COST_S = 0.00012
"""Of each send: sixty calls of fifty pieces a second keep the loop busy for a third of the time."""


def _reply(opening: np.ndarray[Any, Any]) -> dict[str, Any]:
    tone = np.rint(8000 * np.sin(2 * np.pi * 440 * np.arange(round(0.6 * RATE_HZ)) / RATE_HZ))
    pcm = np.concatenate([opening, tone]).astype("<i2").tobytes()
    return {"type": "audio", "pcm": base64.b64encode(pcm).decode()}


SILENCE = np.zeros(round(0.4 * RATE_HZ))
HISS = np.random.default_rng(7).normal(0, 32767 * 10 ** (-70 / 20), SILENCE.size)
CLICK = np.where(np.arange(SILENCE.size) == round(0.05 * RATE_HZ), 32767, 0)


def _play_all(
    virtual: Any, scripted_peer: Any, line_dialect: Any, capabilities: Any, advance: Any, block_s: float
) -> list[tuple[Any, TurnRecord]]:
    """Sixty calls that begin within a second of each other; every third with another opening of the reply."""
    openings = [_reply(opening) for opening in (SILENCE, HISS, CLICK)]
    peers = [
        scripted_peer([(0.2, openings[n % 3], {"type": "end"})], on_audio=lambda: advance(COST_S)) for n in range(CALLS)
    ]

    async def main() -> list[TurnRecord]:
        clock = LoopClock()
        ticker = Ticker(clock, random.Random(7))
        start = random.Random(3)
        if block_s:
            asyncio.get_running_loop().call_later(5.0, advance, block_s)

        async def call(peer: Any, wait_s: float) -> TurnRecord:
            await asyncio.sleep(wait_s)
            session = Session(line_dialect(capabilities), MemoryTransport(clock, peer), clock)
            await session.open(Setup(instructions="", tools=(), input_rate_hz=RATE_HZ), 5.0)
            pcm = np.arange(round(CLIP_S * RATE_HZ), dtype=np.int64).astype(np.int16).tobytes()
            clip = session.encode_clip(pcm, RATE_HZ, 20)
            return await play_turn(session, SpokenTurn(clip, speech_end_s=9.5), ticker=ticker, clock=clock)

        return await asyncio.gather(*(call(peer, start.uniform(0, 1)) for peer in peers))

    return list(zip(peers, virtual(main), strict=True))


def test_b18_sixty_costly_calls_do_not_drift(
    virtual: Any, scripted_peer: Any, line_dialect: Any, capabilities: Any, advance: Any
) -> None:
    for peer, record in _play_all(virtual, scripted_peer, line_dialect, capabilities, advance, 0.0):
        first_s = peer.audio()[0][0]
        late_s = [round(t - first_s - 0.020 * k, 9) for k, (t, _) in enumerate(peer.audio())]
        assert len(late_s) == 500
        assert min(late_s) >= -COST_S  # the peer's own clock moves on before it notes the first piece
        assert max(late_s) <= 0.025
        assert 10.0 - COST_S <= peer.at("commit")[0] - first_s <= 10.05
        assert record.ending is Ending.DECLINED


def test_b18_a_block_of_the_loop_is_caught_up_by_all_and_flagged_on_all(
    virtual: Any, scripted_peer: Any, line_dialect: Any, capabilities: Any, advance: Any
) -> None:
    whole = np.arange(round(CLIP_S * RATE_HZ), dtype=np.int64).astype(np.int16).tobytes()
    for peer, record in _play_all(virtual, scripted_peer, line_dialect, capabilities, advance, 0.300):
        assert b"".join(piece for _, piece in peer.audio()) == whole
        assert 10.0 - COST_S <= peer.at("commit")[0] - peer.audio()[0][0] <= 10.05
        assert 0.250e9 <= record.pacing.lateness_max_ns <= 0.450e9


def test_b19_first_byte_and_first_sound_are_told_apart_on_every_call(
    virtual: Any, scripted_peer: Any, line_dialect: Any, capabilities: Any, advance: Any
) -> None:
    for _, record in _play_all(virtual, scripted_peer, line_dialect, capabilities, advance, 0.0):
        heard = play(record.reply_pieces, RATE_HZ)
        commit_ns = record.marks[Mark.COMMIT]
        assert heard.first_audible_ns is not None
        # A reply that comes while the loop works is stamped up to a wake's work late.
        assert (record.marks[Mark.FIRST_AUDIO] - commit_ns) / 1e9 == pytest.approx(0.200, abs=0.020)
        assert (heard.first_audible_ns - commit_ns) / 1e9 == pytest.approx(0.600, abs=0.020)
        assert heard.leading_silence_s == pytest.approx(0.4, abs=0.001)
