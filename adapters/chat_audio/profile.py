"""What a member of the chat-completions family changes, declared once; the core reads it and tests no vendor's name.

Two halves: `ClientProfile` for what we send and read, `ServerProfile` for how the vendor's server behaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from adapters.chat_audio import wire
from adapters.chat_audio.settings import ChatSettings
from adapters.dialect import TargetSettings, ToolSpec
from adapters.foreign_json import JsonObject
from adapters.target_settings import bearer_headers

S = TypeVar("S", bound=ChatSettings)


@dataclass(frozen=True, slots=True)
class ClientProfile(Generic[S]):
    """The client half of a member."""

    settings: type[S]
    """What a target's `settings:` may hold."""
    base_url: str | Callable[[S], str] = wire.BASE_URL
    """The vendor's own address, or how settings choose it."""
    vendor: str = "the vendor"
    """As it is named to users."""
    text_twin: Callable[[S, str], bool] = lambda settings, host: True
    """Whether a caller turn may be text alone, by settings and host."""
    rate_hz: int = wire.RATE_HZ
    """Of the caller's audio."""
    audio_part: Callable[[str], JsonObject] = wire.openai_audio
    """A part of the caller's turn, from base64 of a WAV file."""
    tool: Callable[[ToolSpec], JsonObject] = wire.nested_tool
    tool_message: Callable[[str, str, str], JsonObject] = wire.tool_message
    """The result of a call, from its id, its tool's name and the result."""
    fields: Callable[[S, bool], JsonObject] = lambda settings, with_tools: settings.request_fields(with_tools)
    """Fields of a request beside model, messages and tools, by whether it has tools. May raise `SettingsError`."""
    headers: Callable[[TargetSettings, S], dict[str, str]] = lambda target, settings: bearer_headers(
        settings.headers, target.api_key
    )
    max_request_bytes: int | None = None
    """Largest request body; None for `wire.MAX_REQUEST_BYTES`."""
    max_audio_s: float | None = None
    """Longest clip, where the vendor states one."""
    pinned_upstream: Callable[[S], str | None] = lambda settings: None
    """The one upstream that may answer, for a router."""


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """The server half of a member."""

    audio_of_part: Callable[[JsonObject], tuple[str, str]] = wire.openai_audio_data
    """Format and base64 text of an `input_audio` part. Raises `wire.BadPartError`."""
    complaint: Callable[[JsonObject], tuple[str, str] | None] = lambda body: None
    """What the vendor refuses in a request body that other members take: explanation and parameter."""
    must_stream: bool = False
    """Only streamed answers are served."""
    may_stream: bool = False
    arguments_as_object: bool = False
    """Calls carry their arguments as an object instead of JSON text."""
    text_only: bool = False
    """False where replies may be speech."""
    raw_speech: bool = False
    """Speech is bare PCM16, whatever format was asked for."""
    usage: Callable[[float], JsonObject] | None = None
    """Usage for so many seconds of caller audio; None: only what the agent reports."""
    answer_fields: Mapping[str, Any] = field(default_factory=dict)
    """More fields of every answer, e.g. the upstream."""
    error_in_body: bool = False
    """A failed upstream comes with status 200."""
