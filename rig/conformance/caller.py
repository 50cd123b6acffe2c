"""The rig's part of a conversation: setup, turns, and how the end of an answer is seen. Every wait is bounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import anyio

from adapters.dialect import Capabilities, Setup, TurnControlSettings, TurnMode
from adapters.foreign_json import text_of
from adapters.rig_socket import wire
from adapters.rig_socket.client import RigSocketClient
from adapters.rig_socket.wire import ErrorKind, FromAgent, FromRig, control
from captures.frames import OutFrame
from captures.playback import is_loud
from rig.conformance.talk import CONTENT, Heard, Talk
from transports.transport import TransportError

CHUNK_MS: Final = 20
_QUIET_BEHIND_CALL_S: Final = 1.0


class SceneName(StrEnum):
    """Conversations, as reports name them."""

    SPEECH = "a spoken turn"
    WORDS = "a turn in words"
    CALL = "a tool call and its result"
    NO_TOOLS = "a session without tools"
    EMPTY = "a turn without audio"
    CANCEL = "a cancelled turn"
    TRUNCATE = "a reply cut short"
    VERSION = "a version that nobody speaks"
    RATES = "other rates of caller audio"
    UNKNOWN = "a message and a field of the future"
    HANG_UP = "a call after a caller hung up"
    TWO = "two calls at once"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of every wait, seconds."""

    ready_s: float = 10.0
    turn_s: float = 30.0
    cancel_s: float = 2.0
    """From `turn.cancel` to the end of the answer."""
    quiet_s: float = 0.5
    """How long what must not come is waited for."""


@dataclass(slots=True)
class Turn:
    """One turn of the rig's caller, as places in what was heard."""

    first: int
    """Messages before this place came before the turn."""
    asked: int | None = None
    """Messages from here on came after the caller had finished; None: the turn was cut off."""
    asked_ns: int = 0
    ended: bool = False
    """The answer came to its end within the limit."""
    cut: bool = False
    """The connection ended before the answer did."""
    spoken: bool = False


@dataclass(slots=True)
class Scene:
    """One connection and what was done on it."""

    name: SceneName
    talk: Talk
    setup: Setup
    turns: list[Turn] = field(default_factory=list)
    ready: Heard | None = None
    failure: TransportError | None = None
    """Why there was no connection."""
    cancelled_ns: int | None = None

    def answer(self, turn: Turn) -> list[Heard]:
        """What came after the caller had finished this turn, up to the next one."""
        if turn.asked is None:
            return []
        later = [other.first for other in self.turns if other.first >= turn.asked and other is not turn]
        return self.talk.heard[turn.asked : min(later, default=None)]


@dataclass(frozen=True, slots=True)
class Stage:
    """What all conversations with one agent share."""

    client: Callable[[], RigSocketClient]
    clip: bytes = field(repr=False)
    """The caller's speech, PCM16 mono at the client's input rate."""
    turn_control: TurnControlSettings = field(default_factory=TurnControlSettings)
    limits: Limits = field(default_factory=Limits)


class Caller:
    """The rig's part of one conversation."""

    def __init__(self, stage: Stage, client: RigSocketClient, scene: Scene) -> None:
        self.scene = scene
        self._stage = stage
        self._client = client
        self._able = client.capabilities

    async def ready(self) -> bool:
        """Send the setup and wait for `session.ready`; False when it does not come."""
        talk = self.scene.talk
        talk.send(self._client.open(self.scene.setup))
        await talk.until(lambda: any(m.type in (FromAgent.READY, FromAgent.ERROR) for m in talk.heard), self._limit_s)
        self.scene.ready = next((message for message in talk.heard if message.type == FromAgent.READY), None)
        return self.scene.ready is not None

    @property
    def _limit_s(self) -> float:
        return self._stage.limits.ready_s

    async def quiet(self) -> None:
        """Give the agent time to say what it must not."""
        await self.scene.talk.until(lambda: False, self._stage.limits.quiet_s)

    async def ask(self, words: str, **more: object) -> Turn:
        """A turn in words, or a spoken one where the agent takes no words; waits for the end of the answer.

        `more`: fields that the contract does not have.
        """
        if not self._able.text_twin:
            return await self.speak()
        turn = self.begin(control(FromRig.TURN_TEXT, text=words, **more))
        await self.wait_end(turn)
        return turn

    def ask_and_cancel(self, words: str) -> Turn:
        """A whole turn and `turn.cancel` at once, without waiting for an answer."""
        if self._able.text_twin:
            frames = self._client.text(words)
        else:
            clip = self._client.encode_clip(self._stage.clip, self.scene.setup.input_rate_hz, CHUNK_MS)
            frames = [*self._client.start_turn(), *clip.frames, *self._client.commit_turn()]
        return self.begin(*frames, *self._client.cancel())

    def begin(self, *frames: OutFrame) -> Turn:
        """A whole turn at once, without waiting for its answer."""
        talk = self.scene.talk
        turn = Turn(len(talk.heard))
        self.scene.turns.append(turn)
        talk.send(frames)
        self._asked(turn)
        return turn

    async def speak(self, clip: bytes | None = None) -> Turn:
        """A spoken turn in real time; waits for the end of the answer."""
        talk, rate_hz = self.scene.talk, self.scene.setup.input_rate_hz
        pcm = self._stage.clip if clip is None else clip
        turn = Turn(len(talk.heard), spoken=True)
        self.scene.turns.append(turn)
        talk.send(self._client.start_turn())
        started = anyio.current_time()
        encoded = self._client.encode_clip(pcm, rate_hz, CHUNK_MS) if pcm else None
        for number, frame in enumerate(encoded.frames if encoded else (), 1):
            talk.send([frame])
            await anyio.sleep_until(started + number * CHUNK_MS / 1000)
            if talk.over:
                return turn
        if self._stage.turn_control.mode is TurnMode.MANUAL:
            talk.send(self._client.commit_turn())
            self._asked(turn)
            await self.wait_end(turn)
        else:
            self._asked(turn)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._be_silent, rate_hz)
                await self.wait_end(turn)
                tasks.cancel_scope.cancel()
        return turn

    async def _be_silent(self, rate_hz: int) -> None:
        frame = self._client.encode_silence(rate_hz, CHUNK_MS)
        due = anyio.current_time()
        while True:
            self.scene.talk.send([frame])
            due += CHUNK_MS / 1000
            await anyio.sleep_until(due)

    def _asked(self, turn: Turn) -> None:
        turn.asked = len(self.scene.talk.heard)
        turn.asked_ns = self.scene.talk.clock.now_ns()

    async def wait_end(self, turn: Turn, limit_s: float | None = None) -> None:
        """Wait for the end of an answer, by whichever sign this agent gives."""
        assert turn.asked is not None
        watch = _EndWatch(self.scene.talk, turn.asked, self._able)
        limit_s = self._stage.limits.turn_s if limit_s is None else limit_s
        turn.ended = await self.scene.talk.until(watch.over, limit_s) and not watch.gave_up
        turn.cut = not turn.ended and self.scene.talk.over

    def send(self, *frames: OutFrame) -> None:
        """Send as they are."""
        self.scene.talk.send(frames)

    def leave(self) -> None:
        """Say goodbye."""
        self.scene.talk.expect_close()
        self.scene.talk.send(self._client.close())

    def results(self, turn: Turn) -> list[OutFrame]:
        """`tool.result` of every call of a turn."""
        ids = [text_of(m.fields or {}, "call_id") for m in self.scene.answer(turn) if m.type == FromAgent.TOOL_CALL]
        return [frame for call_id in ids if call_id for frame in self._client.tool_result(call_id, '{"done": true}')]


class _EndWatch:
    """Reads each message of an answer once, until a sign of its end."""

    def __init__(self, talk: Talk, asked: int, able: Capabilities) -> None:
        self.gave_up = False
        """An `error` ended it."""
        self._talk = talk
        self._next = asked
        self._able = able
        self._ended = False
        self._has_call = False
        self._last_content_ns: int | None = None

    def over(self) -> bool:
        """By `turn.end` or `error`, by silence, or by quiet behind a call, as the agent's settings have it."""
        heard = self._talk.heard
        while self._next < len(heard):
            self._take(heard[self._next])
            self._next += 1
        if self._ended or self.gave_up:
            return True
        if self._last_content_ns is None:
            return False
        past_s = (self._talk.clock.now_ns() - self._last_content_ns) / 1e9
        silence_s = self._able.ends_by_silence_s
        if silence_s is not None and past_s >= silence_s:
            return True
        return self._able.waits_for_tool_result and self._has_call and past_s >= _QUIET_BEHIND_CALL_S

    def _take(self, message: Heard) -> None:
        self._ended = self._ended or message.type == FromAgent.TURN_END
        self.gave_up = self.gave_up or is_failure(message)
        self._has_call = self._has_call or message.type == FromAgent.TOOL_CALL
        silent = message.binary and self._able.ends_by_silence_s is not None
        if message.type in CONTENT and not (silent and not is_loud(message.payload, wire.OUTPUT_RATE_HZ)):
            self._last_content_ns = message.t_ns


def is_failure(message: Heard) -> bool:
    """An `error` that ends more than it warns of."""
    return message.type == FromAgent.ERROR and (message.fields or {}).get("kind") != ErrorKind.WARNING
