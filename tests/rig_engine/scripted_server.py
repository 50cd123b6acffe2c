"""A server that plays a script to whoever connects, on loopback, and keeps all that it received.

It knows no dialect of ours: a script is a list of steps, each a tuple, and names the wire's own messages. Not a model
of any vendor; what it says is what the script says. It runs in a thread with an event loop of its own, so that a
blocked client never blocks it.

Steps, one connection or request each:

    ("refuse", status, body)    answer the handshake (or the request) with an HTTP status
    ("expect", type)            read until a message of this type came; appended and binary audio is read along
    ("expect", type, samples)   the same, the message being ordinary audio: until so many samples have come
    ("confirm",)                `session.updated` with the session that was received
    ("send", message)           a dict as JSON text, bytes as a binary frame
    ("reply", message)          file mode: the request's body as JSON
    ("wait", seconds)
    ("call", function)          call it in this thread
    ("silent",)                 send nothing more; read until the client goes
    ("close", code, reason)
    ("drop",)                   cut the connection without a close
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

Step = tuple[Any, ...]
Script = Sequence[Step]
_LIMIT_S = 20.0


@dataclass
class Connection:
    """What one client did."""

    path: str
    headers: dict[str, str]
    query: dict[str, str]
    received: list[tuple[int, Any]] = field(default_factory=list)
    """(stamp in monotonic ns, dict or bytes) of every message."""
    sent_ns: list[int] = field(default_factory=list)
    """Stamp of every message of ours."""
    deviations: list[str] = field(default_factory=list)
    """Messages that came while another was expected, by type."""
    closed: bool = False
    """The client has gone."""

    @property
    def types(self) -> list[str]:
        """Types of all messages but audio."""
        return [kind for _, message in self.received if (kind := _type_of(message)) is not None]

    @property
    def audio(self) -> bytes:
        """All audio received, in order."""
        return b"".join(_audio_of(message) for _, message in self.received)

    @property
    def pieces(self) -> list[tuple[int, bytes]]:
        """(stamp, audio) of every piece."""
        return [(t_ns, _audio_of(message)) for t_ns, message in self.received if _audio_of(message)]

    def first(self, kind: str) -> Any:
        """The first message of a type."""
        return next(message for _, message in self.received if _type_of(message) == kind)

    def stamp(self, kind: str) -> int:
        """When the first message of a type came (monotonic ns)."""
        return next(t_ns for t_ns, message in self.received if _type_of(message) == kind)


class ScriptedServer:
    """One listening server. Connection n plays script n; the last script serves all further ones."""

    def __init__(self, scripts: Sequence[Script]) -> None:
        self.connections: list[Connection] = []
        self.port = 0
        self._scripts = scripts

    @property
    def ws_url(self) -> str:
        """For WebSocket targets."""
        return f"ws://127.0.0.1:{self.port}/v1/realtime"

    @property
    def http_url(self) -> str:
        """For file mode."""
        return f"http://127.0.0.1:{self.port}/v1"

    def play(self, *scripts: Script) -> None:
        """Forget the connections so far; the next one plays the first of these."""
        self.connections, self._scripts = [], scripts

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One connection or request."""
        script = self._scripts[min(len(self.connections), len(self._scripts) - 1)]
        connection = Connection(request.path, dict(request.headers), dict(request.query))
        self.connections.append(connection)
        if script and script[0][0] == "refuse":
            return web.Response(status=script[0][1], text=script[0][2])
        if request.method == "POST":
            return await _answer(request, script, connection)
        socket = web.WebSocketResponse(max_msg_size=0, autoping=True, timeout=1.0)
        await socket.prepare(request)
        try:
            async with asyncio.timeout(_LIMIT_S):
                await _play(request, socket, script, connection)
        except (ConnectionError, EOFError, TimeoutError):
            pass  # the client has gone, or never sent what the script waits for: the test reads what it did send
        finally:
            connection.closed = True
            await socket.close()
        return socket


async def _answer(request: web.Request, script: Script, connection: Connection) -> web.Response:
    connection.received.append((time.monotonic_ns(), await request.json()))
    for step in script:
        if step[0] == "wait":
            await asyncio.sleep(step[1])
        elif step[0] == "drop":
            assert request.transport is not None
            request.transport.abort()
        elif step[0] == "reply":
            connection.sent_ns.append(time.monotonic_ns())
            return web.json_response(step[1])
    return web.Response(status=500)


async def _play(request: web.Request, socket: web.WebSocketResponse, script: Script, connection: Connection) -> None:
    for step in script:
        match step:
            case ("expect", kind):
                while (found := _type_of(await _read(socket, connection))) != kind:
                    if found is not None:
                        connection.deviations.append(found)
            case ("expect", _, samples):
                while len(connection.audio) // 2 < samples:
                    await _read(socket, connection)
            case ("confirm",):
                session = connection.first("session.update")["session"]
                await _send(socket, connection, {"type": "session.updated", "session": session | {"id": "sess_1"}})
            case ("send", message):
                await _send(socket, connection, message)
            case ("wait", seconds):
                await asyncio.sleep(seconds)
            case ("call", function):
                function()
            case ("silent",):
                while True:
                    await _read(socket, connection)
            case ("close", code, reason):
                await socket.close(code=WSCloseCode(code) if code < 3000 else code, message=reason.encode())
                return
            case ("drop",):
                assert request.transport is not None
                request.transport.abort()
                return
            case _:
                raise ValueError(f"no such step: {step}")
    while True:  # the client closes
        await _read(socket, connection)


async def _read(socket: web.WebSocketResponse, connection: Connection) -> Any:
    message = await socket.receive()
    t_ns = time.monotonic_ns()
    if message.type is WSMsgType.TEXT:
        found: Any = json.loads(message.data)
    elif message.type is WSMsgType.BINARY:
        found = message.data
    else:
        raise EOFError("the client has gone")
    connection.received.append((t_ns, found))
    return found


async def _send(socket: web.WebSocketResponse, connection: Connection, message: Any) -> None:
    connection.sent_ns.append(time.monotonic_ns())
    if isinstance(message, bytes):
        await socket.send_bytes(message)
    else:
        await socket.send_str(json.dumps(message))


def _type_of(message: Any) -> str | None:
    """The type of a message that is not audio."""
    kind = message.get("type") if isinstance(message, dict) else None
    return None if kind == "input_audio_buffer.append" else kind


def _audio_of(message: Any) -> bytes:
    if isinstance(message, bytes):
        return message
    return base64.b64decode(message["audio"]) if message.get("type") == "input_audio_buffer.append" else b""


@contextmanager
def serving(*scripts: Script) -> Iterator[ScriptedServer]:
    """A server on a free port of loopback, in a thread, until the block ends."""
    server = ScriptedServer(scripts)
    started, stop = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", server.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.2, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.port = runner.addresses[0][1]
        loops.append(asyncio.get_running_loop())
        started.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=asyncio.run, args=(main(),), name="scripted-server")
    thread.start()
    assert started.wait(10), "the scripted server did not start"
    try:
        yield server
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(10)
        assert not thread.is_alive()
