"""The interface that every transport meets, and its failures."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from captures.capture import NetworkTimes
from captures.frames import ClosedBy, InFrame, OutFrame

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""Largest message accepted; a larger one is a typed failure, never a truncated frame."""


def is_loopback(host: str) -> bool:
    """True for this machine itself: `localhost`, or a loopback address; never for a mere name that begins like one."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """A request over HTTP whose answer holds the address to connect to. Never print one."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)
    read: Callable[[bytes], str | None] = field(repr=False)
    """The address in the answer's body; None when it holds none. Never raises."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to connect. Headers and query may hold secrets: never print one, use `label`."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    label: str = ""
    """`scheme://host:port/path` without query and credentials: the only form that is shown or stored."""


@dataclass(frozen=True, slots=True)
class RequestedEndpoint(Endpoint):
    """An endpoint where every session has an address of its own; `url` and `label` are those of the request for it."""

    first: SessionRequest | None = None


class TransportError(Exception):
    """The connection could not be made or was lost. The text is one line, without secrets."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        body: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        """`refused`, `dns`, `tls`, `timeout`, `http_<status>`, `message_too_big`, `closed`, …"""
        self.status = status
        """HTTP status of a refused handshake or request, if there was one."""
        self.body = body
        """First part of the peer's own explanation, bounded."""
        self.retry_after_s = retry_after_s


class Transport(Protocol):
    """One connection, used for one attempt."""

    async def connect(
        self,
        endpoint: Endpoint,
        on_frame: Callable[[InFrame], None],
        on_closed: Callable[[ClosedBy], None],
    ) -> None:
        """Connect. Callbacks run on the event loop and must not block; `on_closed` comes once, last.

        The caller bounds the wait with a cancel scope.

        Raises:
            TransportError: refused, unreachable, or not speaking the protocol.
        """
        ...

    def write(self, frame: OutFrame) -> None:
        """Hand one frame to the connection at once, without waiting; after the close it is dropped."""
        ...

    def backlog_bytes(self) -> int:
        """Bytes written but not yet taken by the operating system."""
        ...

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close and release everything; bounded, and safe to call twice."""
        ...


@runtime_checkable
class ReportsFailures(Protocol):
    """A transport whose single writes can fail while it stays up: one that posts requests."""

    on_failed: Callable[[TransportError], None]
    """Called with the failure of a write; set before the first one."""


@runtime_checkable
class MeasuresNetwork(Protocol):
    """A transport that knows the way to its peer apart from what the peer does."""

    def ping(self) -> None:
        """Send a ping, if the last one was answered; its round trip joins `network_times`."""
        ...

    def network_times(self) -> NetworkTimes:
        """What was measured so far."""
        ...
