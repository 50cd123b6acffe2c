"""The conversations that an agent is judged by: each a connection of its own, each wait bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import anyio

from adapters.dialect import Setup, ToolSpec
from adapters.rig_socket import wire
from adapters.rig_socket.client import RigSocketClient
from adapters.rig_socket.wire import FromRig, control
from captures.clock import MonotonicClock
from captures.frames import OutFrame
from rig.conformance.caller import Caller, Scene, SceneName, Stage
from rig.conformance.talk import Talk
from transports.transport import TransportError
from transports.websocket import WebSocketTransport

UNKNOWN_VERSION: Final = 999
TOOLS: Final = (
    ToolSpec("place_on_hold", "Puts the caller on hold.", {"type": "object", "properties": {}}),
    ToolSpec(
        "note_callback",
        "Notes that the caller wants to be called back.",
        {
            "type": "object",
            "properties": {"when": {"type": "string", "enum": ["today", "tomorrow"]}},
            "required": ["when"],
            "additionalProperties": False,
        },
    ),
)
INSTRUCTIONS: Final = (
    "You answer the phone of a shop. When the caller asks for one of your tools by its name, call it at once and "
    "once; otherwise answer in one short sentence."
)
ASKS_FOR_CALL: Final = "Please use place_on_hold now."
GREETS: Final = "Hello, what can you do for me?"
ASKS_FOR_LENGTH: Final = "Please tell me slowly everything that this shop sells."


@asynccontextmanager
async def _call(stage: Stage, name: SceneName, setup: Setup | None = None) -> AsyncIterator[Caller]:
    """A conversation that has been set up. What fails in it stands in its scene."""
    client = stage.client()
    clock = MonotonicClock()
    talk = Talk(WebSocketTransport(clock), clock)
    scene = Scene(name, talk, setup or _setup(stage, client))
    try:
        try:
            await talk.connect(client.endpoint(), stage.limits.ready_s)
        except TransportError as error:
            scene.failure = error
        yield Caller(stage, client, scene)
    finally:
        await talk.close()


def _setup(
    stage: Stage, client: RigSocketClient, tools: tuple[ToolSpec, ...] = TOOLS, rate_hz: int | None = None
) -> Setup:
    rates = client.capabilities.input_rates_hz
    return Setup(INSTRUCTIONS, tools, rate_hz or rates[0], stage.turn_control)


async def _speech(stage: Stage) -> list[Scene]:
    async with _call(stage, SceneName.SPEECH) as caller:
        if await _begin(caller):
            await caller.quiet()
            await caller.speak()
            await caller.quiet()
            await caller.ask(GREETS)
            await caller.quiet()
            caller.leave()
    return [caller.scene]


async def _begin(caller: Caller) -> bool:
    return caller.scene.failure is None and await caller.ready()


async def _words(stage: Stage) -> list[Scene]:
    async with _call(stage, SceneName.WORDS) as caller:
        if await _begin(caller):
            await caller.ask(GREETS)
            await caller.quiet()
            caller.leave()
    return [caller.scene]


async def _tool_call(stage: Stage) -> list[Scene]:
    async with _call(stage, SceneName.CALL) as caller:
        if await _begin(caller):
            turn = await caller.ask(ASKS_FOR_CALL)
            await caller.quiet()
            results = caller.results(turn)
            if results:
                await caller.wait_end(caller.begin(*results))
                await caller.ask(ASKS_FOR_CALL)
                await caller.quiet()
            caller.leave()
    return [caller.scene]


async def _no_tools(stage: Stage) -> list[Scene]:
    setup = _setup(stage, stage.client(), tools=())
    async with _call(stage, SceneName.NO_TOOLS, setup) as caller:
        if await _begin(caller):
            await caller.ask(ASKS_FOR_CALL)
            caller.leave()
    return [caller.scene]


async def _empty(stage: Stage) -> list[Scene]:
    async with _call(stage, SceneName.EMPTY) as caller:
        if await _begin(caller):
            await caller.speak(b"")
            caller.leave()
    return [caller.scene]


async def _cancel(stage: Stage) -> list[Scene]:
    async with _call(stage, SceneName.CANCEL) as caller:
        if await _begin(caller):
            turn = caller.ask_and_cancel(ASKS_FOR_LENGTH)
            caller.scene.cancelled_ns = turn.asked_ns
            await caller.wait_end(turn, stage.limits.cancel_s)
            await caller.quiet()
            caller.leave()
    return [caller.scene]


async def _truncate(stage: Stage) -> list[Scene]:
    async with _call(stage, SceneName.TRUNCATE) as caller:
        if await _begin(caller):
            await caller.ask(GREETS)
            caller.send(control(FromRig.TRUNCATE, audio_ms=100))
            await caller.ask(GREETS)
            caller.leave()
    return [caller.scene]


async def _version(stage: Stage) -> list[Scene]:
    async with _call(stage, SceneName.VERSION) as caller:
        scene = caller.scene
        if scene.failure is None:
            fields = wire.setup_fields(scene.setup) | {"version": UNKNOWN_VERSION, "versions": [UNKNOWN_VERSION]}
            scene.talk.expect_close()
            caller.send(control(FromRig.SETUP, **fields))
            await scene.talk.until(lambda: bool(scene.talk.heard), stage.limits.ready_s)
            await caller.quiet()
    return [scene]


async def _rates(stage: Stage) -> list[Scene]:
    scenes = []
    for rate_hz in sorted(wire.INPUT_RATES_HZ):
        setup = _setup(stage, stage.client(), rate_hz=rate_hz)
        async with _call(stage, SceneName.RATES, setup) as caller:
            caller.scene.talk.expect_close()
            if await _begin(caller):
                caller.leave()
        scenes.append(caller.scene)
    return scenes


async def _unknown(stage: Stage) -> list[Scene]:
    async with _call(stage, SceneName.UNKNOWN) as caller:
        if await _begin(caller):
            caller.send(OutFrame(b'{"type": "x_conformance.future", "number": 1}'))
            await caller.ask(GREETS, x_conformance={"deep": [1, 2]})
            caller.leave()
    return [caller.scene]


async def _hang_up(stage: Stage) -> list[Scene]:
    async with _call(stage, SceneName.HANG_UP) as caller:
        if await _begin(caller):
            caller.send(control(FromRig.TURN_START), OutFrame(bytes(640), binary=True))
    gone = caller.scene
    async with _call(stage, SceneName.HANG_UP) as caller:
        if await _begin(caller):
            await caller.ask(GREETS)
            caller.leave()
    return [gone, caller.scene]


async def _two(stage: Stage) -> list[Scene]:
    scenes = []

    async def one() -> None:
        async with _call(stage, SceneName.TWO) as caller:
            scenes.append(caller.scene)
            if await _begin(caller):
                await caller.ask(GREETS)
                caller.leave()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        tasks.start_soon(one)
    return scenes


SCENES: Final[Mapping[SceneName, Callable[[Stage], Awaitable[list[Scene]]]]] = {
    SceneName.SPEECH: _speech,
    SceneName.WORDS: _words,
    SceneName.CALL: _tool_call,
    SceneName.NO_TOOLS: _no_tools,
    SceneName.EMPTY: _empty,
    SceneName.CANCEL: _cancel,
    SceneName.TRUNCATE: _truncate,
    SceneName.VERSION: _version,
    SceneName.RATES: _rates,
    SceneName.UNKNOWN: _unknown,
    SceneName.HANG_UP: _hang_up,
    SceneName.TWO: _two,
}
