"""The older, flat shape of a session (2024/25), by which many servers still speak.

Facts: `openai.types.beta.realtime` of OpenAI's Python SDK 3.57, which still ships `client.beta.realtime`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from adapters.dialect import Setup
from adapters.foreign_json import JsonObject
from adapters.openai_family.ga import TURN_PARAMETERS, Transcription
from adapters.openai_family.profile import FamilySettings, flat_tool
from adapters.openai_family.turn_detection import turn_detection

PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("model",),
    "modalities": ("modalities",),
    "voice": ("voice",),
    "input_format": ("input_audio_format",),
    "output_format": ("output_audio_format",),
    "transcription": ("input_audio_transcription",),
    "noise_reduction": ("input_audio_noise_reduction",),
    "turn_detection": ("turn_detection",),
    "temperature": ("temperature",),
    "speed": ("speed",),
    "tool_choice": ("tool_choice",),
    "max_output_tokens": ("max_response_output_tokens",),
}
"""Where a confirmed session states what; see `ClientProfile.places`."""


class BetaSettings(FamilySettings):
    """`settings:` of a target. What is left out is not sent, so that the vendor's default holds."""

    voice: str | None = None
    modalities: Literal["audio", "text"] = "audio"
    """Speech (with its transcript), or text alone: the API has no speech without text."""
    transcription: Transcription | None = None
    noise_reduction: Literal["near_field", "far_field"] | None = None
    temperature: Annotated[float, Field(ge=0.6, le=1.2, strict=False)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=4096)] | Literal["inf"] | None = None
    speed: Annotated[float, Field(ge=0.25, le=1.5, strict=False)] | None = None
    tool_choice: str | None = None
    """`auto`, `none`, `required`, or the name of a function."""


def beta_session(settings: BetaSettings, setup: Setup) -> JsonObject:
    """`session` of `session.update`, beta shape.

    Raises:
        SettingsError: turn control that the API does not have.
    """
    session: JsonObject = {
        "modalities": ["audio", "text"] if settings.modalities == "audio" else ["text"],
        "instructions": setup.instructions,
        "input_audio_format": "pcm16",
        "output_audio_format": "pcm16",
        "turn_detection": turn_detection(setup.turn_control, TURN_PARAMETERS),
        "tools": [flat_tool(tool) for tool in setup.tools],
    }
    if settings.transcription is not None:
        session["input_audio_transcription"] = settings.transcription.model_dump(exclude_none=True)
    if settings.noise_reduction is not None:
        session["input_audio_noise_reduction"] = {"type": settings.noise_reduction}
    if settings.tool_choice is not None and setup.tools:
        session["tool_choice"] = settings.tool_choice
    if settings.max_output_tokens is not None:
        session["max_response_output_tokens"] = settings.max_output_tokens
    given = {"voice": settings.voice, "temperature": settings.temperature, "speed": settings.speed}
    return session | {key: value for key, value in given.items() if value is not None}
