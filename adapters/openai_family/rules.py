"""Shared parts of what server halves accept as settings: models of the wire, complaints in the vendor's words.

Unknown fields are refused (`Wire`) or passed over (`Lenient`), as the vendor does; null clears or is ignored, as each
member's own rules say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from adapters.dialect import Setup, ToolSpec, TurnControlSettings, TurnMode
from adapters.foreign_json import JsonObject, list_of, object_of, text_of

MAX_TOOL_DESCRIPTION: Final = 1024
"""Characters; longer ones were refused in practice (livekit/agents#1183)."""
DEFAULT_SILENCE_MS: Final = 500
"""Quiet that ends a turn where the session states none (`semantic_vad`)."""


class Wire(BaseModel):
    """Base of the models of foreign messages: unknown fields and other types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Lenient(BaseModel):
    """Base of the messages of vendors that check types and values and pass unknown fields over."""

    model_config = ConfigDict(extra="ignore", strict=True)


@dataclass(frozen=True, slots=True)
class Complaint:
    """The body of an `error` event."""

    code: str
    message: str
    param: str | None = None
    type: str = "invalid_request_error"


@dataclass(frozen=True, slots=True)
class Detection:
    """How the server itself ends turns."""

    silence_ms: int = DEFAULT_SILENCE_MS
    creates: bool = True
    """An answer begins by itself."""
    interrupts: bool = True
    """Speech of the caller cuts a running answer."""


@dataclass(frozen=True, slots=True)
class SessionView:
    """What the server's core has to know of a session."""

    setup: Setup
    """`input_rate_hz` is the rate of the audio that is appended."""
    speaks: bool
    """Answers are speech (with a transcript); otherwise text."""
    output_rate_hz: int
    transcribes: bool
    """The caller's words are written down and sent."""
    detection: Detection | None
    """None: turns end by commit alone."""


@dataclass(frozen=True, slots=True)
class AnswerAsked:
    """The state in which `response.create` came."""

    session: JsonObject
    response: JsonObject
    """What the message itself says; empty when it says nothing."""
    has_history: bool
    """The conversation has an item."""
    speaking: bool
    """The server's own detection hears the caller."""


class ServerVad(Wire):
    """`turn_detection` by level."""

    type: Literal["server_vad"]
    threshold: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    prefix_padding_ms: Annotated[int, Field(ge=0)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=0)] | None = None
    create_response: bool | None = None
    interrupt_response: bool | None = None
    idle_timeout_ms: int | None = None


class SemanticVad(Wire):
    """`turn_detection` by meaning."""

    type: Literal["semantic_vad"]
    eagerness: Literal["low", "medium", "high", "auto"] | None = None
    create_response: bool | None = None
    interrupt_response: bool | None = None


class FlatTool(Wire):
    """A function, as OpenAI Realtime has it."""

    type: Literal["function"]
    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: Annotated[str, Field(max_length=MAX_TOOL_DESCRIPTION)] | None = None
    parameters: dict[str, Any] | None = None


class _Function(Wire):
    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: str | None = None
    parameters: dict[str, Any] | None = None


class NestedTool(Wire):
    """A function, as chat completions have it."""

    type: Literal["function"]
    function: _Function


def tool_specs(session: Mapping[str, Any]) -> tuple[ToolSpec, ...]:
    """The functions of a session, flat or nested; tools of other kinds are left out."""
    tools = [object_of(tool, "function") or tool for tool in list_of(session, "tools") if isinstance(tool, dict)]
    return tuple(
        ToolSpec(tool["name"], text_of(tool, "description") or "", object_of(tool, "parameters"))
        for tool in tools
        if text_of(tool, "name")
    )


def setup_of(session: JsonObject, detection: JsonObject | None, rate_hz: int) -> Setup:
    """A session in the rig's words; `detection` as its `turn_detection` has it, None for manual."""
    mode, parameters = TurnMode.MANUAL, {}
    if detection is not None:
        mode = TurnMode.SERVER_VAD if detection["type"] == "server_vad" else TurnMode.SEMANTIC_VAD
        parameters = {key: value for key, value in detection.items() if key != "type"}
    return Setup(
        instructions=text_of(session, "instructions") or "",
        tools=tool_specs(session),
        input_rate_hz=rate_hz,
        turn_control=TurnControlSettings(mode, parameters),
    )


def detection_of(detection: JsonObject | None) -> Detection | None:
    """`turn_detection` of a session in the core's words; None for manual."""
    if detection is None:
        return None
    silence_ms = detection.get("silence_duration_ms")
    return Detection(
        silence_ms if isinstance(silence_ms, int) and silence_ms > 0 else DEFAULT_SILENCE_MS,
        detection.get("create_response") is not False,
        detection.get("interrupt_response") is not False,
    )


def merged(
    old: JsonObject,
    change: Mapping[str, Any],
    entered: Sequence[str] = (),
    cleared_by_null: Sequence[str] = (),
    path: str = "",
) -> JsonObject:
    """`change` laid over `old`: objects whose path is in `entered` are merged, all other values replace.

    null changes nothing, except at the paths of `cleared_by_null`.
    """
    result = dict(old)
    for key, value in change.items():
        inner = f"{path}{key}"
        if inner in entered:
            result[key] = merged(object_of(old, key), value or {}, entered, cleared_by_null, f"{inner}.")
        elif value is not None or inner in cleared_by_null:
            result[key] = value
    return result


def checked(model: type[BaseModel], given: object, root: str) -> Complaint | None:
    """What is wrong with `given`, if anything."""
    try:
        model.model_validate(given)
    except ValidationError as error:
        return _worded(error.errors(include_url=False)[0], root)
    except RecursionError:
        return Complaint("invalid_value", f"'{root}' is nested too deeply.", root)
    return None if isinstance(given, dict) else Complaint("invalid_type", f"Invalid type for '{root}'.", root)


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
    {"server_vad", "semantic_vad", "Voice", "str", "int", "constrained-int", "literal['inf']", "dict[str,any]"}
)
"""Parts of pydantic's locations that name a member of a union, not a field."""
