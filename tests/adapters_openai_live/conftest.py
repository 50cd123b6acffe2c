"""An agent that answers at once, and a session of both halves joined in memory on the virtual clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

import async_solipsism
import numpy as np
import pytest

from adapters.dialect import Setup, TargetSettings, ToolSpec, TurnControlSettings, TurnMode
from adapters.openai_live import DIALECT
from adapters.server import AnswerWanted, Reply, ServerDialect
from adapters.session import Session
from captures.clock import LoopClock
from captures.frames import InFrame, OutFrame
from transports.memory import MemoryTransport, MemoryWire
from transports.transport import Endpoint
from turn_control.limits import Limits
from turn_control.ticker import Ticker
from turn_control.turn import SpokenTurn, TurnRecord, play_turn

TOOLS = (
    ToolSpec("pay_bill", "Pays a bill.", {"type": "object", "properties": {"amount": {"type": "number"}}}),
    ToolSpec("escalate", "Passes the call on.", {"type": "object", "properties": {}}),
)
SETUP = Setup("You answer the phone.", TOOLS, 24_000, TurnControlSettings(TurnMode.SERVER_VAD))


def tone(seconds: float, rate_hz: int = 24_000) -> bytes:
    """A voice's stand-in: 220 Hz, well audible."""
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    return bytes((4000 * np.sin(2 * np.pi * 220 * t)).astype("<i2").tobytes())


class AgentPeer:
    """A server half with an agent that gives the same reply, `after_s` after each wish for an answer."""

    def __init__(self, server: ServerDialect, reply: Reply | Sequence[OutFrame], after_s: float) -> None:
        self.server, self.reply, self.after_s = server, reply, after_s
        self.received_frames: list[InFrame] = []
        self.ended: tuple[int, str] | None = None

    def connected(self, wire: MemoryWire, endpoint: Endpoint) -> None:
        self.wire = wire
        self.send(self.server.greeting({}))

    def send(self, frames: Any) -> None:
        for frame in frames:
            self.wire.send(frame.payload, binary=frame.binary)

    def received(self, frame: InFrame) -> None:
        self.received_frames.append(frame)
        step = self.server.receive(frame)
        self.send(step.frames)
        if any(isinstance(intent, AnswerWanted) for intent in step.intents):
            asyncio.get_running_loop().call_later(self.after_s, self.answer)
        if step.close is not None:
            self.wire.close(*step.close)

    def answer(self) -> None:
        self.send(self.server.answer(self.reply) if isinstance(self.reply, Reply) else self.reply)

    def disconnected(self, code: int, reason: str) -> None:
        self.ended = (code, reason)


@pytest.fixture
def setup() -> Setup:
    return SETUP


@pytest.fixture
def voice() -> Callable[..., bytes]:
    return tone


@pytest.fixture
def client():
    """A client half with a loopback address."""

    def make(**settings: Any):
        extra = {"delegate_model": "gpt-backend", **settings}
        return DIALECT.client(TargetSettings("gpt-live-1", "ws://127.0.0.1:9/v1/live/sessions", "sk-secret-key", extra))

    return make


@pytest.fixture
def turn(client) -> Callable[..., tuple[AgentPeer, TurnRecord]]:
    """Plays one caller turn of 1 s of voice and 0.3 s of quiet to an emulated agent; on the virtual clock."""

    def run(reply: Any, *, after_s: float = 0.4, limits: Limits | None = None, **settings: Any):
        rate_hz = settings.get("rate_hz", 24_000)

        async def main() -> tuple[AgentPeer, TurnRecord]:
            clock = LoopClock()
            peer = AgentPeer(DIALECT.server(), reply, after_s)
            session = Session(client(**settings), MemoryTransport(clock, peer), clock)
            await session.open(Setup(SETUP.instructions, TOOLS, rate_hz, SETUP.turn_control), 5.0)
            clip = session.encode_clip(tone(1.0, rate_hz) + bytes(2 * round(0.3 * rate_hz)), rate_hz, 20)
            record = await play_turn(
                session,
                SpokenTurn(clip, 1.0),
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
