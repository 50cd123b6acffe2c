"""A target's settings for this dialect, and the session object made from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from adapters.dialect import SettingsError, Setup, TurnControlSettings, TurnMode
from adapters.openai_realtime.wire import PCM_FORMAT, JsonObject

Model = TypeVar("Model", bound=BaseModel)
HeaderText = Annotated[str, StringConstraints(pattern=r"^[^\r\n]*$")]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CustomVoice(_Settings):
    """A voice of one's own, by id."""

    id: str


class Transcription(_Settings):
    """The vendor's transcript of the caller: another model, beside the one under test."""

    model: str
    language: str | None = None
    prompt: str | None = None


class ForcedTool(_Settings):
    """A tool that must be called."""

    type: Literal["function"] = "function"
    name: str


class RealtimeSettings(_Settings):
    """`settings:` of a target. What is left out is not sent, so that the vendor's default holds."""

    voice: str | CustomVoice | None = None
    output_modalities: Annotated[list[Literal["audio", "text"]], Field(min_length=1, max_length=1)] = ["audio"]
    """Exactly one: the API refuses both together."""
    transcription: Transcription | None = None
    noise_reduction: Literal["near_field", "far_field"] | None = None
    reasoning_effort: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None
    """Reasoning models only."""
    max_output_tokens: Annotated[int, Field(ge=1, le=4096)] | Literal["inf"] | None = None
    speed: Annotated[float, Field(ge=0.25, le=1.5, strict=False)] | None = None
    tool_choice: Literal["auto", "none", "required"] | ForcedTool | None = None
    headers: dict[HeaderText, HeaderText] = Field(default_factory=dict, repr=False)
    """More headers of the handshake."""


class _VoiceActivity(_Settings):
    create_response: Literal[True] = True
    """Without it nothing would ask for the answer."""
    interrupt_response: bool | None = None


class ServerVad(_VoiceActivity):
    """Parameters of turn mode `server_vad`."""

    threshold: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    prefix_padding_ms: Annotated[int, Field(ge=0)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=0)] | None = None
    idle_timeout_ms: int | None = None


class SemanticVad(_VoiceActivity):
    """Parameters of turn mode `semantic_vad`."""

    eagerness: Literal["low", "medium", "high", "auto"] | None = None


class NoParameters(_Settings):
    """Turn mode `manual` has none."""


_TURN_PARAMETERS: Mapping[TurnMode, type[_Settings]] = {
    TurnMode.MANUAL: NoParameters,
    TurnMode.SERVER_VAD: ServerVad,
    TurnMode.SEMANTIC_VAD: SemanticVad,
}
TURN_MODES = frozenset(_TURN_PARAMETERS)


def _read(model: type[Model], given: Mapping[str, Any], where: str) -> Model:
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        key = ".".join([where, *(str(part) for part in first["loc"])])
        known = f" (known: {', '.join(model.model_fields)})" if first["type"] == "extra_forbidden" else ""
        raise SettingsError(f"{key}: {first['msg']}{known}") from None


def read_settings(extra: Mapping[str, Any]) -> RealtimeSettings:
    """A target's `settings:`.

    Raises:
        SettingsError: an unknown key or a value out of range; names the key.
    """
    return _read(RealtimeSettings, extra, "settings")


def turn_detection(turn_control: TurnControlSettings) -> JsonObject | None:
    """`turn_detection` of the session; None is manual.

    Raises:
        SettingsError: a mode or parameter that the API does not have; names the key.
    """
    if turn_control.mode not in TURN_MODES:
        raise SettingsError(f"turn_control.mode: {turn_control.mode} is not one of {', '.join(sorted(TURN_MODES))}")
    parameters = _read(_TURN_PARAMETERS[turn_control.mode], turn_control.parameters, "turn_control")
    if turn_control.mode is TurnMode.MANUAL:
        return None
    return {"type": turn_control.mode.value, **parameters.model_dump(exclude_none=True)}


def session_object(settings: RealtimeSettings, setup: Setup) -> JsonObject:
    """`session` of `session.update`, GA shape.

    Raises:
        SettingsError: see `turn_detection`.
    """
    caller: JsonObject = {"format": PCM_FORMAT, "turn_detection": turn_detection(setup.turn_control)}
    if settings.transcription is not None:
        caller["transcription"] = settings.transcription.model_dump(exclude_none=True)
    if settings.noise_reduction is not None:
        caller["noise_reduction"] = {"type": settings.noise_reduction}
    agent: JsonObject = {"format": PCM_FORMAT}
    if settings.voice is not None:
        agent["voice"] = settings.voice if isinstance(settings.voice, str) else settings.voice.model_dump()
    if settings.speed is not None:
        agent["speed"] = settings.speed
    session: JsonObject = {
        "type": "realtime",
        "instructions": setup.instructions,
        "output_modalities": settings.output_modalities,
        "tools": [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            }
            for tool in setup.tools
        ],
        "audio": {"input": caller, "output": agent},
    }
    if settings.tool_choice is not None and setup.tools:
        choice = settings.tool_choice
        session["tool_choice"] = choice if isinstance(choice, str) else choice.model_dump()
    if settings.max_output_tokens is not None:
        session["max_output_tokens"] = settings.max_output_tokens
    if settings.reasoning_effort is not None:
        session["reasoning"] = {"effort": settings.reasoning_effort}
    return session


def session_url(base_url: str, model: str) -> tuple[str, str]:
    """The address to connect to, and its label without query and credentials.

    `http(s)` stands for `ws(s)`; the path is used as given; `model` is added unless the query names one.

    Raises:
        SettingsError: not a WebSocket or HTTP address.
    """
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise SettingsError(f"base_url: {error}") from None
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    if scheme not in ("ws", "wss") or not host:
        raise SettingsError("base_url: must look like wss://host/v1/realtime")
    query = parse_qsl(parts.query, keep_blank_values=True)
    if not any(name == "model" for name, _ in query):
        query.append(("model", model))
    shown = f"[{host}]" if ":" in host else host
    label = f"{scheme}://{shown}{f':{port}' if port else ''}{parts.path}"
    return urlunsplit((scheme, parts.netloc, parts.path, urlencode(query), "")), label
