"""One client's conversation with an embedded agent, whatever carries its frames.

Client frames go to the dialect's server half; what it makes of them drives the agent. Audio is gathered and nothing is
heard before the caller's turn is over. What is to go wrong in this conversation stands in its `SessionFaults`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from adapters.dialect import Setup
from adapters.server import (
    AnswerCancelled,
    AnswerWanted,
    AudioGiven,
    Intent,
    Reply,
    ReplyCall,
    ServerDialect,
    ServerStep,
    SetupGiven,
    ToolResultGiven,
)
from captures.frames import InFrame, OutFrame
from rig.agents.agent import Earlier
from rig.agents.brain_client import BrainError
from rig.agents.faults import MIDDLE, NO_FAULTS, Cut, SessionFaults
from rig.agents.faults_answer import faulty_frames, faulty_replies
from rig.agents.send_stamps import SendStamps

MAX_TURN_S = 120.0
MAX_ANSWERS_WAITING = 4

_log = logging.getLogger(__name__)


class Line(Protocol):
    """What carries frames to the client."""

    async def send(self, frame: OutFrame) -> None:
        """Send one frame. Never raises for a client that has gone."""
        ...

    async def end(self, code: int | None, reason: str) -> None:
        """End the connection, and with it the conversation; without a close when `code` is None."""
        ...


class Agent(Protocol):
    """Who answers."""

    async def reply(
        self, setup: Setup, pcm: bytes, rate_hz: int, text: str | None, earlier: Earlier | None = None
    ) -> Reply:
        """The answer to one caller turn; `earlier` where the turn before led to a call. Raises BrainError."""
        ...

    def after_result(self, call: ReplyCall | None) -> Reply:
        """What is said once the result of a call is there."""
        ...


class HostSession:
    """State of one connection. `take` is called by one reader; answers run beside it, one at a time."""

    def __init__(
        self,
        dialect: ServerDialect,
        agent: Agent,
        line: Line,
        tasks: TaskGroup,
        faults: SessionFaults = NO_FAULTS,
        *,
        number: int = 1,
        stamps: SendStamps | None = None,
        echo: str = "",
    ) -> None:
        """`number` counts an emulator's sessions from 1. `echo` is added to failures and to reasons of closes."""
        self._dialect = dialect
        self._agent = agent
        self._line = line
        self._tasks = tasks
        self._faults = faults
        self._number = number
        self._stamps = stamps
        self._echo = echo
        self._setup: Setup | None = None
        self._frames_since_setup = 0
        self._pcm = bytearray()
        self._rate_hz = 0
        self._too_long = False
        self._last_call: ReplyCall | None = None
        self._last_words = ""
        self._earlier: Earlier | None = None
        self._result_given = False
        self.failed = False
        """An answer was wanted and could not be given."""
        self._answering = anyio.Lock()
        self._answers: list[anyio.CancelScope] = []
        self._answers_wanted = 0

    async def open(self, query: Mapping[str, str]) -> None:
        """Greet a client that has just connected."""
        if self._faults.cap_s is not None:
            self._tasks.start_soon(self._cap, self._faults.cap_s)
        if self._faults.cut_on_connect is not None:
            await self._cut(self._faults.cut_on_connect)
        await self._send_all(self._dialect.greeting(query))

    async def take(self, payload: bytes, binary: bool) -> tuple[int, str] | None:
        """Read one client frame; returns close code and reason when the connection is to be closed."""
        step: ServerStep = self._dialect.receive(InFrame(payload, binary, time.monotonic_ns()))
        if self._setup is not None:
            self._frames_since_setup += 1
            if self._frames_since_setup == MIDDLE and self._faults.cut_mid_audio is not None:
                await self._cut(self._faults.cut_mid_audio)
        if self._faults.ack_delay_s is None or not self._acknowledges(step):
            await self._send_all(step.frames)
        elif not self._faults.ack_missing:
            await anyio.sleep(self._faults.ack_delay_s)
            await self._send_all(step.frames)
        for intent in step.intents:
            await self._follow(intent, step)
        return step.close

    def _acknowledges(self, step: ServerStep) -> bool:
        """True for what follows the first settings, where they come by themselves."""
        given = [type(intent) for intent in step.intents]
        return self._setup is None and SetupGiven in given and AnswerWanted not in given

    async def _cap(self, limit_s: float) -> None:
        await anyio.sleep(limit_s)
        # OpenAI's and Azure's form, both in one: code 1001 with the words, and the code that older ones gave.
        await self._cut(Cut(1001, f"session_expired: Your session hit the maximum duration of {limit_s:g} s."))

    async def _cut(self, cut: Cut) -> None:
        await self._line.end(cut.code, cut.reason + self._echo)

    async def _send_all(self, frames: Iterable[OutFrame]) -> None:
        for frame in frames:
            await self._line.send(frame)

    async def _follow(self, intent: Intent, step: ServerStep) -> None:
        match intent:
            case SetupGiven(setup):
                self._setup = setup
            case AudioGiven(pcm, rate_hz):
                self._gather(pcm, rate_hz)
            case ToolResultGiven():
                self._result_given = True
            case AnswerCancelled():
                for scope in self._answers:
                    scope.cancel()
            case AnswerWanted(text):
                # A request of file mode ends with the results, and repeats what the caller said before.
                to_result = any(isinstance(other, ToolResultGiven) for other in step.intents)
                await self._want_answer(text, to_result)

    def _gather(self, pcm: bytes, rate_hz: int) -> None:
        if rate_hz != self._rate_hz:
            self._pcm.clear()
            self._rate_hz = rate_hz
        if len(self._pcm) + len(pcm) > 2 * rate_hz * MAX_TURN_S:
            self._too_long = True
        else:
            self._pcm += pcm

    async def _want_answer(self, text: str | None, to_result: bool) -> None:
        pcm, too_long, result_given = bytes(self._pcm), self._too_long, self._result_given
        self._pcm.clear()
        self._too_long = self._result_given = False
        if self._setup is None:
            await self._fail("no_setup", "an answer was asked for before any settings")
        elif too_long:
            await self._fail("turn_too_long", f"a turn may last {MAX_TURN_S:g} s")
        elif len(self._answers) >= MAX_ANSWERS_WAITING:
            await self._fail("busy", f"{MAX_ANSWERS_WAITING} answers are being given")
        else:
            scope = anyio.CancelScope()
            self._answers.append(scope)
            self._answers_wanted += 1
            after_result = to_result or (result_given and text is None and not pcm)
            wanted = _Wanted(self._setup, pcm, text, after_result, self._answers_wanted, time.monotonic_ns())
            self._tasks.start_soon(self._answer, scope, wanted)

    async def _answer(self, scope: anyio.CancelScope, wanted: _Wanted) -> None:
        due = anyio.current_time() + self._faults.delay_s()
        try:
            with scope:
                async with self._answering:
                    await self._give(wanted, due)
        finally:
            self._answers.remove(scope)

    async def _give(self, wanted: _Wanted, due: float) -> None:
        """`due`: when the answer may begin, by the event loop's clock."""
        faults = self._faults
        if faults.mute:
            await anyio.sleep_forever()
        try:
            if wanted.after_result:
                reply = self._agent.after_result(self._last_call)
                self._earlier = Earlier(self._last_words, self._last_call) if self._last_call else None
            else:
                rate_hz = self._rate_hz or wanted.setup.input_rate_hz
                earlier, self._earlier = self._earlier, None
                reply = await self._agent.reply(wanted.setup, wanted.pcm, rate_hz, wanted.text, earlier)
                self._last_words = wanted.text or reply.input_transcript or ""
        except BrainError as error:
            _log.warning("no answer: %s", error)
            await self._fail("server_error", str(error))
            return
        await anyio.sleep_until(due)
        if faults.failed is not None:
            await self._fail(faults.failed.code, faults.failed.message)
            return
        self._last_call = reply.calls[0] if reply.calls else self._last_call
        replies = faulty_replies(faults, reply, wanted.setup, self._agent.after_result(None))
        sent: list[tuple[int, OutFrame]] = []
        try:
            for number, part in enumerate(replies):
                if number:
                    await anyio.sleep(faults.late_call_s or 0)
                for frame in faulty_frames(faults, self._dialect.answer(part), self._dialect):
                    sent.append((time.monotonic_ns(), frame))
                    await self._line.send(frame)
        finally:
            if self._stamps is not None:
                self._stamps.write(self._number, wanted.number, wanted.t_ns, sent)
        if faults.cut_before_done is not None:
            await self._cut(faults.cut_before_done)

    async def _fail(self, code: str, message: str) -> None:
        self.failed = True
        await self._send_all(self._dialect.failure(code, message + self._echo))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """An answer that was asked for."""

    setup: Setup
    pcm: bytes
    text: str | None
    after_result: bool
    number: int
    t_ns: int
