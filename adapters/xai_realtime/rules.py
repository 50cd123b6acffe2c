"""The server half of xAI: what it accepts as a session, and the quirks of its events.

The emulator speaks at 24 kHz only, and has functions only; everything else follows the vendor's page and the clients
that were written against it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from adapters.foreign_json import JsonObject, object_of, text_of
from adapters.openai_family.rules import (
    Complaint,
    FlatTool,
    SessionView,
    Wire,
    checked,
    detection_of,
    merged,
    setup_of,
)

_OUTPUT_RATE_HZ: Final = 24_000


class _InputPcm(Wire):
    type: Literal["audio/pcm"]
    rate: Literal[8000, 16000, 21050, 22050, 24000, 32000, 44100, 48000] = 24_000


class _OutputPcm(Wire):
    type: Literal["audio/pcm"]
    rate: Literal[24000] = 24_000


class _Transcription(Wire):
    model: str | None = None
    language_hint: str | None = None
    keyterms: Annotated[list[str], Field(max_length=100)] | None = None


class _Input(Wire):
    format: _InputPcm | None = None
    transcription: _Transcription | None = None


class _Output(Wire):
    format: _OutputPcm | None = None
    speed: Annotated[float, Field(ge=0.7, le=1.5, strict=False)] | None = None


class _Audio(Wire):
    input: _Input | None = None
    output: _Output | None = None


class _Detection(Wire):
    type: Literal["server_vad"] | None
    threshold: Annotated[float, Field(ge=0.1, le=0.9, strict=False)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=0)] | None = None
    prefix_padding_ms: Annotated[int, Field(ge=0)] | None = None
    idle_timeout_ms: int | None = None


class _Reasoning(Wire):
    effort: Literal["none", "low", "medium", "high"] | None = None


class _Session(Wire):
    instructions: Annotated[str, Field(max_length=16_384)] | None = None
    voice: str | None = None
    turn_detection: _Detection | None = None
    audio: _Audio | None = None
    transport: Literal["json"] | None = None
    tools: list[FlatTool] | None = None
    reasoning: _Reasoning | None = None
    resumption: dict[str, Any] | None = None
    replace: dict[str, str] | None = None


class _Response(Wire):
    instructions: str | None = None
    tools: list[FlatTool] | None = None
    metadata: dict[str, str] | None = None


_ENTERED: Final = ("audio", "audio.input", "audio.output")
_CLEARED_BY_NULL: Final = ("turn_detection", "audio.input.transcription")


class XaiRules:
    """`ServerRules` of xAI."""

    def default(self, session_id: str, model: str) -> JsonObject:
        """Detection is on; reasoning is high."""
        return {
            "object": "realtime.session",
            "id": session_id,
            "model": model,
            "instructions": "",
            "voice": "eve",
            "turn_detection": {"type": "server_vad"},
            "tools": [],
            "reasoning": {"effort": "high"},
            "audio": {
                "input": {"format": {"type": "audio/pcm", "rate": 24_000}, "transcription": None},
                "output": {"format": {"type": "audio/pcm", "rate": _OUTPUT_RATE_HZ}, "speed": 1.0},
            },
        }

    def updated(self, session: JsonObject, change: object, audio_heard: bool) -> JsonObject | Complaint:
        """Only fields that are present change; voices are told apart without regard to case."""
        complaint = checked(_Session, change, "session")
        if complaint is not None or not isinstance(change, dict):
            return complaint or Complaint("invalid_type", "Invalid type for 'session'.", "session")
        after = merged(session, change, _ENTERED, _CLEARED_BY_NULL)
        after["voice"] = after["voice"].lower()
        return after

    def for_answer(self, session: JsonObject, change: object) -> JsonObject | Complaint:
        """The settings that one answer may change."""
        if change is None:
            return session
        complaint = checked(_Response, change, "response")
        if complaint is not None or not isinstance(change, dict):
            return complaint or Complaint("invalid_type", "Invalid type for 'response'.", "response")
        return merged(session, {key: value for key, value in change.items() if key in session})

    def view(self, session: JsonObject) -> SessionView:
        """A bare null ends no turns by itself either."""
        given = object_of(session, "turn_detection")
        detection = given if text_of(given, "type") else None
        caller = session["audio"]["input"]
        rate_hz = object_of(caller, "format").get("rate") or 24_000
        return SessionView(
            setup=setup_of(session, detection, rate_hz),
            speaks=True,
            output_rate_hz=_OUTPUT_RATE_HZ,
            transcribes=caller["transcription"] is not None,
            detection=detection_of(detection),
        )

    def answer_fields(self, session: JsonObject) -> JsonObject:
        """See `ServerRules`."""
        return {"voice": session["voice"]}


_TRANSCRIPT: Final = "conversation.item.input_audio_transcription."
_UNKNOWN_HERE: Final = frozenset({"rate_limits.updated", "conversation.item.done"})
_OWN_CODES: Final = frozenset({"conversation_already_has_active_response", "response_cancel_not_active"})


def xai_events(event: JsonObject) -> Iterable[JsonObject]:
    """An event as xAI sends it: calls announced twice, transcripts cumulative and completed more than once, usage at
    the top level of `response.done`, codes of its own, and pings."""
    kind = event["type"]
    if kind in _UNKNOWN_HERE:
        return
    if kind == f"{_TRANSCRIPT}completed":
        yield from _transcript_events(event)
    elif kind == "response.done":
        response = dict(event["response"])
        usage = response.pop("usage", None) or {}
        yield event | {"response": response, "usage": usage}
    elif kind == "error" and event["error"]["code"] in _OWN_CODES:
        yield event | {"error": event["error"] | {"code": "invalid_request"}}
    else:
        yield event
    if kind == "conversation.item.added" and text_of(object_of(event, "item"), "type") == "function_call":
        yield event | {"event_id": f"{event['event_id']}_again"}
    if kind == "response.created":
        yield {"type": "ping", "event_id": f"{event['event_id']}_ping", "timestamp": 0}


def _transcript_events(event: JsonObject) -> Iterable[JsonObject]:
    words = event["transcript"].split(" ")
    states = [" ".join(words[:count]) for count in range(1, len(words) + 1)]
    same = {key: value for key, value in event.items() if key != "usage"}
    for place, state in enumerate(states):
        yield same | {"type": f"{_TRANSCRIPT}updated", "event_id": f"{event['event_id']}_{place}", "transcript": state}
    early = same | {"event_id": f"{event['event_id']}_early", "status": "in_progress", "transcript": states[0]}
    yield early
    yield event | {"status": "completed"}
    yield event | {"status": "completed", "event_id": f"{event['event_id']}_again"}
