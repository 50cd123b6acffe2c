"""The WebSocket transport against a real server on loopback."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha1
from pathlib import Path

import anyio
import pytest
import uvloop
from aiohttp import WSMsgType, web

from captures.capture import NetworkTimes
from captures.clock import MonotonicClock
from captures.frames import ClosedBy, InFrame, OutFrame
from rig.agents.tls import self_signed
from transports.transport import MAX_MESSAGE_BYTES, Endpoint, TransportError
from transports.websocket import WebSocketTransport

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[int]:
    app = web.Application()
    app.router.add_get("/agent", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


class Client:
    """A transport with its callbacks written down."""

    def __init__(self) -> None:
        self.transport = WebSocketTransport(MonotonicClock())
        self.frames: list[InFrame] = []
        self.closed: list[ClosedBy] = []
        self.news = asyncio.Event()

    async def connect(self, port: int, query: str = "", **headers: str) -> None:
        url = f"ws://127.0.0.1:{port}/agent"
        await self.transport.connect(Endpoint(url + query, headers, url), self._frame, self._close)

    def _frame(self, frame: InFrame) -> None:
        self.frames.append(frame)
        self.news.set()

    def _close(self, closed: ClosedBy) -> None:
        self.closed.append(closed)
        self.news.set()

    async def until(self, done: Callable[[], bool]) -> None:
        with anyio.fail_after(10):
            while not done():
                self.news.clear()
                await self.news.wait()


async def echo(request: web.Request) -> web.StreamResponse:
    ws = web.WebSocketResponse(max_msg_size=MAX_MESSAGE_BYTES)
    await ws.prepare(request)
    async for message in ws:
        if message.type == WSMsgType.TEXT:
            await ws.send_str(message.data)
        elif message.type == WSMsgType.BINARY:
            await ws.send_bytes(message.data)
    return ws


def test_frames_of_both_kinds_go_and_come_unchanged() -> None:
    async def main() -> None:
        async with serving(echo) as port:
            client = Client()
            await client.connect(port)
            big = bytes(range(256)) * 8000
            client.transport.write(OutFrame('{"a": "é"}'.encode()))
            client.transport.write(OutFrame(big, binary=True))
            await client.until(lambda: len(client.frames) == 2)
            await client.transport.close()
            await client.transport.close()
        assert [(f.payload, f.binary) for f in client.frames] == [('{"a": "é"}'.encode(), False), (big, True)]
        assert client.frames[0].t_ns <= client.frames[1].t_ns
        assert [c.by_peer for c in client.closed] == [False]

    asyncio.run(main())


@pytest.mark.parametrize(("code", "reason"), [(1000, ""), (1008, "no such model"), (4000, "beta_api_shape_disabled")])
def test_the_peers_close_code_and_reason_are_kept(code: int, reason: str) -> None:
    async def closing(request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        await ws.send_str("{}")
        await ws.close(code=code, message=reason.encode())
        return ws

    async def main() -> None:
        async with serving(closing) as port:
            client = Client()
            await client.connect(port)
            await client.until(lambda: bool(client.closed))
            await client.transport.close()
        assert (client.closed[0].code, client.closed[0].reason, client.closed[0].by_peer) == (code, reason, True)
        assert len(client.closed) == 1

    asyncio.run(main())


def test_a_lost_connection_has_no_code() -> None:
    async def dropping(request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        sock = request.transport.get_extra_info("socket")  # type: ignore[union-attr]
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        request.transport.abort()  # type: ignore[union-attr]
        return ws

    async def main() -> None:
        async with serving(dropping) as port:
            client = Client()
            await client.connect(port)
            await client.until(lambda: bool(client.closed))
            client.transport.write(OutFrame(b"{}"))
            await client.transport.close()
        assert (client.closed[0].code, client.closed[0].by_peer) == (None, True)

    asyncio.run(main())


@pytest.mark.parametrize("status", [401, 403, 404, 429, 503])
def test_a_refused_handshake_names_status_and_never_the_key(status: int) -> None:
    key = "TESTKEY-not-real-7f3a9c"

    async def refusing(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text="go away", headers={"Retry-After": "7"})

    async def main() -> None:
        async with serving(refusing) as port:
            client = Client()
            with pytest.raises(TransportError) as caught:
                await client.connect(port, f"?key={key}", Authorization=f"Bearer {key}")
            await client.transport.close()
        error = caught.value
        assert (error.status, error.code, error.body, error.retry_after_s) == (
            status,
            f"http_{status}",
            "go away",
            7.0,
        )
        assert key not in repr(error) + str(error)
        assert error.__cause__ is None
        assert error.__context__ is None

    asyncio.run(main())


def test_nothing_listening_and_no_such_host_are_told_apart() -> None:
    async def main() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with pytest.raises(TransportError, match="nothing listens") as caught:
            await Client().connect(port)
        assert caught.value.code == "refused"
        transport = WebSocketTransport(MonotonicClock())
        with pytest.raises(TransportError) as caught:
            await transport.connect(Endpoint("http://127.0.0.1:1", {}, "http://127.0.0.1:1"), print, print)
        assert caught.value.code == "bad_address"

    asyncio.run(main())


def test_a_server_that_speaks_no_websocket_is_named() -> None:
    async def main() -> None:
        async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"SSH-2.0-hello\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(garbage, "127.0.0.1", 0)
        async with server:
            with pytest.raises(TransportError) as caught:
                await Client().connect(server.sockets[0].getsockname()[1])
        assert caught.value.code == "not_websocket"

    asyncio.run(main())


def test_a_connection_lost_in_the_handshake_is_a_failure_at_once() -> None:
    async def main() -> None:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        async with server:
            with anyio.fail_after(5), pytest.raises(TransportError, match="during the handshake") as caught:
                await Client().connect(server.sockets[0].getsockname()[1])
        assert caught.value.code == "network"

    asyncio.run(main())


def test_what_answers_a_greeting_that_came_with_the_handshake_is_sent() -> None:
    async def run() -> bytes:
        heard = asyncio.get_running_loop().create_future()

        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            request = await reader.readuntil(b"\r\n\r\n")
            key = next(line for line in request.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
            accept = b64encode(sha1(key.split(b": ")[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            writer.write(answer + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n" + b"\x81\x05hello")
            frame = await reader.read(64)
            heard.set_result(bytes(byte ^ frame[2 + n % 4] for n, byte in enumerate(frame[6:])))
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        async with server, asyncio.timeout(5):
            transport = WebSocketTransport(MonotonicClock())
            endpoint = Endpoint(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/", {}, "agent")
            await transport.connect(endpoint, lambda _: transport.write(OutFrame(b"settings")), lambda _: None)
            await transport.close()
            got: bytes = await heard
            return got

    assert uvloop.run(run()) == b"settings"


def test_a_peer_that_breaks_the_protocol_is_closed_by_us() -> None:
    async def main() -> None:
        async def masked_frame(request: web.Request) -> web.StreamResponse:
            ws = web.WebSocketResponse()
            await ws.prepare(request)
            assert request.transport is not None
            request.transport.write(b"\x83\x00")  # an opcode that does not exist
            await ws.receive()
            return ws

        async with serving(masked_frame) as port:
            client = Client()
            await client.connect(port)
            await client.until(lambda: bool(client.closed))
            await client.transport.close()
        assert (client.closed[0].code, client.closed[0].by_peer) == (1002, False)

    asyncio.run(main())


def test_loopback_ignores_an_environment_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    async def main() -> None:
        async with serving(echo) as port:
            client = Client()
            await client.connect(port)
            await client.transport.close()

    asyncio.run(main())


def test_the_way_to_the_peer_is_measured_apart() -> None:
    async def main() -> None:
        async with serving(echo) as port:
            client = Client()
            assert client.transport.network_times() == NetworkTimes()
            await client.connect(port)
            for count in range(1, 4):
                client.transport.ping()
                client.transport.ping()  # the one before is still under way
                with anyio.fail_after(10):
                    while len(client.transport.network_times().ping_ns) < count:
                        client.transport.write(OutFrame(b"x"))
                        client.news.clear()
                        await client.news.wait()
            found = client.transport.network_times()
            await client.transport.close()
        assert len(found.ping_ns) == 3
        assert all(ns > 0 for ns in found.ping_ns)
        assert found.tls_ns is None
        for step_ns in (found.resolve_ns, found.tcp_ns, found.upgrade_ns):
            assert step_ns is not None
            assert step_ns > 0

    asyncio.run(main())


def test_pings_are_bounded_and_after_the_close_harmless() -> None:
    async def main() -> None:
        async with serving(echo) as port:
            client = Client()
            client.transport.ping()
            await client.connect(port)
            for count in range(1, 17):
                client.transport.ping()
                with anyio.fail_after(10):
                    while len(client.transport.network_times().ping_ns) < count:
                        client.transport.write(OutFrame(b"x"))
                        client.news.clear()
                        await client.news.wait()
            client.transport.ping()
            client.transport.write(OutFrame(b"last"))
            await client.until(lambda: any(frame.payload == b"last" for frame in client.frames))
            await client.transport.close()
            client.transport.ping()
            assert len(client.transport.network_times().ping_ns) == 16

    asyncio.run(main())


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_tls_has_a_time_of_its_own(tmp_path: Path, loop: str) -> None:
    async def main() -> None:
        server_tls = self_signed("localhost", tmp_path / "certificate.pem")
        app = web.Application()
        app.router.add_get("/agent", echo)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_tls)
        await site.start()
        trusted = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
        transport = WebSocketTransport(MonotonicClock(), trusted)
        try:
            port = runner.addresses[0][1]
            url = f"wss://localhost:{port}/agent"
            await transport.connect(Endpoint(url, {}, url), lambda frame: None, lambda closed: None)
            found = transport.network_times()
        finally:
            await transport.close()
            await runner.cleanup()
        assert found.tls_ns is not None
        assert found.upgrade_ns is not None
        assert min(found.tls_ns, found.upgrade_ns) > 0

    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as running:
        running.run(main())
