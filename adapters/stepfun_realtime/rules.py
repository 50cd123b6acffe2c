"""What the server half of StepFun accepts as a session: values are checked, unknown fields are passed over."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from adapters.foreign_json import JsonObject
from adapters.openai_family.rules import (
    Complaint,
    Lenient,
    NestedTool,
    SessionView,
    checked,
    detection_of,
    merged,
    setup_of,
)
from adapters.stepfun_realtime.session import RATE_HZ


class _Detection(Lenient):
    type: Literal["server_vad"]
    prefix_padding_ms: Annotated[int, Field(ge=0)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=0)] | None = None
    energy_awakeness_threshold: Annotated[int, Field(ge=0, le=5000)] | None = None


class _Retrieval(Lenient):
    type: Literal["retrieval"]
    function: dict[str, Any]


class _WebSearch(Lenient):
    type: Literal["web_search"]


_Tool = Annotated[NestedTool | _Retrieval | _WebSearch, Field(discriminator="type")]


class _Session(Lenient):
    modalities: Annotated[list[Literal["text", "audio"]], Field(min_length=2, max_length=2)] | None = None
    instructions: str | None = None
    voice: str | None = None
    input_audio_format: Literal["pcm16"] | None = None
    output_audio_format: Literal["pcm16"] | None = None
    turn_detection: _Detection | None = None
    tools: list[_Tool] | None = None


class _Response(Lenient):
    instructions: str | None = None


VAD_DEFAULTS: Final[JsonObject] = {
    "prefix_padding_ms": 500,
    "silence_duration_ms": 100,
    "energy_awakeness_threshold": 2500,
}


class StepRules:
    """`ServerRules` of StepFun."""

    def default(self, session_id: str, model: str) -> JsonObject:
        """Turn detection is off; the length limit is a text."""
        return {
            "object": "realtime.session",
            "id": session_id,
            "model": model,
            "modalities": ["text", "audio"],
            "instructions": "",
            "voice": "linjiajiejie",
            "input_audio_format": "pcm16",
            "output_audio_format": "pcm16",
            "turn_detection": None,
            "tools": [],
            "max_response_output_tokens": "4096",
        }

    def updated(self, session: JsonObject, change: object, audio_heard: bool) -> JsonObject | Complaint:
        """Only fields that are present change; the voice is settled once the caller was heard."""
        complaint = checked(_Session, change, "session")
        if complaint is not None or not isinstance(change, dict):
            return complaint or Complaint("invalid_value", "Invalid type for 'session'.", "session")
        if audio_heard and change.get("voice") not in (None, session["voice"]):
            return Complaint("invalid_value", "The voice cannot be changed after the start.", "session.voice")
        known = {name: value for name, value in change.items() if name in _Session.model_fields}
        after = merged(session, known, cleared_by_null=("turn_detection",))
        if isinstance(given := change.get("turn_detection"), dict):
            stated = {name: value for name, value in given.items() if value is not None}
            after["turn_detection"] = {"type": given["type"], **VAD_DEFAULTS, **stated}
        return after

    def for_answer(self, session: JsonObject, change: object) -> JsonObject | Complaint:
        """The instructions of one answer."""
        if change is None:
            return session
        complaint = checked(_Response, change, "response")
        if complaint is not None or not isinstance(change, dict):
            return complaint or Complaint("invalid_value", "Invalid type for 'response'.", "response")
        return merged(session, {name: change[name] for name in _Response.model_fields if name in change})

    def view(self, session: JsonObject) -> SessionView:
        """See `ServerRules`. The caller is transcribed unasked."""
        return SessionView(
            setup=setup_of(session, session["turn_detection"], RATE_HZ),
            speaks=True,
            output_rate_hz=RATE_HZ,
            transcribes=True,
            detection=detection_of(session["turn_detection"]),
        )

    def answer_fields(self, session: JsonObject) -> JsonObject:
        """None is repeated."""
        return {}
