"""A target's settings, and the `session` of `session.start` made of them. What is left out is not sent."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlunsplit

from pydantic import Field, StringConstraints

from adapters.dialect import SettingsError, Setup, TurnControlSettings, TurnMode
from adapters.foreign_json import JsonObject
from adapters.openai_live import wire
from adapters.target_settings import HeaderText, StrictSettings, read_address, read_settings

Words = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class LiveSettings(StrictSettings):
    """`settings:` of a target."""

    delegate_model: Words
    """The Responses model that the speech model hands work to: it alone sees the tools."""
    voice: Words | None = None
    rate_hz: Literal[24_000, 16_000] = 24_000
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """Of the delegate."""
    tool_choice: Literal["auto", "none", "required"] | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    acknowledgement_delay_ms: Annotated[int, Field(ge=0)] | None = None
    end_silence_s: Annotated[float, Field(ge=0.3, le=10, strict=False)] = 1.5
    """Silence of the agent, with no delegated work open, that ends its turn: the protocol has no sign of its own."""
    headers: dict[HeaderText, HeaderText] = Field(default_factory=dict, repr=False)


class _NoParameters(StrictSettings):
    """The vendor's turn detection has no parameters."""


def check_turn_control(turn_control: TurnControlSettings) -> None:
    """The vendor detects turns by itself, always, and takes no parameters for it.

    Raises:
        SettingsError: another mode, or a parameter.
    """
    if turn_control.mode is not TurnMode.SERVER_VAD:
        raise SettingsError(f"turn_control.mode: {turn_control.mode.value} does not exist here; use server_vad")
    read_settings(_NoParameters, turn_control.parameters, "turn_control")


def session_url(base_url: str | None) -> tuple[str, str]:
    """The address to connect to, and its label; `http(s)` stands for `ws(s)`.

    Raises:
        SettingsError: no such address.
    """
    schemes = ("ws", "wss", "http", "https")
    parts, label = read_address(base_url or wire.URL, schemes, "wss://host/v1/live/sessions")
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    return urlunsplit((scheme, parts.netloc, parts.path, parts.query, "")), scheme + label[len(parts.scheme) :]


def session_object(settings: LiveSettings, model: str, setup: Setup) -> JsonObject:
    """`session` of `session.start`: the same words for the speech model and for its delegate, which alone has tools.

    Raises:
        SettingsError: see `check_turn_control`.
    """
    check_turn_control(setup.turn_control)
    backend: JsonObject = {
        "model": settings.delegate_model,
        "instructions": setup.instructions,
        "tools": [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            }
            for tool in setup.tools
        ],
    }
    if settings.reasoning_effort is not None:
        backend["reasoning"] = {"effort": settings.reasoning_effort}
    if settings.tool_choice is not None and setup.tools:
        backend["tool_choice"] = settings.tool_choice
    if settings.parallel_tool_calls is not None:
        backend["parallel_tool_calls"] = settings.parallel_tool_calls
    if settings.max_output_tokens is not None:
        backend["max_output_tokens"] = settings.max_output_tokens
    delegation: JsonObject = {"type": "responses", "responses": backend}
    if settings.acknowledgement_delay_ms is not None:
        delegation["acknowledgement_delay_ms"] = settings.acknowledgement_delay_ms
    audio: JsonObject = {"format": {"type": "audio/pcm", "rate": settings.rate_hz}}
    if settings.voice is not None:
        audio["output"] = {"voice": settings.voice}
    return {"model": model, "instructions": setup.instructions, "audio": audio, "delegation": delegation}
