"""What the server half of Qwen-Omni accepts: values are checked, unknown fields are passed over, as DashScope does.

The vendor's SDK sends nulls, `pcm16` and `prefix_padding_ms`, all of which are taken. Tools in OpenAI's flat shape are
dropped without a word (sierra-research/tau2-bench#449).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from adapters.foreign_json import JsonObject, object_of
from adapters.openai_family.rules import (
    AnswerAsked,
    Complaint,
    Lenient,
    NestedTool,
    SessionView,
    checked,
    detection_of,
    merged,
    setup_of,
)
from adapters.qwen_omni_realtime.session import INPUT_RATE_HZ, OLD_VOICES, OUTPUT_RATE_HZ

Modalities = list[Literal["text", "audio"]]
Pcm = Literal["pcm", "pcm16"]
Number = Annotated[float, Field(strict=False)]


class _Detection(Lenient):
    type: Literal["server_vad", "semantic_vad"]
    threshold: Annotated[float, Field(ge=-1, le=1, strict=False)] | None = None
    prefix_padding_ms: Annotated[int, Field(ge=0)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=200, le=6000)] | None = None
    idle_timeout_ms: Annotated[int, Field(ge=0)] | None = None
    create_response: bool | None = None
    interrupt_response: bool | None = None


class Transcription(Lenient):
    """`input_audio_transcription`."""

    model: str | None = None


class _InputFormat(Lenient):
    type: Literal["pcm"] = "pcm"
    sample_rate: Literal[8000, 16000, 24000, 48000] | None = None


class _OutputFormat(Lenient):
    type: Literal["pcm"] = "pcm"
    sample_rate: Literal[24000] | None = None
    """The vendor has other rates too; the emulators speak at this one."""


class _Input(Lenient):
    format: _InputFormat | None = None


class _Output(Lenient):
    format: _OutputFormat | None = None


class _Audio(Lenient):
    input: _Input | None = None
    output: _Output | None = None


class _Session(Lenient):
    modalities: Modalities | None = None
    instructions: str | None = None
    voice: str | None = None
    input_audio_format: Pcm | None = None
    output_audio_format: Pcm | None = None
    audio: _Audio | None = None
    input_audio_transcription: Transcription | None = None
    turn_detection: _Detection | None = None
    tools: list[dict[str, Any]] | None = None
    enable_search: bool | None = None
    temperature: Number | None = None
    top_p: Number | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    presence_penalty: Number | None = None
    repetition_penalty: Number | None = None
    seed: int | None = None
    smooth_output: bool | None = None


class ResponseChange(Lenient):
    """What one `response.create` may change."""

    modalities: Modalities | None = None
    instructions: str | None = None


VAD_DEFAULTS: Final[JsonObject] = {
    "threshold": 0.5,
    "prefix_padding_ms": 300,
    "silence_duration_ms": 800,
    "create_response": True,
    "interrupt_response": True,
}
_OLD_STYLE: Final = ("input_audio_format", "output_audio_format")
_CLEARED_BY_NULL: Final = ("turn_detection", "input_audio_transcription")


class OmniRules:
    """`ServerRules` of Qwen-Omni."""

    session_model: type[Lenient] = _Session

    def default(self, session_id: str, model: str) -> JsonObject:
        """The vendor's own turn detection is on."""
        return {
            "object": "realtime.session",
            "id": session_id,
            "model": model,
            "modalities": ["text", "audio"],
            "voice": "Tina",
            "input_audio_format": "pcm",
            "output_audio_format": "pcm",
            "input_audio_transcription": None,
            "turn_detection": {"type": "server_vad", **VAD_DEFAULTS},
            "instructions": "",
            "tools": [],
        }

    def updated(self, session: JsonObject, change: object, audio_heard: bool) -> JsonObject | Complaint:
        """Only fields that are present change; null clears detection and transcription, and is no news elsewhere."""
        complaint = checked(self.session_model, change, "session") or modalities_complaint(change, "session")
        if complaint is not None or not isinstance(change, dict):
            return complaint or Complaint("invalid_value", "Invalid type for 'session'.", "session")
        if isinstance(change.get("audio"), dict) and any(change.get(name) for name in _OLD_STYLE):
            message = "'audio' and 'input_audio_format' or 'output_audio_format' cannot be given together."
            return Complaint("invalid_value", message, "session.audio")
        known = {name: value for name, value in change.items() if name in self.session_model.model_fields}
        known |= nested_alone(known)
        after = merged(session, known, cleared_by_null=_CLEARED_BY_NULL)
        if after.get("enable_search") and after["tools"]:
            return Complaint(
                "invalid_value", "'enable_search' and 'tools' exclude each other.", "session.enable_search"
            )
        if isinstance(given := change.get("turn_detection"), dict):
            after["turn_detection"] = {"type": given["type"], **VAD_DEFAULTS, **without_nulls(given)}
        return after

    def for_answer(self, session: JsonObject, change: object) -> JsonObject | Complaint:
        """The settings that one answer may change."""
        if change is None:
            return session
        complaint = checked(ResponseChange, change, "response") or modalities_complaint(change, "response")
        if complaint is not None or not isinstance(change, dict):
            return complaint or Complaint("invalid_value", "Invalid type for 'response'.", "response")
        return merged(session, {name: change[name] for name in ResponseChange.model_fields if name in change})

    def view(self, session: JsonObject) -> SessionView:
        """See `ServerRules`."""
        caller = object_of(object_of(object_of(session, "audio"), "input"), "format")
        return SessionView(
            setup=setup_of(session, session["turn_detection"], caller.get("sample_rate") or INPUT_RATE_HZ),
            speaks="audio" in session["modalities"],
            output_rate_hz=OUTPUT_RATE_HZ,
            transcribes=session["input_audio_transcription"] is not None,
            detection=detection_of(session["turn_detection"]),
        )

    def answer_fields(self, session: JsonObject) -> JsonObject:
        """See `ServerRules`."""
        return {name: session[name] for name in ("modalities", "voice", "output_audio_format")}


def modalities_complaint(change: object, root: str) -> Complaint | None:
    """Against anything but text, and text with speech."""
    given = change.get("modalities") if isinstance(change, dict) else None
    if given is None or sorted(given) in (["text"], ["audio", "text"]):
        return None
    message = f"Invalid modalities: {given}. Supported combinations are: ['text'] and ['text', 'audio']."
    return Complaint("invalid_value", message, f"{root}.modalities")


def refuses_answer(asked: AnswerAsked) -> Complaint | None:
    """Nothing to answer, a caller who speaks, or a voice of older models, which 3.8 took as a setting."""
    if asked.speaking:
        return Complaint("invalid_value", "Cannot create response while user is speaking.", "response.create")
    if not asked.has_history and not asked.response.get("instructions"):
        message = "Cannot create response without input, history, or instructions"
        return Complaint("invalid_value", message, "response.create")
    if asked.session["model"].startswith("qwen3.8-") and asked.session["voice"] in OLD_VOICES:
        return Complaint("invalid_value", f"Voice '{asked.session['voice']}' is not supported.", "voice")
    return None


def nested_alone(session: JsonObject) -> JsonObject:
    """The `tools` of a session that are of the nested shape; nothing when it has no list of them."""
    tools = session.get("tools")
    return {"tools": [tool for tool in tools if checked(NestedTool, tool, "tool") is None]} if tools else {}


def without_nulls(fields: JsonObject) -> JsonObject:
    """What a client did give."""
    return {name: value for name, value in fields.items() if value is not None}
