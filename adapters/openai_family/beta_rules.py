"""The server half of the older shape: what it accepts as a session, and its events made from those of today.

Shapes: `openai.types.beta.realtime` (SDK 3.57). Only what the emulators can serve is accepted: 24 kHz and functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from adapters.foreign_json import JsonObject, list_of, text_of
from adapters.openai_family.ga import RATE_HZ
from adapters.openai_family.ga_rules import SERVER_VAD_DEFAULTS, with_defaults
from adapters.openai_family.profile import BETA_EVENT_NAMES
from adapters.openai_family.rules import (
    Complaint,
    FlatTool,
    SemanticVad,
    ServerVad,
    SessionView,
    Wire,
    checked,
    detection_of,
    merged,
    setup_of,
)


class _Transcription(Wire):
    model: str | None = None
    language: str | None = None
    prompt: str | None = None


class _NoiseReduction(Wire):
    type: Literal["near_field", "far_field"]


class _Shared(Wire):
    modalities: list[Literal["text", "audio"]] | None = None
    instructions: str | None = None
    voice: str | None = None
    output_audio_format: Literal["pcm16"] | None = None
    tools: list[FlatTool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    temperature: Annotated[float, Field(ge=0.6, le=1.2, strict=False)] | None = None


class _Session(_Shared):
    model: str | None = None
    input_audio_format: Literal["pcm16"] | None = None
    input_audio_transcription: _Transcription | None = None
    input_audio_noise_reduction: _NoiseReduction | None = None
    turn_detection: Annotated[ServerVad | SemanticVad, Field(discriminator="type")] | None = None
    max_response_output_tokens: Annotated[int, Field(ge=1, le=4096)] | Literal["inf"] | None = None
    speed: Annotated[float, Field(ge=0.25, le=1.5, strict=False)] | None = None
    tracing: str | dict[str, Any] | None = None


class _Response(_Shared):
    """What one `response.create` may change."""

    max_response_output_tokens: Annotated[int, Field(ge=1, le=4096)] | Literal["inf"] | None = None
    conversation: str | None = None
    input: list[dict[str, Any]] | None = None
    metadata: dict[str, str] | None = None


_CLEARED_BY_NULL: Final = ("turn_detection", "input_audio_transcription", "input_audio_noise_reduction", "tracing")
_MODALITIES: Final = (["text"], ["audio", "text"])


class BetaRules:
    """`ServerRules` of the beta shape."""

    def default(self, session_id: str, model: str) -> JsonObject:
        """The vendor's own turn detection is on."""
        return {
            "object": "realtime.session",
            "id": session_id,
            "model": model,
            "modalities": ["text", "audio"],
            "instructions": "",
            "voice": "alloy",
            "input_audio_format": "pcm16",
            "output_audio_format": "pcm16",
            "input_audio_transcription": None,
            "input_audio_noise_reduction": None,
            "turn_detection": SERVER_VAD_DEFAULTS | {"type": "server_vad"},
            "tools": [],
            "tool_choice": "auto",
            "temperature": 0.8,
            "speed": 1.0,
            "max_response_output_tokens": "inf",
        }

    def updated(self, session: JsonObject, change: object, audio_heard: bool) -> JsonObject | Complaint:
        """Only fields that are present change."""
        complaint = checked(_Session, change, "session") or _modalities_complaint(change, "session")
        if complaint is not None or not isinstance(change, dict):
            return complaint or Complaint("invalid_type", "Invalid type for 'session'.", "session")
        if change.get("model") not in (None, session["model"]):
            return Complaint("invalid_value", "A session's model cannot be changed.", "session.model")
        after = merged(session, change, cleared_by_null=_CLEARED_BY_NULL)
        if isinstance(change.get("turn_detection"), dict):
            after["turn_detection"] = with_defaults(change["turn_detection"])
        return after

    def for_answer(self, session: JsonObject, change: object) -> JsonObject | Complaint:
        """The settings that one answer may change."""
        if change is None:
            return session
        complaint = checked(_Response, change, "response") or _modalities_complaint(change, "response")
        if complaint is not None or not isinstance(change, dict):
            return complaint or Complaint("invalid_type", "Invalid type for 'response'.", "response")
        return merged(session, {key: value for key, value in change.items() if key in session})

    def view(self, session: JsonObject) -> SessionView:
        """See `ServerRules`."""
        return SessionView(
            setup=setup_of(session, session["turn_detection"], RATE_HZ),
            speaks="audio" in session["modalities"],
            output_rate_hz=RATE_HZ,
            transcribes=session["input_audio_transcription"] is not None,
            detection=detection_of(session["turn_detection"]),
        )

    def answer_fields(self, session: JsonObject) -> JsonObject:
        """See `ServerRules`."""
        same = ("modalities", "voice", "output_audio_format", "temperature")
        return {**{key: session[key] for key in same}, "max_output_tokens": session["max_response_output_tokens"]}


def _modalities_complaint(change: object, root: str) -> Complaint | None:
    given = change.get("modalities") if isinstance(change, dict) else None
    if given is None or sorted(given) in _MODALITIES:
        return None
    message = f"Invalid modalities: {given}. Supported combinations are: ['text'] and ['audio', 'text']."
    return Complaint("invalid_value", message, f"{root}.modalities")


_OLD_NAMES: Final[Mapping[str, str]] = {new: old for old, new in BETA_EVENT_NAMES.items()} | {
    "conversation.item.added": "conversation.item.created"
}
_OLD_CONTENT: Final[Mapping[str, str]] = {"output_audio": "audio", "output_text": "text"}


def beta_events(event: JsonObject) -> Iterable[JsonObject]:
    """An event of the GA shape as the older servers send it; `conversation.item.done` is none of theirs."""
    kind = event["type"]
    if kind == "conversation.item.done":
        return
    changed = event | {"type": _OLD_NAMES.get(kind, kind)}
    if kind == "response.function_call_arguments.done":
        del changed["name"]
    if isinstance(item := changed.get("item"), dict):
        changed["item"] = _old_item(item)
    if isinstance(response := changed.get("response"), dict):
        changed["response"] = response | {"output": [_old_item(item) for item in list_of(response, "output")]}
    yield changed


def _old_item(item: JsonObject) -> JsonObject:
    if "content" not in item:
        return item
    content = [
        part | {"type": _OLD_CONTENT.get(text_of(part, "type") or "", part.get("type"))} for part in item["content"]
    ]
    return item | {"content": content}


OLD_TEXT_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "user": ("input_text",),
    "system": ("input_text",),
    "assistant": ("text",),
}
"""`ServerProfile.text_types` of the older shape."""
