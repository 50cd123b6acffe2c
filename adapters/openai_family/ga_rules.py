"""What the server half accepts as a session of OpenAI's GA shape, and the error it answers with otherwise.

Shapes: `openai.types.realtime` (3.57). Only what the emulators can serve is accepted: PCM at 24 kHz and functions.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from adapters.foreign_json import JsonObject, object_of
from adapters.openai_family.ga import PCM_FORMAT, RATE_HZ
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


class _Pcm(Wire):
    type: Literal["audio/pcm"]
    rate: Literal[24000] = 24000


class _Transcription(Wire):
    model: str | None = None
    language: str | None = None
    prompt: str | None = None
    delay: Any = None


class _NoiseReduction(Wire):
    type: Literal["near_field", "far_field"]


class _Input(Wire):
    format: _Pcm | None = None
    transcription: _Transcription | None = None
    noise_reduction: _NoiseReduction | None = None
    turn_detection: Annotated[ServerVad | SemanticVad, Field(discriminator="type")] | None = None


class Voice(Wire):
    """A voice of one's own."""

    id: str


class _Output(Wire):
    format: _Pcm | None = None
    voice: str | Voice | None = None
    speed: Annotated[float, Field(ge=0.25, le=1.5, strict=False)] | None = None


class _Audio(Wire):
    input: _Input | None = None
    output: _Output | None = None


class _Reasoning(Wire):
    effort: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None


class _Shared(Wire):
    instructions: str | None = None
    output_modalities: Annotated[list[Literal["audio", "text"]], Field(min_length=1, max_length=1)] | None = None
    tools: list[FlatTool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=4096)] | Literal["inf"] | None = None
    parallel_tool_calls: bool | None = None
    reasoning: _Reasoning | None = None
    prompt: dict[str, Any] | None = None


class _Session(_Shared):
    type: Literal["realtime"]
    model: str | None = None
    audio: _Audio | None = None
    truncation: str | dict[str, Any] | None = None
    include: list[str] | None = None
    tracing: str | dict[str, Any] | None = None


class _ResponseAudio(Wire):
    output: _Output | None = None


class _Response(_Shared):
    """What one `response.create` may change."""

    audio: _ResponseAudio | None = None
    conversation: str | None = None
    input: list[dict[str, Any]] | None = None
    metadata: dict[str, str] | None = None


SERVER_VAD_DEFAULTS: Final[JsonObject] = {
    "threshold": 0.5,
    "prefix_padding_ms": 300,
    "silence_duration_ms": 500,
    "idle_timeout_ms": None,
    "create_response": True,
    "interrupt_response": True,
}
SEMANTIC_VAD_DEFAULTS: Final[JsonObject] = {"eagerness": "auto", "create_response": True, "interrupt_response": True}
_ENTERED: Final = ("audio", "audio.input", "audio.output")
_CLEARED_BY_NULL: Final = (
    "audio.input.turn_detection",
    "audio.input.transcription",
    "audio.input.noise_reduction",
    "tracing",
    "prompt",
)


def with_defaults(detection: JsonObject) -> JsonObject:
    """`turn_detection` as the vendor echoes it: its own defaults where the client gave nothing."""
    defaults = SERVER_VAD_DEFAULTS if detection["type"] == "server_vad" else SEMANTIC_VAD_DEFAULTS
    return {"type": detection["type"]} | defaults | detection


class GaRules:
    """`ServerRules` of the GA shape."""

    def default(self, session_id: str, model: str) -> JsonObject:
        """The vendor's own turn detection is on."""
        return {
            "type": "realtime",
            "object": "realtime.session",
            "id": session_id,
            "model": model,
            "output_modalities": ["audio"],
            "instructions": "",
            "tools": [],
            "tool_choice": "auto",
            "max_output_tokens": "inf",
            "tracing": None,
            "prompt": None,
            "truncation": "auto",
            "audio": {
                "input": {
                    "format": dict(PCM_FORMAT),
                    "transcription": None,
                    "noise_reduction": None,
                    "turn_detection": SERVER_VAD_DEFAULTS | {"type": "server_vad"},
                },
                "output": {"format": dict(PCM_FORMAT), "voice": "marin", "speed": 1.0},
            },
        }

    def updated(self, session: JsonObject, change: object, audio_heard: bool) -> JsonObject | Complaint:
        """Only fields that are present change."""
        complaint = checked(_Session, change, "session")
        if complaint is not None or not isinstance(change, dict):
            return complaint or Complaint("invalid_type", "Invalid type for 'session'.", "session")
        if change.get("model") not in (None, session["model"]):
            return Complaint("invalid_value", "A session's model cannot be changed.", "session.model")
        after = merged(session, change, _ENTERED, _CLEARED_BY_NULL)
        given = object_of(object_of(change, "audio"), "input").get("turn_detection")
        if isinstance(given, dict):
            after["audio"]["input"]["turn_detection"] = with_defaults(given)
        return after

    def for_answer(self, session: JsonObject, change: object) -> JsonObject | Complaint:
        """The settings that one answer may change."""
        if change is None:
            return session
        complaint = checked(_Response, change, "response")
        if complaint is not None or not isinstance(change, dict):
            return complaint or Complaint("invalid_type", "Invalid type for 'response'.", "response")
        known = {key: value for key, value in change.items() if key in session}
        return merged(session, known, _ENTERED, _CLEARED_BY_NULL)

    def view(self, session: JsonObject) -> SessionView:
        """See `ServerRules`."""
        caller = session["audio"]["input"]
        return SessionView(
            setup=setup_of(session, caller["turn_detection"], RATE_HZ),
            speaks=session["output_modalities"] == ["audio"],
            output_rate_hz=RATE_HZ,
            transcribes=caller["transcription"] is not None,
            detection=detection_of(caller["turn_detection"]),
        )

    def answer_fields(self, session: JsonObject) -> JsonObject:
        """See `ServerRules`."""
        return {
            "output_modalities": session["output_modalities"],
            "max_output_tokens": session["max_output_tokens"],
            "audio": {"output": {key: session["audio"]["output"][key] for key in ("format", "voice")}},
        }
