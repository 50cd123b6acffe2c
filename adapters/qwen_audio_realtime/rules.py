"""What the server half of Qwen-Audio accepts; unlike Qwen-Omni some settings hold for the whole connection."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from adapters.foreign_json import JsonObject
from adapters.openai_family.rules import (
    Complaint,
    Lenient,
    SessionView,
    checked,
    detection_of,
    merged,
    setup_of,
)
from adapters.qwen_omni_realtime.rules import (
    Modalities,
    Pcm,
    ResponseChange,
    modalities_complaint,
    nested_alone,
    without_nulls,
)
from adapters.qwen_omni_realtime.session import INPUT_RATE_HZ, OUTPUT_RATE_HZ


class _Detection(Lenient):
    type: Literal["server_vad", "smart_turn"]
    threshold: Annotated[float, Field(ge=-1, le=1, strict=False)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=200, le=6000)] | None = None


class _Session(Lenient):
    modalities: Modalities | None = None
    instructions: str | None = None
    voice: str | None = None
    enable_speech_emotion: bool | None = None
    input_audio_format: Pcm | None = None
    output_audio_format: Pcm | None = None
    turn_detection: _Detection | None = None
    max_history_turns: Annotated[int, Field(ge=1, le=50)] | None = None
    tools: list[dict[str, Any]] | None = None


_VAD_DEFAULTS: Final[JsonObject] = {"threshold": 0.5, "silence_duration_ms": 800}
_FIXED_BY_AUDIO: Final = ("input_audio_format", "turn_detection")
"""Not changeable once the caller was heard."""


class AudioRules:
    """`ServerRules` of Qwen-Audio."""

    def default(self, session_id: str, model: str) -> JsonObject:
        """The vendor's own turn detection is on. `tools` is absent until the first `session.update`."""
        return {
            "object": "realtime.session",
            "id": session_id,
            "model": model,
            "modalities": ["audio", "text"],
            "voice": "longanqian",
            "enable_speech_emotion": True,
            "input_audio_format": "pcm",
            "output_audio_format": "pcm",
            "turn_detection": {"type": "server_vad", **_VAD_DEFAULTS},
            "instructions": "",
            "max_history_turns": 20,
        }

    def updated(self, session: JsonObject, change: object, audio_heard: bool) -> JsonObject | Complaint:
        """Only fields that are present change; `voice` only in the first update, later ones are passed over."""
        complaint = checked(_Session, change, "session") or modalities_complaint(change, "session")
        if complaint is not None or not isinstance(change, dict):
            return complaint or Complaint("invalid_value", "Invalid type for 'session'.", "session")
        known = {name: value for name, value in change.items() if name in _Session.model_fields}
        known |= nested_alone(known)
        if isinstance(given := known.get("turn_detection"), dict):
            defaults = _VAD_DEFAULTS if given["type"] == "server_vad" else {}
            known["turn_detection"] = {"type": given["type"], **defaults, **without_nulls(given)}
        if "tools" in session:
            known.pop("voice", None)
        after = {"tools": [], **merged(session, known, cleared_by_null=("turn_detection",))}
        fixed = next((name for name in _FIXED_BY_AUDIO if audio_heard and after[name] != session[name]), None)
        if fixed is not None:
            message = f"'{fixed}' can only be changed before the first audio."
            return Complaint("invalid_value", message, f"session.{fixed}")
        return after

    def for_answer(self, session: JsonObject, change: object) -> JsonObject | Complaint:
        """The settings that one answer may change; `tool_choice` "none" leaves the tools out."""
        if change is None:
            return session
        complaint = checked(ResponseChange, change, "response") or modalities_complaint(change, "response")
        if complaint is not None or not isinstance(change, dict):
            return complaint or Complaint("invalid_value", "Invalid type for 'response'.", "response")
        after = merged(session, {name: change[name] for name in ResponseChange.model_fields if name in change})
        return after | {"tools": []} if change.get("tool_choice") == "none" else after

    def view(self, session: JsonObject) -> SessionView:
        """See `ServerRules`. The caller is always transcribed."""
        return SessionView(
            setup=setup_of(session, session["turn_detection"], INPUT_RATE_HZ),
            speaks="audio" in session["modalities"],
            output_rate_hz=OUTPUT_RATE_HZ,
            transcribes=True,
            detection=detection_of(session["turn_detection"]),
        )

    def answer_fields(self, session: JsonObject) -> JsonObject:
        """See `ServerRules`."""
        return {name: session[name] for name in ("modalities", "voice", "output_audio_format")}
