"""A target's settings for xAI, and the session made from them: voice and turn detection at the top level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from adapters.dialect import Capabilities, Setup, TurnMode
from adapters.foreign_json import JsonObject
from adapters.openai_family.profile import FamilySettings, flat_tool
from adapters.openai_family.turn_detection import NoParameters, turn_detection
from adapters.target_settings import StrictSettings

RATES_HZ: Final = (24_000, 16_000, 8_000, 22_050, 32_000, 44_100, 48_000)
"""PCM rates of the API; 24 kHz is its default out, and so preferred in."""
CONFIRM_GRACE_S: Final = 3.0
"""Sources differ on whether `session.updated` comes at all."""


class XaiTranscription(StrictSettings):
    """The vendor's transcript of the caller."""

    model: str = "grok-transcribe"
    language_hint: str | None = None
    keyterms: Annotated[list[str], Field(max_length=100)] | None = None


class XaiServerVad(StrictSettings):
    """Parameters of turn mode `server_vad`; there is no `semantic_vad`."""

    threshold: Annotated[float, Field(ge=0.1, le=0.9, strict=False)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=0)] | None = None
    prefix_padding_ms: Annotated[int, Field(ge=0)] | None = None
    idle_timeout_ms: int | None = None


class XaiSettings(FamilySettings):
    """`settings:` of a target. What is left out is not sent, so that the vendor's default holds."""

    voice: str | None = None
    transcription: XaiTranscription | None = None
    reasoning_effort: Literal["none", "low", "medium", "high"] | None = None
    """`none` and `high` (the default) are documented; the steps between are reported."""
    speed: Annotated[float, Field(ge=0.7, le=1.5, strict=False)] | None = None
    output_rate_hz: Literal[8000, 16000, 22050, 24000, 32000, 44100, 48000] = 24_000
    manual_as: Literal["type_null", "null"] = "type_null"
    """How manual turns are asked for: `{"type": null}`, as documented, or a bare null."""


TURN_PARAMETERS: Final[Mapping[TurnMode, type[StrictSettings]]] = {
    TurnMode.MANUAL: NoParameters,
    TurnMode.SERVER_VAD: XaiServerVad,
}
PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("model",),
    "voice": ("voice",),
    "turn_detection": ("turn_detection",),
    "reasoning": ("reasoning",),
    "input_format": ("audio", "input", "format"),
    "transcription": ("audio", "input", "transcription"),
    "output_format": ("audio", "output", "format"),
    "speed": ("audio", "output", "speed"),
}


def capabilities(settings: XaiSettings) -> Capabilities:
    """The rate out is the target's choice."""
    return Capabilities(
        text_twin=True,
        probe=True,
        turn_modes=frozenset(TURN_PARAMETERS),
        input_rates_hz=RATES_HZ,
        output_rate_hz=settings.output_rate_hz,
        min_commit_s=0.1,
        ready_grace_s=CONFIRM_GRACE_S,
    )


def xai_session(settings: XaiSettings, setup: Setup) -> JsonObject:
    """`session` of `session.update`.

    Raises:
        SettingsError: turn control that the API does not have.
    """
    detection = turn_detection(setup.turn_control, TURN_PARAMETERS)
    if detection is None and settings.manual_as == "type_null":
        detection = {"type": None}
    caller: JsonObject = {"format": {"type": "audio/pcm", "rate": setup.input_rate_hz}}
    if settings.transcription is not None:
        caller["transcription"] = settings.transcription.model_dump(exclude_none=True)
    agent: JsonObject = {"format": {"type": "audio/pcm", "rate": settings.output_rate_hz}}
    if settings.speed is not None:
        agent["speed"] = settings.speed
    session: JsonObject = {
        "instructions": setup.instructions,
        "turn_detection": detection,
        "tools": [flat_tool(tool) for tool in setup.tools],
        "audio": {"input": caller, "output": agent},
    }
    if settings.voice is not None:
        session["voice"] = settings.voice
    if settings.reasoning_effort is not None:
        session["reasoning"] = {"effort": settings.reasoning_effort}
    return session
