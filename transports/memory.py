"""A transport without a network: both ends in one event loop. For tests, and exact on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from captures.clock import Clock
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint


class Peer(Protocol):
    """The other end. All methods run on the event loop and must not block."""

    def connected(self, wire: MemoryWire, endpoint: Endpoint) -> None:
        """The connection is up; may raise `TransportError` to refuse it."""
        ...

    def received(self, frame: InFrame) -> None:
        """A frame of the client."""
        ...

    def disconnected(self, code: int, reason: str) -> None:
        """The client closed."""
        ...


class MemoryWire:
    """What a `Peer` holds to talk to the client. Frames arrive in order, one loop iteration later."""

    def __init__(
        self, clock: Clock, on_frame: Callable[[InFrame], None], on_closed: Callable[[ClosedBy], None]
    ) -> None:
        self._clock = clock
        self._on_frame = on_frame
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self.open = True

    def send(self, payload: bytes, *, binary: bool = False) -> None:
        """Send one frame to the client; dropped once closed."""
        if self.open:
            self._loop.call_soon(self._deliver, payload, binary)

    def close(self, code: int | None, reason: str = "") -> None:
        """Close as the peer; `code` None drops the connection without a close frame."""
        if self.open:
            self._loop.call_soon(self._end, code, reason, True)

    def end_by_client(self) -> None:
        """The client closed: nothing is delivered any more."""
        self._end(None, "closed by us", False)

    def _deliver(self, payload: bytes, binary: bool) -> None:
        if self.open:
            self._on_frame(InFrame(payload, binary, self._clock.now_ns()))

    def _end(self, code: int | None, reason: str, by_peer: bool) -> None:
        if self.open:
            self.open = False
            self._on_closed(ClosedBy(self._clock.now_ns(), code, reason, by_peer))


class MemoryTransport:
    """Meets `transports.transport.Transport`."""

    def __init__(self, clock: Clock, peer: Peer) -> None:
        self._clock = clock
        self._peer = peer
        self._wire: MemoryWire | None = None

    async def connect(
        self,
        endpoint: Endpoint,
        on_frame: Callable[[InFrame], None],
        on_closed: Callable[[ClosedBy], None],
    ) -> None:
        """See `Transport.connect`."""
        wire = MemoryWire(self._clock, on_frame, on_closed)
        self._peer.connected(wire, endpoint)
        self._wire = wire

    def write(self, frame: OutFrame) -> None:
        """See `Transport.write`."""
        if self._wire is not None and self._wire.open:
            self._peer.received(InFrame(frame.payload, frame.binary, self._clock.now_ns()))

    def backlog_bytes(self) -> int:
        """Always 0."""
        return 0

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `Transport.close`."""
        if self._wire is not None and self._wire.open:
            self._wire.end_by_client()
            self._peer.disconnected(code, reason)
