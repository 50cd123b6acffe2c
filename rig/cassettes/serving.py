"""Plays a cassette to a live client as the vendor did: the same messages, each as long after the client's own step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from aiohttp import WSMsgType, web

from captures.clock import MonotonicClock
from rig.agents.children import ChildError
from rig.cassettes.script import Script, Steps, kind_of

MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
_TOLD_AFTER_S: Final = 2.0
"""What the session waits for is said when a client takes no step for this long."""
_IDLE_S: Final = 600.0
"""A client that takes no further step within this is hung up on."""

Tell = Callable[[str], None]


@asynccontextmanager
async def served(
    script: Script, port: int, tell: Tell, *, speed: float = 1.0, on_done: Callable[[], None] = lambda: None
) -> AsyncIterator[int]:
    """Serve `script` on loopback, to each client anew, while the context lasts; the port.

    `speed` divides every delay. `on_done` is called after each session. Raises ChildError when it cannot listen.
    """
    player = _Player(script, tell, speed, on_done)
    application = web.Application(client_max_size=MAX_MESSAGE_BYTES)
    application.router.add_route("*", "/{path:.*}", player.post if script.one_request else player.websocket)
    runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        try:
            await site.start()
        except OSError as error:
            said = error.strerror or type(error).__name__
            raise ChildError(f"port {port}: cannot listen ({said}); choose another --port") from None
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


class _Player:
    def __init__(self, script: Script, tell: Tell, speed: float, on_done: Callable[[], None]) -> None:
        self._script = script
        self._tell = tell
        self._speed = speed
        self._on_done = on_done

    async def post(self, request: web.Request) -> web.Response:
        """One request of file mode."""
        self._tell(f"{request.method} {request.path}")
        await request.read()
        (line,) = self._script.lines
        await asyncio.sleep(line.after_ns / 1e9 / self._speed)
        self._on_done()
        return web.Response(body=line.payload, content_type="application/json")

    async def websocket(self, request: web.Request) -> web.WebSocketResponse:
        """One session of a client."""
        socket = web.WebSocketResponse(max_msg_size=MAX_MESSAGE_BYTES, compress=False, autoping=True)
        await socket.prepare(request)
        self._tell(f"client at {request.path}")
        session = _Session(self._script, self._tell, self._speed)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(session.speak, socket)
                await session.listen(socket)
                group.cancel_scope.cancel()
        finally:
            with suppress(ConnectionError):
                await socket.close()
            session.close()
            self._on_done()
        return socket


class _Session:
    def __init__(self, script: Script, tell: Tell, speed: float) -> None:
        self._script = script
        self._tell = tell
        self._speed = speed
        self._clock = MonotonicClock()
        self._taken_ns = [self._clock.now_ns()]
        """When each step of the client was taken; the connection is the first."""
        self._moved = anyio.Event()
        self._sent = 0

    async def listen(self, socket: web.WebSocketResponse) -> None:
        """Take the client's messages until it closes."""
        steps = Steps()
        async for message in socket:
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                return
            binary = message.type is WSMsgType.BINARY
            payload = message.data if binary else message.data.encode()
            if steps.is_step(payload, binary):
                self._take(kind_of(payload, binary))

    def _take(self, kind: str) -> None:
        number = len(self._taken_ns) - 1
        recorded = self._script.steps[number] if number < len(self._script.steps) else None
        if recorded is None:
            self._tell(f"step {number + 1}: {kind}, where the recorded client had none")
        elif recorded != kind:
            self._tell(f"step {number + 1}: {kind}, where the recorded client sent {recorded}")
        self._taken_ns.append(self._clock.now_ns())
        moved, self._moved = self._moved, anyio.Event()
        moved.set()

    async def speak(self, socket: web.WebSocketResponse) -> None:
        """Send the vendor's messages in order, each at its time behind its step."""
        for line in self._script.lines:
            while len(self._taken_ns) <= line.step:
                if not await self._step_taken(_TOLD_AFTER_S):
                    self._tell(f"waits for step {self._awaited()}")
                    if not await self._step_taken(_IDLE_S):
                        self._tell(f"the client took no step for {_IDLE_S:g} s; hung up")
                        await socket.close()
                        return
            due_ns = self._taken_ns[line.step] + round(line.after_ns / self._speed)
            wait_ns = due_ns - self._clock.now_ns()
            if wait_ns > 0:
                await anyio.sleep(wait_ns / 1e9)
            if line.binary:
                await socket.send_bytes(line.payload)
            else:
                await socket.send_str(line.payload.decode())
            self._sent += 1

    async def _step_taken(self, within_s: float) -> bool:
        with anyio.move_on_after(within_s) as waiting:
            await self._moved.wait()
        return not waiting.cancelled_caught

    def _awaited(self) -> str:
        """The client's next step as it was recorded."""
        number = len(self._taken_ns)
        return f"{number}: {self._script.steps[number - 1]}"

    def close(self) -> None:
        """Say how far it went."""
        left = len(self._script.lines) - self._sent
        waits = left and len(self._taken_ns) <= len(self._script.steps)
        waited = f"; it waited for step {self._awaited()}" if waits else ""
        self._tell(f"session over: {self._sent} of {len(self._script.lines)} messages sent{waited}")
