"""A session of both halves joined in memory on the virtual clock: the fake stream below the adapter."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import async_solipsism
import numpy as np
import pytest

from adapters.dialect import Setup, TargetSettings, ToolSpec, TurnControlSettings, TurnMode
from adapters.nova_sonic import DIALECT
from adapters.server import AnswerWanted, Reply
from adapters.session import Session
from captures.clock import LoopClock
from captures.frames import InFrame
from transports.memory import MemoryTransport, MemoryWire
from transports.transport import Endpoint
from turn_control.limits import Limits
from turn_control.ticker import Ticker
from turn_control.turn import SpokenTurn, TextTurn, TurnRecord, play_turn

TOOLS = (
    ToolSpec("forecast", "Tells the weather.", {"type": "object", "properties": {"city": {"type": "string"}}}),
    ToolSpec("escalate", "Passes the call on.", {"type": "object", "properties": {}}),
)


def nova_setup(**parameters: Any) -> Setup:
    return Setup("You answer the phone.", TOOLS, 16_000, TurnControlSettings(TurnMode.SERVER_VAD, parameters))


class StreamPeer:
    """The server half with an agent that gives the same reply, `after_s` after each wish for an answer."""

    def __init__(self, reply: Reply, after_s: float) -> None:
        self.server, self.reply, self.after_s = DIALECT.server(), reply, after_s
        self.received_frames: list[InFrame] = []
        self.intents: list[Any] = []

    def connected(self, wire: MemoryWire, endpoint: Endpoint) -> None:
        self.wire = wire

    def received(self, frame: InFrame) -> None:
        self.received_frames.append(frame)
        step = self.server.receive(frame)
        self.intents += step.intents
        for out in step.frames:
            self.wire.send(out.payload)
        if any(isinstance(intent, AnswerWanted) for intent in step.intents):
            asyncio.get_running_loop().call_later(self.after_s, self.answer)
        if step.close is not None:
            self.wire.close(*step.close)

    def answer(self) -> None:
        for out in self.server.answer(self.reply):
            self.wire.send(out.payload)

    def disconnected(self, code: int, reason: str) -> None:
        pass


@pytest.fixture
def setup_of() -> Callable[..., Setup]:
    return nova_setup


@pytest.fixture
def client():
    def make(model: str = "amazon.nova-2-sonic-v1:0", key: str | None = "planted-secret", **settings: Any):
        url = "ws://127.0.0.1:9/nova-sonic" if settings.get("stream") == "websocket" else None
        return DIALECT.client(TargetSettings(model, url, key, settings))

    return make


@pytest.fixture
def turn(client) -> Callable[..., tuple[StreamPeer, TurnRecord]]:
    """Plays 1 s of voice and 0.3 s of quiet, or words, to an emulated agent."""

    def run(
        reply: Reply, *, words: str | None = None, after_s: float = 0.2, limits: Limits | None = None, **given: Any
    ):
        async def main() -> tuple[StreamPeer, TurnRecord]:
            clock = LoopClock()
            peer = StreamPeer(reply, after_s)
            session = Session(client(), MemoryTransport(clock, peer), clock)
            await session.open(nova_setup(**given), 5.0)
            t = np.arange(16_000) / 16_000
            pcm = (4000 * np.sin(2 * np.pi * 220 * t)).astype("<i2").tobytes() + bytes(9_600)
            spoken = SpokenTurn(session.encode_clip(pcm, 16_000, 20), 1.0)
            record = await play_turn(
                session,
                spoken if words is None else TextTurn(words),
                ticker=Ticker(clock, random.Random(7)),
                clock=clock,
                limits=limits or Limits(),
                mode=TurnMode.SERVER_VAD,
            )
            await session.close()
            return peer, record

        with asyncio.Runner(loop_factory=async_solipsism.EventLoop) as runner:
            return runner.run(main())

    return run
