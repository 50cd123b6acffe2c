"""One client's conversation with an embedded agent, whatever carries its frames.

Client frames go to the dialect's server half; what it makes of them drives the agent. Audio is gathered and nothing is
heard before the caller's turn is over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable
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
from rig.agents.brain_client import BrainError

MAX_TURN_S = 120.0
MAX_ANSWERS_WAITING = 4

_log = logging.getLogger(__name__)

SendFrame = Callable[[OutFrame], Awaitable[None]]


class Agent(Protocol):
    """Who answers."""

    async def reply(self, setup: Setup, pcm: bytes, rate_hz: int, text: str | None) -> Reply:
        """The answer to one caller turn. Raises BrainError."""
        ...

    def after_result(self, call: ReplyCall | None) -> Reply:
        """What is said once the result of a call is there."""
        ...


class HostSession:
    """State of one connection. `take` is called by one reader; answers run beside it, one at a time."""

    def __init__(self, dialect: ServerDialect, agent: Agent, send: SendFrame, tasks: TaskGroup) -> None:
        self._dialect = dialect
        self._agent = agent
        self._send = send
        self._tasks = tasks
        self._setup: Setup | None = None
        self._pcm = bytearray()
        self._rate_hz = 0
        self._too_long = False
        self._last_call: ReplyCall | None = None
        self._result_given = False
        self.failed = False
        """An answer was wanted and could not be given."""
        self._answering = anyio.Lock()
        self._answers: list[anyio.CancelScope] = []

    async def take(self, payload: bytes, binary: bool) -> tuple[int, str] | None:
        """Read one client frame; returns close code and reason when the connection is to be closed."""
        step: ServerStep = self._dialect.receive(InFrame(payload, binary, time.monotonic_ns()))
        await self._send_all(step.frames)
        for intent in step.intents:
            await self._follow(intent)
        return step.close

    async def _send_all(self, frames: Iterable[OutFrame]) -> None:
        for frame in frames:
            await self._send(frame)

    async def _follow(self, intent: Intent) -> None:
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
                await self._want_answer(text)

    def _gather(self, pcm: bytes, rate_hz: int) -> None:
        if rate_hz != self._rate_hz:
            self._pcm.clear()
            self._rate_hz = rate_hz
        if len(self._pcm) + len(pcm) > 2 * rate_hz * MAX_TURN_S:
            self._too_long = True
        else:
            self._pcm += pcm

    async def _want_answer(self, text: str | None) -> None:
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
            after_result = result_given and text is None and not pcm
            self._tasks.start_soon(self._answer, scope, self._setup, pcm, text, after_result)

    async def _answer(
        self, scope: anyio.CancelScope, setup: Setup, pcm: bytes, text: str | None, after_result: bool
    ) -> None:
        try:
            with scope:
                async with self._answering:
                    await self._give(setup, pcm, text, after_result)
        finally:
            self._answers.remove(scope)

    async def _give(self, setup: Setup, pcm: bytes, text: str | None, after_result: bool) -> None:
        try:
            if after_result:
                reply = self._agent.after_result(self._last_call)
            else:
                reply = await self._agent.reply(setup, pcm, self._rate_hz or setup.input_rate_hz, text)
        except BrainError as error:
            _log.warning("no answer: %s", error)
            await self._fail("server_error", str(error))
            return
        self._last_call = reply.calls[0] if reply.calls else self._last_call
        await self._send_all(self._dialect.answer(reply))

    async def _fail(self, code: str, message: str) -> None:
        self.failed = True
        await self._send_all(self._dialect.failure(code, message))
