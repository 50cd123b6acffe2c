"""Builders shared by the tests of this dialect."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import async_solipsism
import orjson
import pytest

from adapters.dialect import Setup, TargetSettings, ToolSpec, TurnControlSettings, TurnMode
from adapters.gemini_live import DIALECT
from adapters.gemini_live.client import GeminiLiveClient
from adapters.session import Session
from captures.clock import LoopClock
from captures.events import Event
from captures.frames import InFrame, OutFrame
from transports.memory import MemoryTransport, MemoryWire
from transports.transport import Endpoint
from turn_control.limits import Limits
from turn_control.ticker import Ticker
from turn_control.turn import SpokenTurn, TurnRecord, play_turn

MODEL = "gemini-2.5-flash-native-audio-preview-12-2025"
TOOLS = (
    ToolSpec("book_table", "Books a table.", {"type": "object", "properties": {"party": {"type": "integer"}}}),
    ToolSpec("hold_the_line", "Waits.", {"type": "object", "properties": {}}),
)


class Wire:
    """A client half, and what it made of the server's messages."""

    def __init__(
        self,
        model: str = MODEL,
        mode: TurnMode = TurnMode.MANUAL,
        tools: Sequence[ToolSpec] = TOOLS,
        parameters: dict[str, Any] | None = None,
        **extra: Any,
    ) -> None:
        client = DIALECT.client(TargetSettings(model, api_key="TESTKEYTESTKEY", extra=extra))
        assert isinstance(client, GeminiLiveClient)
        self.client = client
        self.given = Setup("Be brief.", tuple(tools), 16_000, TurnControlSettings(mode, parameters or {}))
        (opening,) = client.open(self.given)
        self.setup: dict[str, Any] = orjson.loads(opening.payload)["setup"]

    def asked(self) -> Wire:
        """Ready, and an answer is asked for."""
        self.hear({"setupComplete": {}})
        self.client.start_turn()
        self.client.commit_turn()
        return self

    def hear(self, *messages: Any, binary: bool = True) -> list[Event]:
        frames = [message if isinstance(message, bytes) else orjson.dumps(message) for message in messages]
        return [event for frame in frames for event in self.client.receive(InFrame(frame, binary, 0))[0]]


def sent(frames: Sequence[OutFrame]) -> list[Any]:
    """Messages in frames."""
    return [orjson.loads(frame.payload) for frame in frames]


def audio(seconds: float) -> dict[str, Any]:
    """The model's speech."""
    data = base64.b64encode(b"\x01\x10" * round(24_000 * seconds)).decode()
    part = {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": data}}
    return {"serverContent": {"modelTurn": {"parts": [part]}}}


def call(call_id: str | None, name: str, **arguments: Any) -> dict[str, Any]:
    """A tool call of the model."""
    return {"toolCall": {"functionCalls": [{"id": call_id, "name": name, "args": arguments}]}}


def content(**fields: Any) -> dict[str, Any]:
    return {"serverContent": fields}


@dataclass
class ScriptedGemini:
    """Confirms the setup, and plays `steps` (seconds, message or (code, reason)) from a message of the client.

    `steps` are keyed by the client's `realtimeInput` key (`activityStart`, `activityEnd`, `audio`, the first one), and
    each list is played once; a list of lists is played one per occurrence.
    """

    steps: dict[str, list[list[tuple[float, Any]]]]
    closes_on_late_audio: bool = False
    """Close with 1008 for audio more than 50 ms after a call without its result."""
    received_at: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    open_call_s: float | None = None

    def connected(self, wire: MemoryWire, endpoint: Endpoint) -> None:
        self.wire = wire
        self.loop = asyncio.get_running_loop()

    def received(self, frame: InFrame) -> None:
        message = orjson.loads(frame.payload)
        now = self.loop.time()
        self.received_at.append((now, message))
        if "setup" in message:
            self.say({"setupComplete": {}})
        if "toolResponse" in message:
            self.open_call_s = None
        kind = next(iter(message.get("realtimeInput", message)))
        late = self.open_call_s is not None and now > self.open_call_s + 0.05
        if kind == "audio" and self.closes_on_late_audio and late:
            self.wire.close(1008, "Operation is not implemented, or supported, or enabled.")
        lists = self.steps.get(kind)
        for seconds, step in lists.pop(0) if lists else ():
            if isinstance(step, tuple):
                self.loop.call_later(seconds, self.wire.close, *step)
            else:
                self.loop.call_later(seconds, self.say, step)

    def say(self, message: dict[str, Any]) -> None:
        if "toolCall" in message:
            self.open_call_s = self.loop.time()
        self.wire.send(orjson.dumps(message), binary=True)

    def disconnected(self, code: int, reason: str) -> None:
        pass

    def at(self, kind: str) -> list[float]:
        """Loop times of the client's `realtimeInput` messages of one kind."""
        return [t for t, message in self.received_at if kind in message.get("realtimeInput", ())]


@dataclass
class Stage:
    """A session of this dialect with a scripted peer, on the virtual clock."""

    session: Session
    peer: ScriptedGemini
    ticker: Ticker
    clock: LoopClock
    mode: TurnMode

    async def speak(self, seconds: float, limits: Limits | None = None) -> TurnRecord:
        clip = self.session.encode_clip(bytes(2 * round(16_000 * seconds)), 16_000, 20)
        return await play_turn(
            self.session,
            SpokenTurn(clip, seconds),
            ticker=self.ticker,
            clock=self.clock,
            limits=limits or Limits(),
            mode=self.mode,
        )


async def open_stage(
    peer: ScriptedGemini,
    model: str = MODEL,
    mode: TurnMode = TurnMode.MANUAL,
    tools: Sequence[ToolSpec] = TOOLS,
    **extra: Any,
) -> Stage:
    clock = LoopClock()
    client = DIALECT.client(TargetSettings(model, api_key="TESTKEYTESTKEY", extra=extra))
    session = Session(client, MemoryTransport(clock, peer), clock)
    await session.open(Setup("Be brief.", tuple(tools), 16_000, TurnControlSettings(mode)), 5.0)
    return Stage(session, peer, Ticker(clock, random.Random(7)), clock, mode)


def on_virtual_clock(main: Callable[[], Any]) -> Any:
    async def awaited() -> Any:
        return await main()

    with asyncio.Runner(loop_factory=async_solipsism.EventLoop) as runner:
        return runner.run(awaited())


class Kit:
    """What the tests of this dialect share."""

    Wire = Wire
    ScriptedGemini = ScriptedGemini
    sent = staticmethod(sent)
    audio = staticmethod(audio)
    call = staticmethod(call)
    content = staticmethod(content)
    open_stage = staticmethod(open_stage)
    virtual = staticmethod(on_virtual_clock)


@pytest.fixture(scope="session")
def gemini() -> type[Kit]:
    return Kit
