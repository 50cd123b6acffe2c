"""A WebSocket server that breaks in one known way per connection; the way stands in the path of the request.

Bytes are written by hand, so that it can do what no library lets a server do. What is not broken in a conversation
comes from the dialect's own server half. It runs on the event loop of the sessions under test.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import struct
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from adapters import registry
from adapters.server import AnswerWanted, Reply, ReplyCall
from captures.frames import InFrame, OutFrame

_PATH = re.compile(rb"^GET /(?P<dialect>[a-z_]+)/(?P<fault>[a-z0-9-]+)")
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MIB = 1 << 20
CALLED = Reply((ReplyCall("book_table", {"party": 4, "time": "19:30"}),))


class GoneError(Exception):
    """The connection is to be left as it is now."""


class _Conversation:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.name = "before its request"

    async def run(self) -> None:
        first = await self._reader.readexactly(1)
        if first == b"\x16":  # a TLS client
            await self._write(b"HTTP/1.1 400 This is no TLS\r\n\r\n")
            return
        head = first + await self._reader.readuntil(b"\r\n\r\n")
        found = _PATH.match(head)
        if found is None:
            return
        self._fault = found["fault"].decode()
        self.name = found[0].decode()
        self._server: Any = registry.dialect(found["dialect"].decode()).server()
        await self._handshake(head)
        if self._fault == "no-ack":
            await self._silence()
        await self._send(self._server.greeting({"model": "m"}))
        while True:
            opcode, payload = await self._frame()
            if opcode == 8:
                await self._write(_framed(8, payload))
                return
            if opcode not in (1, 2):
                continue
            step = self._server.receive(InFrame(payload, opcode == 2, 0))
            await self._send(step.frames)
            if any(isinstance(intent, AnswerWanted) for intent in step.intents):
                await self._answer()

    async def _handshake(self, head: bytes) -> None:
        key = re.search(rb"(?im)^sec-websocket-key: *(\S+)", head)
        assert key is not None
        accept = base64.b64encode(hashlib.sha1(key[1] + _GUID).digest())
        upgrade = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        upgrade += b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        match self._fault:
            case "cut-handshake":
                self._abort()
            case "half-open-handshake":
                await self._silence()
            case "slow-loris":
                await self._drip(upgrade, 0.5)
            case "http-503":
                await self._write(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy")
                raise GoneError
            case "not-websocket":
                await self._write(b"SSH-2.0-none\r\n\r\n")
                raise GoneError
            case _:
                await self._write(upgrade)

    async def _answer(self) -> None:
        frames = [_framed(2 if one.binary else 1, one.payload) for one in self._server.answer(CALLED)]
        match self._fault:
            case "cut":
                self._abort()
            case "cut-mid-frame":
                await self._write(frames[0][: len(frames[0]) // 2])
                self._abort()
            case "close-1011":
                await self._write(_framed(8, struct.pack("!H", 1011) + b"internal error"))
                raise GoneError
            case "silent":
                await self._silence()
            case "drip":
                await self._drip(b"".join(frames), 1.0)
            case "bad-frame":
                await self._write(b"\x83\x00")  # an opcode that does not exist
                await self._silence()
            case "bad-json":
                await self._write(_framed(1, b'{"type": "'))
                await self._silence()
            case "bad-utf8":
                await self._write(_framed(1, b'{"type": "\xff\xfe\xc3"}'))
                await self._silence()
            case "bad-json-and-answer":
                await self._write(_framed(1, b"]{") + b"".join(frames))
            case "unknown-and-answer":
                await self._write(_framed(1, b'{"type": "rate.of.moon", "phase": [1]}') * 500 + b"".join(frames))
            case "flood":
                piece = _framed(1, b'{"type": "rate.of.moon"}') * 1000
                for _ in range(110):
                    await self._write(piece)
            case "frame-60-mib":
                await self._write(_framed(1, _large(60)) + b"".join(frames))
            case "frame-70-mib":
                await self._write(_framed(1, _large(70)))
            case _:
                await self._write(b"".join(frames))

    async def _send(self, frames: Iterable[OutFrame]) -> None:
        await self._write(b"".join(_framed(2 if one.binary else 1, one.payload) for one in frames))

    async def _write(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()

    async def _drip(self, content: bytes, each_s: float) -> None:
        """One byte every `each_s` until the other side has gone."""
        for byte in content:
            await self._write(bytes([byte]))
            with suppress(TimeoutError):
                async with asyncio.timeout(each_s):
                    await self._silence()

    async def _silence(self) -> None:
        """Answer nothing, whatever the client does, until its socket is closed."""
        while await self._reader.read(1 << 16):
            pass
        raise GoneError

    def _abort(self) -> None:
        self._writer.transport.abort()
        raise GoneError

    async def _frame(self) -> tuple[int, bytes]:
        first, second = await self._reader.readexactly(2)
        size = second & 127
        if size > 125:
            size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8), "big")
        mask = await self._reader.readexactly(4)
        masked = await self._reader.readexactly(size)
        whole = (mask * (size // 4 + 1))[:size]
        payload = (int.from_bytes(masked, "big") ^ int.from_bytes(whole, "big")).to_bytes(size, "big")
        return first & 15, payload


@asynccontextmanager
async def hostile() -> AsyncIterator[int]:
    """A running server, by its port. Clients that have not closed their sockets when it is left fail an assertion."""
    running: dict[asyncio.Task[Any], _Conversation] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running[task] = conversation = _Conversation(reader, writer)
        try:
            await conversation.run()
        except (GoneError, OSError, EOFError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            del running[task]

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        if running:
            await asyncio.wait(running, timeout=20)
        for task in running:
            task.cancel()
        outlived = Counter(conversation.name for conversation in running.values())
    assert not outlived, f"connections of the server outlived their clients: {dict(outlived)}"


def _framed(opcode: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        head = bytes([0x80 | opcode, size])
    elif size < 1 << 16:
        head = bytes([0x80 | opcode, 126]) + struct.pack("!H", size)
    else:
        head = bytes([0x80 | opcode, 127]) + struct.pack("!Q", size)
    return head + payload


def _large(mib: int) -> bytes:
    return b'{"type": "rate.of.moon", "filling": "' + b"moon" * (mib * _MIB // 4) + b'"}'
