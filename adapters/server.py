"""The server half of a dialect: the mirror image of the client half, from which loopback emulators are made.

Client frames become intents; an agent's reply becomes frames. Sans-I/O, like the client half.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from adapters.dialect import Setup
from captures.frames import InFrame, OutFrame


@dataclass(frozen=True, slots=True)
class SetupGiven:
    """The client's settings, complete; they may be given again and replace the earlier ones."""

    setup: Setup


@dataclass(frozen=True, slots=True)
class AudioGiven:
    """Caller audio: PCM16 mono."""

    pcm: bytes
    rate_hz: int


@dataclass(frozen=True, slots=True)
class AnswerWanted:
    """The caller's turn is over and an answer is asked for."""

    text: str | None = None
    """The caller's words when the turn was text; None when it was audio."""


@dataclass(frozen=True, slots=True)
class ToolResultGiven:
    """The result of a call."""

    call_id: str
    output: str


@dataclass(frozen=True, slots=True)
class AnswerCancelled:
    """The client stops the running answer."""


Intent = SetupGiven | AudioGiven | AnswerWanted | ToolResultGiven | AnswerCancelled


@dataclass(frozen=True, slots=True)
class ServerStep:
    """What one client frame led to: frames to send at once (acknowledgements, errors), and intents, in order."""

    frames: Sequence[OutFrame] = ()
    intents: Sequence[Intent] = ()
    close: tuple[int, str] | None = None
    """Close code and reason, after the frames."""


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """A tool call of an agent."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """An agent's answer to one turn."""

    calls: tuple[ReplyCall, ...] = ()
    text: str = ""
    """What the agent says (the transcript of `pcm`, or the text of a text answer)."""
    pcm: bytes = b""
    """Speech, PCM16 mono at `rate_hz`; empty for none."""
    rate_hz: int = 24000
    input_transcript: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    input_tags: tuple[str, ...] = ()
    """What the agent's own ears measured in the caller's audio, for a dialect that asks for it."""


class ServerDialect(Protocol):
    """The server half of a dialect, for one connection (or one request in file mode)."""

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """Frames sent as the connection opens."""
        ...

    def receive(self, frame: InFrame) -> ServerStep:
        """Read one client frame. Never raises: what is wrong becomes the vendor's own error frame."""
        ...

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """The frames of a reply, in the vendor's order, up to the end of the turn."""
        ...

    def failure(self, code: str, message: str) -> Sequence[OutFrame]:
        """The frames of an answer that failed on the vendor's side."""
        ...


@dataclass(frozen=True, slots=True)
class Handshake:
    """A client's request to connect, before the upgrade."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""


@dataclass(frozen=True, slots=True)
class Denied:
    """A handshake refused, as the vendor does it."""

    status: int
    body: bytes
    """The vendor's explanation, JSON."""


@runtime_checkable
class ChecksHandshake(Protocol):
    """A server half that looks at the handshake before it opens; called before `greeting`."""

    def denied(self, handshake: Handshake) -> Denied | None:
        """The refusal, or None."""
        ...
