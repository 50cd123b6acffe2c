"""A virtual clock, a small dialect of JSON lines, and a scripted peer for it."""

from __future__ import annotations

import asyncio
import base64
import itertools
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import async_solipsism
import orjson
import pytest

from adapters.dialect import Capabilities, EncodedClip, Setup, TurnMode
from adapters.session import Session
from captures import events as ev
from captures.clock import LoopClock
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.memory import MemoryTransport, MemoryWire
from transports.transport import Endpoint, TransportError
from turn_control.limits import Limits
from turn_control.ticker import Ticker
from turn_control.turn import CallerTurn, TurnRecord, play_turn

CAPABILITIES = Capabilities(
    text_twin=True,
    probe=True,
    turn_modes=frozenset({TurnMode.MANUAL, TurnMode.SERVER_VAD}),
    input_rates_hz=(24_000,),
    output_rate_hz=24_000,
)

_EVENTS: Mapping[str, Callable[[Mapping[str, Any]], ev.Event]] = {
    "ready": lambda m: ev.SessionReady(m.get("id")),
    "committed": lambda m: ev.TurnCommitted(),
    "speech_started": lambda m: ev.SpeechStarted(),
    "speech_stopped": lambda m: ev.SpeechStopped(),
    "heard": lambda m: ev.InputTranscript(m["text"]),
    "call_started": lambda m: ev.ToolCallStarted(m["id"], m.get("name"), m.get("index", 0)),
    "call_part": lambda m: ev.ToolCallArguments(m["id"], m["part"]),
    "call": lambda m: ev.ToolCall(
        m["id"], m.get("name"), orjson.dumps(m.get("arguments", {})).decode(), m.get("arguments", {}), m.get("index", 0)
    ),
    "text": lambda m: ev.TextDelta(m["text"]),
    "said": lambda m: ev.TranscriptDelta(m["text"]),
    "audio": lambda m: ev.AudioDelta(base64.b64decode(m["pcm"]), 24_000),
    "delegated": lambda m: ev.Delegated(m["id"], m["open"]),
    "interrupted": lambda m: ev.Interrupted(),
    "end": lambda m: ev.AnswerEnded(ev.AnswerEnd(m.get("reason", "completed")), m.get("detail", "")),
    "usage": lambda m: ev.Usage(m["counts"]),
    "warned": lambda m: ev.Warned(m["code"], m["message"], m.get("spoils_turn", False)),
    "refused": lambda m: ev.Refused(m["code"], m["message"]),
    "failed": lambda m: ev.Failed(ev.FailureKind(m["kind"]), m["code"], m["message"]),
}


def _frame(kind: str, **fields: Any) -> OutFrame:
    return OutFrame(orjson.dumps({"type": kind, **fields}))


class LineDialect:
    """Client half of a dialect whose every frame is a JSON list of messages (or one message)."""

    def __init__(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self.held: list[OutFrame] = []
        self.answered = False
        self.can_cancel = False

    def endpoint(self) -> Endpoint:
        return Endpoint("memory://peer", label="memory://peer")

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        return [_frame("setup")]

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        samples = len(pcm) // 2
        ends = [rate_hz * chunk_ms * k // 1000 for k in range(samples * 1000 // (rate_hz * chunk_ms) + 1)]
        cuts = [end for end in ends if end < samples] + [samples]
        frames = tuple(self._audio(pcm[2 * a : 2 * b]) for a, b in itertools.pairwise(cuts))
        return EncodedClip(frames, chunk_ms, rate_hz, samples)

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        return self._audio(bytes(2 * (rate_hz * duration_ms // 1000)))

    def _audio(self, pcm: bytes) -> OutFrame:
        frame = _frame("audio", pcm=base64.b64encode(pcm).decode())
        return frame if self.capabilities.streams_audio else replace(frame, held=True)

    def start_turn(self) -> Sequence[OutFrame]:
        return []

    def hold(self, frame: OutFrame) -> None:
        self.held.append(frame)

    def commit_turn(self) -> Sequence[OutFrame]:
        if self.held:
            return [_frame("request", pieces=len(self.held))]
        return [_frame("commit"), _frame("answer_please")]

    def text(self, text: str) -> Sequence[OutFrame]:
        return [_frame("text", text=text)]

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        return [_frame("result", id=call_id, output=output)]

    def cancel(self) -> Sequence[OutFrame]:
        return [_frame("cancel")] if self.can_cancel else []

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        return [_frame("truncate", ms=audio_ms)] if self.can_cancel else []

    def close(self) -> Sequence[OutFrame]:
        return []

    def receive(self, frame: InFrame) -> tuple[Sequence[ev.Event], Sequence[OutFrame]]:
        messages = orjson.loads(frame.payload)
        found = [_EVENTS[message["type"]](message) for message in messages]
        self.answered |= any(isinstance(event, ev.AnswerEnded) for event in found)
        return found, []

    def connect_failed(self, error: TransportError) -> ev.Event:
        return ev.Failed(ev.FailureKind.TRANSIENT, error.code, str(error))

    def closed(self, closed: ClosedBy) -> ev.Event | None:
        if self.answered or closed.code is None:
            return None
        return ev.Failed(ev.FailureKind.PROTOCOL, str(closed.code), closed.reason)


@dataclass
class ScriptedPeer:
    """Plays its steps at their times, counted from one message of the client.

    A step is `(seconds, *messages)`, or `(seconds, code, reason)` for a close.
    """

    steps: Sequence[tuple[Any, ...]] = ()
    after: str = "answer_please"
    """Kind of the client's message from which the steps are timed."""
    ready_s: float | None = 0.0
    """When `ready` follows the setup; None: never."""
    greeting: bool = False
    on_audio: Callable[[], None] | None = None
    """Called for every piece of audio, as it arrives."""
    received_at: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    """Every message of the client with the loop's time."""
    ended: tuple[int, str] | None = None

    def connected(self, wire: MemoryWire, endpoint: Endpoint) -> None:
        self.wire = wire
        self.loop = asyncio.get_running_loop()
        if self.greeting:
            self.say({"type": "warned", "code": "hello", "message": "created"})

    def say(self, *messages: dict[str, Any]) -> None:
        self.wire.send(orjson.dumps(messages))

    def received(self, frame: InFrame) -> None:
        message = orjson.loads(frame.payload)
        self.received_at.append((round(self.loop.time(), 9), message))
        kind = message["type"]
        if kind == "setup" and self.ready_s is not None:
            self.loop.call_later(self.ready_s, self.say, {"type": "ready"})
        if kind == "audio" and self.on_audio is not None:
            self.on_audio()
        if kind == self.after:
            steps, self.steps = self.steps, ()
            for seconds, *rest in steps:
                if isinstance(rest[0], int | None):
                    self.loop.call_later(seconds, self.wire.close, *rest)
                else:
                    self.loop.call_later(seconds, self.say, *rest)

    def disconnected(self, code: int, reason: str) -> None:
        self.ended = (code, reason)

    def at(self, kind: str) -> list[float]:
        """Loop times of the client's messages of one kind."""
        return [t for t, message in self.received_at if message["type"] == kind]

    def audio(self) -> list[tuple[float, bytes]]:
        """Every piece of caller audio: (loop time, PCM)."""
        return [(t, base64.b64decode(m["pcm"])) for t, m in self.received_at if m["type"] == "audio"]


@dataclass
class Stage:
    """A session on the virtual clock, ready for turns."""

    session: Session
    peer: ScriptedPeer
    ticker: Ticker
    clock: LoopClock

    async def play(self, turn: CallerTurn, *, limits: Limits | None = None, **options: Any) -> TurnRecord:
        return await play_turn(
            self.session, turn, ticker=self.ticker, clock=self.clock, limits=limits or Limits(), **options
        )


SETUP = Setup(instructions="", tools=(), input_rate_hz=24_000)


@pytest.fixture
def virtual() -> Callable[[Callable[[], Awaitable[Any]]], Any]:
    """Runs an async function on a loop whose time passes only when all wait."""

    def run(main: Callable[[], Awaitable[Any]]) -> Any:
        async def awaited() -> Any:
            return await main()

        with asyncio.Runner(loop_factory=async_solipsism.EventLoop) as runner:
            return runner.run(awaited())

    return run


@pytest.fixture
def advance() -> Callable[[float], None]:
    """Work that blocks the event loop: passes virtual seconds without letting anything else run."""

    def pass_time(seconds: float) -> None:
        asyncio.get_running_loop()._selector.clock.advance(seconds)  # type: ignore[attr-defined]

    return pass_time


@pytest.fixture
def capabilities() -> Capabilities:
    """What the dialect of JSON lines can do, unless a test says otherwise."""
    return CAPABILITIES


@pytest.fixture
def scripted_peer() -> type[ScriptedPeer]:
    return ScriptedPeer


@pytest.fixture
def line_dialect() -> type[LineDialect]:
    return LineDialect


@pytest.fixture
def stage() -> Callable[..., Awaitable[Stage]]:
    """Opens a session to a scripted peer (to be called inside the virtual loop)."""

    async def build(peer: ScriptedPeer, **differences: Any) -> Stage:
        clock = LoopClock()
        session = Session(LineDialect(replace(CAPABILITIES, **differences)), MemoryTransport(clock, peer), clock)
        await session.open(SETUP, 5.0)
        return Stage(session, peer, Ticker(clock, random.Random(7)), clock)

    return build
