"""A scripted agent of the rig socket, and what holds it to the contract over loopback."""

from __future__ import annotations

import asyncio
import json
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from aiohttp import WSMsgType, web

from adapters.dialect import TargetSettings, TurnControlSettings, TurnMode
from adapters.rig_socket.client import RigSocketClient
from rig.conformance.caller import Limits, Stage
from rig.conformance.run import CHECKS, Report, chosen_checks, conform

RATE_HZ = 24_000


def tone(seconds: float, rate_hz: int = RATE_HZ) -> bytes:
    """A steady sound of 200 Hz."""
    return b"".join(
        struct.pack("<h", round(8000 * math.sin(i * 400 * math.pi / rate_hz))) for i in range(int(seconds * rate_hz))
    )


class Agent:
    """Keeps the contract. Agents that break it override one method."""

    transcript = "You said something to me."
    stated_hz: Any = RATE_HZ
    calls_made = 0

    def __init__(self, house: dict[str, Any]) -> None:
        self.house = house
        """What the connections of one server share."""
        self.tools: list[Any] = []
        self.heard = b""
        self.turns = 0
        self.awaited: set[Any] = set()
        self.ws = web.WebSocketResponse(compress=False, max_msg_size=0, timeout=1)

    async def run(self, request: web.Request) -> web.WebSocketResponse:
        await self.ws.prepare(request)
        try:
            async for message in self.ws:
                if message.type is WSMsgType.BINARY:
                    await self.on_audio(message.data)
                else:
                    await self.on_message(json.loads(message.data))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.left()
        return self.ws

    def left(self) -> None:
        pass

    async def say(self, kind: str, /, **fields: Any) -> None:
        await self.ws.send_str(json.dumps({"type": kind, **fields}))

    async def on_message(self, message: dict[str, Any]) -> None:
        handlers = {
            "session.setup": self.on_setup,
            "turn.start": self.on_start,
            "turn.commit": self.on_commit,
            "turn.text": self.on_text,
            "tool.result": self.on_result,
            "turn.cancel": self.on_cancel,
            "reply.truncate": self.on_truncate,
        }
        await handlers.get(message["type"], self.on_unknown)(message)

    async def on_setup(self, message: dict[str, Any]) -> None:
        if 1 not in message["versions"]:
            await self.say("error", kind="configuration", code="version_mismatch", message="only 1", versions=[1])
            await self.ws.close(code=4400)
            return
        self.tools = message["tools"]
        await self.ready()

    async def ready(self) -> None:
        await self.say("session.ready", version=1, agent="scripted", output_rate_hz=self.stated_hz)

    async def on_start(self, message: dict[str, Any]) -> None:
        self.heard = b""

    async def on_audio(self, pcm: bytes) -> None:
        self.heard += pcm

    async def on_commit(self, message: dict[str, Any]) -> None:
        self.turns += 1
        await self.speak()
        await self.say("reply.transcript", text=self.transcript)
        await self.end()

    async def speak(self) -> None:
        pcm = self.speech()
        for start in range(0, len(pcm), 4801):
            await self.ws.send_bytes(pcm[start : start + 4801])

    def speech(self) -> bytes:
        return tone(1.5)

    async def on_text(self, message: dict[str, Any]) -> None:
        self.turns += 1
        named = next((tool["name"] for tool in self.tools if tool["name"] in message["text"]), None)
        if named is not None:
            await self.call(named)
        else:
            await self.text()
        await self.end()

    async def text(self) -> None:
        await self.say("reply.text", text="You wrote something.")

    async def call(self, name: str, **more: Any) -> None:
        self.calls_made += 1
        fields = {"call_id": f"c{self.calls_made}", "name": name, "arguments": {}, **more}
        self.awaited.add(fields["call_id"])
        await self.say("tool.call", **fields)

    async def on_result(self, message: dict[str, Any]) -> None:
        self.awaited.discard(message["call_id"])
        if not self.awaited:
            await self.text()
            await self.end()

    async def on_cancel(self, message: dict[str, Any]) -> None:
        pass

    async def on_truncate(self, message: dict[str, Any]) -> None:
        pass

    async def on_unknown(self, message: dict[str, Any]) -> None:
        pass

    async def end(self) -> None:
        await self.say("turn.end")


@pytest.fixture
def scripted() -> type[Agent]:
    return Agent


@pytest.fixture
def hold() -> Callable[..., Report]:
    """Serve agents of a class and hold them to checks, by name or all."""

    def hold_(
        agent: type[Agent], *names: str, limits: Limits | None = None, mode: str = "manual", **settings: Any
    ) -> Any:
        checks: Sequence[Any] = chosen_checks(names) if names else CHECKS
        limits = limits or Limits(ready_s=20, turn_s=20, cancel_s=1, quiet_s=0.05)

        async def run() -> Report:
            house: dict[str, Any] = {}
            application = web.Application()

            async def answer(request: web.Request) -> web.WebSocketResponse:
                return await agent(house).run(request)

            application.router.add_get("/", answer)
            runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.05)
            await runner.setup()
            try:
                site = web.TCPSite(runner, "127.0.0.1", 0)
                await site.start()
                url = f"ws://127.0.0.1:{runner.addresses[0][1]}/?token=TESTKEY-not-real-41"
                target = TargetSettings("", url, None, settings)
                control = TurnControlSettings(TurnMode(mode))
                stage = Stage(lambda: RigSocketClient(target), tone(0.1), control, limits)
                return await conform(stage, checks, secrets=("TESTKEY-not-real-41",))
            finally:
                await runner.cleanup()

        return anyio.run(run)

    return hold_
