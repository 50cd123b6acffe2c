"""What the server half accepts as a session, and the error it answers with otherwise.

Shapes: `openai.types.realtime` (3.57). Unknown fields are refused, as the vendor does. Only what the emulators can
serve is accepted: PCM at 24 kHz and function tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from adapters.dialect import Setup, ToolSpec, TurnControlSettings, TurnMode
from adapters.openai_realtime.wire import PCM_FORMAT, RATE_HZ, JsonObject, list_of, object_of, text_of

MAX_TOOL_DESCRIPTION: Final = 1024
"""Characters; longer ones were refused in practice (livekit/agents#1183)."""


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Pcm(_Wire):
    type: Literal["audio/pcm"]
    rate: Literal[24000] = 24000


class _Transcription(_Wire):
    model: str | None = None
    language: str | None = None
    prompt: str | None = None
    delay: Any = None


class _NoiseReduction(_Wire):
    type: Literal["near_field", "far_field"]


class _ServerVad(_Wire):
    type: Literal["server_vad"]
    threshold: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    prefix_padding_ms: Annotated[int, Field(ge=0)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=0)] | None = None
    create_response: bool | None = None
    interrupt_response: bool | None = None
    idle_timeout_ms: int | None = None


class _SemanticVad(_Wire):
    type: Literal["semantic_vad"]
    eagerness: Literal["low", "medium", "high", "auto"] | None = None
    create_response: bool | None = None
    interrupt_response: bool | None = None


class _Input(_Wire):
    format: _Pcm | None = None
    transcription: _Transcription | None = None
    noise_reduction: _NoiseReduction | None = None
    turn_detection: Annotated[_ServerVad | _SemanticVad, Field(discriminator="type")] | None = None


class _Voice(_Wire):
    id: str


class _Output(_Wire):
    format: _Pcm | None = None
    voice: str | _Voice | None = None
    speed: Annotated[float, Field(ge=0.25, le=1.5, strict=False)] | None = None


class _Audio(_Wire):
    input: _Input | None = None
    output: _Output | None = None


class _Tool(_Wire):
    type: Literal["function"]
    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: Annotated[str, Field(max_length=MAX_TOOL_DESCRIPTION)] | None = None
    parameters: dict[str, Any] | None = None


class _Reasoning(_Wire):
    effort: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None


class _Shared(_Wire):
    instructions: str | None = None
    output_modalities: Annotated[list[Literal["audio", "text"]], Field(min_length=1, max_length=1)] | None = None
    tools: list[_Tool] | None = None
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


class _ResponseAudio(_Wire):
    output: _Output | None = None


class _Response(_Shared):
    """What one `response.create` may change."""

    audio: _ResponseAudio | None = None
    conversation: str | None = None
    input: list[dict[str, Any]] | None = None
    metadata: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Complaint:
    """The body of an `error` event."""

    code: str
    message: str
    param: str | None = None
    type: str = "invalid_request_error"


def default_session(session_id: str, model: str) -> JsonObject:
    """A session before any `session.update`: the vendor's own turn detection is on."""
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
                "turn_detection": _SERVER_VAD_DEFAULTS | {"type": "server_vad"},
            },
            "output": {"format": dict(PCM_FORMAT), "voice": "marin", "speed": 1.0},
        },
    }


_SERVER_VAD_DEFAULTS: Final[JsonObject] = {
    "threshold": 0.5,
    "prefix_padding_ms": 300,
    "silence_duration_ms": 500,
    "idle_timeout_ms": None,
    "create_response": True,
    "interrupt_response": True,
}
_SEMANTIC_VAD_DEFAULTS: Final[JsonObject] = {"eagerness": "auto", "create_response": True, "interrupt_response": True}


def updated_session(session: JsonObject, change: object) -> JsonObject | Complaint:
    """The session after `session.update`; only fields that are present change."""
    complaint = _complaint(_Session, change, "session")
    if complaint is not None or not isinstance(change, dict):
        return complaint or Complaint("invalid_type", "Invalid type for 'session'.", "session")
    if change.get("model") not in (None, session["model"]):
        return Complaint("invalid_value", "A session's model cannot be changed.", "session.model")
    merged = _merged(session, change)
    detection = object_of(object_of(merged, "audio"), "input")
    given = object_of(object_of(change, "audio"), "input").get("turn_detection")
    if isinstance(given, dict):
        defaults = _SERVER_VAD_DEFAULTS if given["type"] == "server_vad" else _SEMANTIC_VAD_DEFAULTS
        detection["turn_detection"] = {"type": given["type"]} | defaults | given
    return merged


def response_settings(session: JsonObject, change: object) -> JsonObject | Complaint:
    """The session as one `response.create` changes it."""
    if change is None:
        return session
    complaint = _complaint(_Response, change, "response")
    if complaint is not None or not isinstance(change, dict):
        return complaint or Complaint("invalid_type", "Invalid type for 'response'.", "response")
    return _merged(session, {key: value for key, value in change.items() if key in session})


def setup_of(session: JsonObject) -> Setup:
    """A session in the rig's words."""
    detection = object_of(object_of(session, "audio"), "input").get("turn_detection")
    mode, parameters = TurnMode.MANUAL, {}
    if isinstance(detection, dict):
        mode = TurnMode(detection["type"])
        parameters = {key: value for key, value in detection.items() if key != "type"}
    return Setup(
        instructions=text_of(session, "instructions") or "",
        tools=tuple(
            ToolSpec(tool["name"], text_of(tool, "description") or "", object_of(tool, "parameters"))
            for tool in list_of(session, "tools")
        ),
        input_rate_hz=RATE_HZ,
        turn_control=TurnControlSettings(mode, parameters),
    )


def _merged(old: JsonObject, change: Mapping[str, Any], path: str = "") -> JsonObject:
    """`change` laid over `old`; only `audio` and its two sides are entered, all other values replace."""
    merged = dict(old)
    for key, value in change.items():
        inner = f"{path}{key}"
        if inner in ("audio", "audio.input", "audio.output"):
            merged[key] = _merged(object_of(old, key), value or {}, f"{inner}.")
        elif value is not None or inner in _CLEARED_BY_NULL:
            merged[key] = value
    return merged


_CLEARED_BY_NULL: Final = frozenset(
    {"audio.input.turn_detection", "audio.input.transcription", "audio.input.noise_reduction", "tracing", "prompt"}
)


def _complaint(model: type[BaseModel], given: object, root: str) -> Complaint | None:
    try:
        model.model_validate(given)
    except ValidationError as error:
        return _worded(error.errors(include_url=False)[0], root)
    except RecursionError:
        return Complaint("invalid_value", f"'{root}' is nested too deeply.", root)
    return None


def _worded(error: ErrorDetails, root: str) -> Complaint:
    """The vendor's kind of sentence for a fault: what, where, and the lengths where they matter."""
    param = root
    for part in error["loc"]:
        if isinstance(part, int):
            param += f"[{part}]"
        elif part not in _UNION_MEMBERS:
            param += f".{part}"
    context = error.get("ctx", {})
    match error["type"]:
        case "missing":
            return Complaint("missing_required_parameter", f"Missing required parameter: '{param}'.", param)
        case "union_tag_not_found":
            return Complaint(
                "missing_required_parameter", f"Missing required parameter: '{param}.type'.", f"{param}.type"
            )
        case "extra_forbidden":
            return Complaint("unknown_parameter", f"Unknown parameter: '{param}'.", param)
        case "string_too_long":
            longest, length = context["max_length"], len(str(error["input"]))
            return Complaint(
                "string_above_max_length",
                f"Invalid '{param}': string too long. Expected a string with maximum length {longest}, "
                f"but got a string with length {length} instead.",
                param,
            )
        case kind if kind.endswith("_type"):
            return Complaint("invalid_type", f"Invalid type for '{param}': {error['msg']}.", param)
        case _:
            return Complaint("invalid_value", f"Invalid value for '{param}': {error['msg']}.", param)


_UNION_MEMBERS: Final = frozenset(
    {"server_vad", "semantic_vad", "_Voice", "str", "int", "constrained-int", "literal['inf']", "dict[str,any]"}
)
"""Parts of pydantic's locations that name a member of a union, not a field."""
