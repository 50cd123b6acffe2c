"""Frames: what crosses a transport, with the instant it did.

A frame is one WebSocket message, or one JSON body of a request or response in file mode. Payloads are bytes in
both directions; text frames hold UTF-8.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Direction(StrEnum):
    """Seen from the rig."""

    SENT = "sent"
    RECEIVED = "received"


@dataclass(frozen=True, slots=True)
class OutFrame:
    """A frame to send."""

    payload: bytes
    """Exact bytes of the message (UTF-8 when not `binary`)."""
    binary: bool = False
    """True for a binary message, False for text."""
    held: bool = False
    """True when the frame is kept by the dialect until commit and never written by itself (file mode)."""


@dataclass(frozen=True, slots=True)
class InFrame:
    """A received frame."""

    payload: bytes
    binary: bool
    t_ns: int
    """Stamp taken as the bytes arrived, before any parsing."""


@dataclass(frozen=True, slots=True)
class LoggedFrame:
    """A frame as the session saw it, in order; what a cassette is written from."""

    t_ns: int
    """When it was handed to the transport, or arrived."""
    direction: Direction
    payload: bytes
    binary: bool


@dataclass(frozen=True, slots=True)
class ClosedBy:
    """How a connection ended."""

    t_ns: int
    code: int | None
    """WebSocket close code; None when the connection was lost without a close frame."""
    reason: str
    by_peer: bool
