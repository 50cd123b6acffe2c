"""What a check says: passed, failed with what to mend and the message that broke it, or not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from adapters.foreign_json import brief
from rig.conformance.caller import Limits, Scene, SceneName
from rig.conformance.talk import Heard

_SHOWN_CHARS = 240
_SHOWN_BYTES = 12


class Verdict(StrEnum):
    """Of one check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_SEEN = "not seen"
    """Nothing came that could be judged; no proof that the agent is right."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to mend."""

    mend: str
    scene: str
    message: str | None = None
    """The message that broke the check, shortened; None where something was missing."""
    at_s: float | None = None
    """When it came, seconds since the connection was asked for."""


@dataclass(frozen=True, slots=True)
class NotSeen:
    """Why a check could not judge."""

    reason: str


Evidence = Mapping[SceneName, Sequence[Scene]]
Judgement = list[Finding] | NotSeen


@dataclass(frozen=True, slots=True)
class Check:
    """One rule of the contract."""

    name: str
    rule: str
    scenes: tuple[SceneName, ...]
    """The conversations that it needs."""
    judge: Callable[[list[Scene], Limits], Judgement]
    """Given those of `scenes` that were held, in order."""


def broken(mend: str, scene: Scene, message: Heard | None = None) -> Finding:
    """A finding about a message, or about its absence."""
    if message is None:
        return Finding(mend, scene.name)
    return Finding(mend, scene.name, shown(message), (message.t_ns - scene.talk.opened_ns) / 1e9)


def shown(message: Heard) -> str:
    """A message for a person: its text on one line, or the length and first bytes of a binary one."""
    if message.binary:
        return f"binary, {len(message.payload)} bytes: {message.payload[:_SHOWN_BYTES].hex(' ')}"
    return brief(message.payload[: 4 * _SHOWN_CHARS].decode("utf-8", "backslashreplace"), _SHOWN_CHARS)


def in_session(scenes: Sequence[Scene]) -> list[Scene]:
    """Those whose session was confirmed."""
    return [scene for scene in scenes if scene.ready is not None]


NO_SESSION = NotSeen("no session was confirmed: mend that first")
