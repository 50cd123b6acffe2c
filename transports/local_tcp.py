"""Transport to a process of this machine: length-prefixed messages over loopback TCP, with a one-time token first.

The token stands in the address as `?token=`; a message is a 4-byte big-endian length, one byte (0 text, 1 binary) and
the payload.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import cast
from urllib.parse import parse_qs, urlsplit

from captures.clock import Clock
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import MAX_MESSAGE_BYTES, Endpoint, TransportError

_HEAD = struct.Struct("!IB")
_CLOSE_LIMIT_S = 2.0


class LocalTcpTransport:
    """One connection. Meets `transports.transport.Transport`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wire: _Wire | None = None

    async def connect(
        self,
        endpoint: Endpoint,
        on_frame: Callable[[InFrame], None],
        on_closed: Callable[[ClosedBy], None],
    ) -> None:
        """See `Transport.connect`."""
        parts = urlsplit(endpoint.url)
        token = parse_qs(parts.query).get("token", [""])[0]
        loop = asyncio.get_running_loop()
        try:
            _, wire = await loop.create_connection(
                lambda: _Wire(self._clock, on_frame, on_closed), "127.0.0.1", parts.port or 1
            )
        except OSError:
            raise TransportError(f"the process of {endpoint.label} is gone", code="refused") from None
        self._wire = wire
        wire.send(token.encode(), binary=False)

    def write(self, frame: OutFrame) -> None:
        """See `Transport.write`."""
        if self._wire is not None:
            self._wire.send(frame.payload, frame.binary)

    def backlog_bytes(self) -> int:
        """See `Transport.backlog_bytes`."""
        return 0 if self._wire is None else self._wire.backlog_bytes()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `Transport.close`."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.end()


class _Wire(asyncio.Protocol):
    def __init__(
        self, clock: Clock, on_frame: Callable[[InFrame], None], on_closed: Callable[[ClosedBy], None]
    ) -> None:
        self._clock = clock
        self._on_frame = on_frame
        self._on_closed = on_closed
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._ended = asyncio.Event()
        self._ours = False
        self._too_big = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        t_ns = self._clock.now_ns()
        self._received += data
        while len(self._received) >= _HEAD.size:
            size, kind = _HEAD.unpack_from(self._received)
            if size > MAX_MESSAGE_BYTES:
                self._too_big = True
                self.abort()
                return
            end = _HEAD.size + size
            if len(self._received) < end:
                return
            payload = bytes(self._received[_HEAD.size : end])
            del self._received[:end]
            self._on_frame(InFrame(payload, kind == 1, t_ns))

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()
        code, reason = None, "closed by us" if self._ours else "connection lost"
        if self._too_big:
            code, reason = 1009, f"a message over {MAX_MESSAGE_BYTES >> 20} MiB"
        self._on_closed(ClosedBy(self._clock.now_ns(), code, reason, by_peer=not self._ours and not self._too_big))

    def send(self, payload: bytes, binary: bool) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_HEAD.pack(len(payload), binary) + payload)

    def backlog_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def end(self) -> None:
        if self._transport is None or self._ended.is_set():
            return
        self._ours = True
        self._transport.close()
        try:
            async with asyncio.timeout(_CLOSE_LIMIT_S):
                await self._ended.wait()
        except TimeoutError:
            self._transport.abort()
