"""Events: what an agent did, with one meaning on every vendor.

A dialect's client half turns received frames into these; nothing above the adapters sees a vendor's own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class AnswerEnd(StrEnum):
    """Why the agent's turn ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    INCOMPLETE = "incomplete"
    """Cut short for another reason; the reason is in `AnswerEnded.detail`."""


class FailureKind(StrEnum):
    """What to do about a failure: transient and rate-limited ones are retried, the others are not."""

    TRANSIENT = "transient"
    RATE_LIMIT = "rate_limit"
    QUOTA = "quota"
    """Used up: waiting a moment does not help."""
    PROTOCOL = "protocol"
    """The peer broke its own protocol or was closed for ours."""
    AUDIO_NOT_HEARD = "audio_not_heard"
    """The provider answered without the caller's audio: the row is void, and another try would be as well."""


@dataclass(frozen=True, slots=True)
class SessionReady:
    """The session's settings are confirmed; caller audio may be sent."""

    session_id: str | None = None
    echoed: Mapping[str, Any] = field(default_factory=dict)
    """The effective settings as the peer states them (model, voice, …); recorded, never trusted."""


@dataclass(frozen=True, slots=True)
class TurnCommitted:
    """The peer confirms the end of the caller's turn."""

    item_id: str | None = None


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The peer's own voice activity detection heard speech begin."""

    audio_ms: int | None = None
    """Position in the audio sent, as the peer counts it."""


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The peer's own voice activity detection ended the caller's speech."""

    audio_ms: int | None = None


@dataclass(frozen=True, slots=True)
class InputTranscript:
    """The peer's transcript of the caller; may arrive after the answer."""

    text: str
    final: bool = True
    tags: tuple[str, ...] | None = None
    """What was measured in the audio beside the words, where the agent is told of it; None where nothing measures."""


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """A tool call was announced; its name may still be unknown."""

    call_id: str
    name: str | None
    output_index: int


@dataclass(frozen=True, slots=True)
class ToolCallArguments:
    """A fragment of a call's arguments (JSON text)."""

    call_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete tool call; given once per call id, at the first event that completed its arguments."""

    call_id: str
    name: str | None
    """None when no event ever named the call: a wrong call, never "no call"."""
    arguments_json: str
    """The arguments exactly as received."""
    arguments: Mapping[str, Any] | None
    """Parsed arguments; None when unreadable (not a JSON object)."""
    output_index: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the agent's answer as text."""

    text: str


@dataclass(frozen=True, slots=True)
class TranscriptDelta:
    """A piece of the vendor's transcript of the agent's own speech."""

    text: str


@dataclass(frozen=True, slots=True)
class AudioDelta:
    """A piece of the agent's speech."""

    pcm: bytes
    """PCM16 little-endian mono; may end in the middle of a sample (the next piece goes on)."""
    rate_hz: int
    item_id: str | None = None


@dataclass(frozen=True, slots=True)
class Delegated:
    """The agent handed work on, or had it back: its turn is not over while any is open."""

    work_id: str
    open: bool


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The agent's speech was cut off by the caller."""


@dataclass(frozen=True, slots=True)
class AudioCleared:
    """The agent took back what had arrived and not been heard yet: it never will be."""


@dataclass(frozen=True, slots=True)
class AnswerEnded:
    """The agent's turn is over, by the dialect's own sign."""

    reason: AnswerEnd
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and seconds as the vendor counts them, under the vendor's own keys."""

    counts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Served:
    """How an answer was served, as far as the peer tells: model, upstream, finish reason; recorded, never trusted."""

    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Warned:
    """A complaint of the peer that ends nothing (a benign race, a deprecated key)."""

    code: str
    message: str
    spoils_turn: bool = False
    """True for a complaint about this turn: no answer after it is the peer's failure, not the agent's silence."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The peer refuses the configuration (key, schema, settings): would hit every cell."""

    code: str
    message: str
    where: str = ""
    """The part refused, as the peer names it, e.g. `tools[3].description`."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Infrastructure failed: nothing was measured."""

    kind: FailureKind
    code: str
    message: str
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Unrecognised:
    """A frame that the dialect does not know; kept, never raised."""

    summary: str
    unreadable: bool = field(default=False, compare=False)
    """True when the frame could not be read at all: it may have held a call, so the turn may not pass for declined."""


Event = (
    SessionReady
    | TurnCommitted
    | SpeechStarted
    | SpeechStopped
    | InputTranscript
    | ToolCallStarted
    | ToolCallArguments
    | ToolCall
    | TextDelta
    | TranscriptDelta
    | AudioDelta
    | Delegated
    | Interrupted
    | AudioCleared
    | AnswerEnded
    | Usage
    | Served
    | Warned
    | Refused
    | Failed
    | Unrecognised
)


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """An event with the arrival stamp of the frame that held it."""

    t_ns: int
    event: Event
