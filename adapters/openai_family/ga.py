"""OpenAI's GA shape of a session: a target's settings, and the session object made from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from adapters.dialect import Capabilities, Setup, TurnMode
from adapters.foreign_json import JsonObject
from adapters.openai_family.profile import FamilySettings, flat_tool
from adapters.openai_family.turn_detection import NoParameters, SemanticVad, ServerVad, turn_detection
from adapters.target_settings import StrictSettings

RATE_HZ: Final = 24_000
"""The only PCM rate of the API, both ways: signed 16-bit little-endian mono."""
PCM_FORMAT: Final[Mapping[str, Any]] = {"type": "audio/pcm", "rate": RATE_HZ}
MIN_COMMIT_S: Final = 0.1
"""A shorter commit is answered with `input_audio_buffer_commit_empty`."""


class CustomVoice(StrictSettings):
    """A voice of one's own, by id."""

    id: str


class Transcription(StrictSettings):
    """The vendor's transcript of the caller: another model, beside the one under test."""

    model: str
    language: str | None = None
    prompt: str | None = None


class ForcedTool(StrictSettings):
    """A tool that must be called."""

    type: Literal["function"] = "function"
    name: str


class GaSettings(FamilySettings):
    """`settings:` of a target. What is left out is not sent, so that the vendor's default holds."""

    voice: str | CustomVoice | None = None
    output_modalities: Annotated[
        list[Literal["audio", "text"]], Field(min_length=1, max_length=1, default_factory=lambda: ["audio"])
    ]
    """Exactly one: the API refuses both together."""
    transcription: Transcription | None = None
    noise_reduction: Literal["near_field", "far_field"] | None = None
    reasoning_effort: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None
    """Reasoning models only."""
    max_output_tokens: Annotated[int, Field(ge=1, le=4096)] | Literal["inf"] | None = None
    speed: Annotated[float, Field(ge=0.25, le=1.5, strict=False)] | None = None
    tool_choice: Literal["auto", "none", "required"] | ForcedTool | None = None


TURN_PARAMETERS: Final[Mapping[TurnMode, type[StrictSettings]]] = {
    TurnMode.MANUAL: NoParameters,
    TurnMode.SERVER_VAD: ServerVad,
    TurnMode.SEMANTIC_VAD: SemanticVad,
}
CAPABILITIES: Final = Capabilities(
    text_twin=True,
    probe=True,
    turn_modes=frozenset(TURN_PARAMETERS),
    input_rates_hz=(RATE_HZ,),
    output_rate_hz=RATE_HZ,
    min_commit_s=MIN_COMMIT_S,
)
PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("model",),
    "output_modalities": ("output_modalities",),
    "tool_choice": ("tool_choice",),
    "max_output_tokens": ("max_output_tokens",),
    "reasoning": ("reasoning",),
    "truncation": ("truncation",),
    "turn_detection": ("audio", "input", "turn_detection"),
    "input_format": ("audio", "input", "format"),
    "transcription": ("audio", "input", "transcription"),
    "noise_reduction": ("audio", "input", "noise_reduction"),
    "output_format": ("audio", "output", "format"),
    "voice": ("audio", "output", "voice"),
    "speed": ("audio", "output", "speed"),
}
"""Where a confirmed session states what; see `ClientProfile.places`."""


def ga_session(settings: GaSettings, setup: Setup) -> JsonObject:
    """`session` of `session.update`, GA shape.

    Raises:
        SettingsError: turn control that the API does not have.
    """
    caller: JsonObject = {
        "format": PCM_FORMAT,
        "turn_detection": turn_detection(setup.turn_control, TURN_PARAMETERS),
    }
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
        "tools": [flat_tool(tool) for tool in setup.tools],
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
