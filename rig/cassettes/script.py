"""A cassette as a script for the vendor's part: what is sent how long after which step of the client. Pure.

A step is a control message of the client, or the first piece of a run of its audio. So a client that cuts its audio
otherwise, or trails silence for longer, takes the same steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from adapters.foreign_json import brief, decode
from adapters.tool_requests import EVENT as TOOL_REQUEST
from captures.frames import Direction, LoggedFrame

_AUDIO: Final = re.compile(rb"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{200,}")
"""Base64 of 150 bytes or more; 20 ms of µ-law are 160."""
_KIND_KEYS: Final = ("type", "event", "kind")
_UNSERVED: Final = {
    "twilio_media": "its agent is named by the stream that we opened: run the agent itself",
    "device": "sound devices have no client that could be answered",
    "python_agent": "a Python class is called by us: run the class itself",
    "nova_sonic": "its SDK signs every event: nothing of ours can answer it",
}


class UnservedError(ValueError):
    """A cassette that cannot be played to a client; one line that says why."""


@dataclass(frozen=True, slots=True)
class Line:
    """One frame of the vendor."""

    step: int
    """Taken by the client before it: how many steps. 0: the connection itself."""
    after_ns: int
    """From that step."""
    payload: bytes
    binary: bool


@dataclass(frozen=True, slots=True)
class Script:
    """What a client was answered."""

    lines: tuple[Line, ...]
    steps: tuple[str, ...]
    """What each step of the client was, for people."""
    one_request: bool
    """File mode: one request, one answer."""


def is_audio(payload: bytes, binary: bool) -> bool:
    """True for a message that carries audio: binary and no JSON, or JSON with a long base64 string and little else."""
    if binary and not payload.startswith((b"{", b"[")):
        return True
    runs = sum(len(match[0]) for match in _AUDIO.finditer(payload))
    return runs > len(payload) // 2


def kind_of(payload: bytes, binary: bool) -> str:
    """A message's kind in a word, by its JSON's `type`, `event` or first key."""
    if is_audio(payload, binary):
        return "audio"
    fields = decode(payload)
    if not fields:
        return "text"
    for key in _KIND_KEYS:
        if isinstance(fields.get(key), str):
            return brief(str(fields[key]), 60)
    return brief(next(iter(fields)), 60)


class Steps:
    """Tells which messages of a client are steps."""

    def __init__(self) -> None:
        self._in_audio = False

    def is_step(self, payload: bytes, binary: bool) -> bool:
        """Take the next message."""
        audio = is_audio(payload, binary)
        first = not (audio and self._in_audio)
        self._in_audio = audio
        return first


def script_of(meta: dict[str, object], frames: Sequence[LoggedFrame]) -> Script:
    """The script in a cassette's frames.

    Raises:
        UnservedError: its dialect cannot be played, or the vendor said nothing.
    """
    dialect = str(meta.get("dialect"))
    if dialect in _UNSERVED:
        raise UnservedError(f"a cassette of {dialect} cannot be served: {_UNSERVED[dialect]}")
    lines: list[Line] = []
    kinds: list[str] = []
    steps = Steps()
    since_ns = frames[0].t_ns if frames else 0
    for frame in frames:
        if frame.direction is Direction.SENT:
            if steps.is_step(frame.payload, frame.binary):
                kinds.append(kind_of(frame.payload, frame.binary))
                since_ns = frame.t_ns
        elif TOOL_REQUEST.encode() not in frame.payload:
            lines.append(Line(len(kinds), frame.t_ns - since_ns, frame.payload, frame.binary))
    if not lines:
        raise UnservedError("the cassette holds no message of the vendor")
    from adapters import registry

    websocket = dialect not in registry.names() or _speaks_websocket(dialect)
    if not websocket and (len(kinds) != 1 or len(lines) != 1):
        raise UnservedError(
            f"a cassette of {dialect} with {len(kinds)} requests and {len(lines)} answers is not served"
        )
    return Script(tuple(lines), tuple(kinds), not websocket)


def _speaks_websocket(dialect: str) -> bool:
    from rig.agents.emulator import ROUTES

    return dialect not in ROUTES or ROUTES[dialect].websocket
