"""A Qwen-Omni target's settings, and the session object made from them: flat fields, nested tools.

Never sent: `tool_choice`, `parallel_tool_calls` and `prefix_padding_ms`, which are refused or ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from adapters.dialect import Capabilities, SettingsError, Setup, TargetSettings, TurnMode
from adapters.foreign_json import JsonObject
from adapters.openai_family.profile import nested_tool
from adapters.openai_family.turn_detection import NoParameters, VoiceActivity, turn_detection
from adapters.qwen_omni_realtime.endpoint import DashScopeSettings
from adapters.target_settings import StrictSettings

INPUT_RATE_HZ: Final = 16_000
OUTPUT_RATE_HZ: Final = 24_000
MIN_COMMIT_S: Final = 0.1
"""Padded to by us; the vendor states no shortest commit."""
SILENT_MODELS: Final = ("qwen3-omni-flash-realtime",)
"""Beginnings of the names of models that accept tools and never call one (sierra-research/tau2-bench#449)."""
OLD_VOICES: Final = frozenset({"Cherry", "Ethan", "Chelsie"})
"""3.8 accepts them as a setting and fails when it should speak."""

Number = Annotated[float, Field(strict=False)]


class Vad(VoiceActivity):
    """Parameters of both kinds of detection."""

    threshold: Annotated[float, Field(ge=-1, le=1, strict=False)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=200, le=6000)] | None = None
    idle_timeout_ms: Annotated[int, Field(ge=0)] | None = None


class OmniSettings(DashScopeSettings):
    """`settings:` of a target. What is left out is not sent, so that the vendor's default holds."""

    voice: str | None = None
    modalities: Literal["audio", "text"] = "audio"
    """Speech (with its transcript), or text alone: the API has no speech without text."""
    transcription_model: str | None = None
    """The vendor's transcript of the caller, e.g. `qwen3-asr-flash-realtime`."""
    temperature: Number | None = None
    top_p: Number | None = None
    top_k: int | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    presence_penalty: Number | None = None
    repetition_penalty: Number | None = None
    seed: int | None = None
    smooth_output: bool | None = None


_SENT_AS_GIVEN: Final = (
    "voice",
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "presence_penalty",
    "repetition_penalty",
    "seed",
    "smooth_output",
)
TURN_PARAMETERS: Final[Mapping[TurnMode, type[StrictSettings]]] = {
    TurnMode.MANUAL: NoParameters,
    TurnMode.SERVER_VAD: Vad,
    TurnMode.SEMANTIC_VAD: Vad,
}
CAPABILITIES: Final = Capabilities(
    text_twin=False,
    probe=True,
    turn_modes=frozenset(TURN_PARAMETERS),
    input_rates_hz=(INPUT_RATE_HZ,),
    output_rate_hz=OUTPUT_RATE_HZ,
    min_commit_s=MIN_COMMIT_S,
)
PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("model",),
    "modalities": ("modalities",),
    "input_format": ("input_audio_format",),
    "output_format": ("output_audio_format",),
    "audio": ("audio",),
    "transcription": ("input_audio_transcription",),
    "turn_detection": ("turn_detection",),
    **{name: (name,) for name in _SENT_AS_GIVEN},
}
"""Where a confirmed session states what; see `ClientProfile.places`."""


def shared_fields(modalities: Literal["audio", "text"], setup: Setup) -> JsonObject:
    """What Qwen-Omni and Qwen-Audio have in common."""
    session: JsonObject = {
        "modalities": ["text", "audio"] if modalities == "audio" else ["text"],
        "instructions": setup.instructions,
        "input_audio_format": "pcm",
        "output_audio_format": "pcm",
    }
    if setup.tools:
        session["tools"] = [nested_tool(tool) for tool in setup.tools]
    return session


def omni_session(settings: OmniSettings, setup: Setup) -> JsonObject:
    """`session` of `session.update`.

    Raises:
        SettingsError: turn control that the API does not have.
    """
    session = shared_fields(settings.modalities, setup)
    session["turn_detection"] = turn_detection(setup.turn_control, TURN_PARAMETERS)
    if settings.transcription_model is not None:
        session["input_audio_transcription"] = {"model": settings.transcription_model}
    given = settings.model_dump(include=set(_SENT_AS_GIVEN), exclude_none=True)
    return session | {name: given[name] for name in _SENT_AS_GIVEN if name in given}


def check(target: TargetSettings, settings: OmniSettings, setup: Setup) -> None:
    """What a target is known to fail at, said before anything is spent.

    Raises:
        SettingsError: tools for a model that never calls one, or a voice that its model cannot speak with.
    """
    if setup.tools and target.model.startswith(SILENT_MODELS):
        raise SettingsError(
            f"model: {target.model} accepts tools and never calls one; use a qwen3.5-omni or qwen3.8-omni model"
        )
    if target.model.startswith("qwen3.8-") and settings.voice in OLD_VOICES:
        raise SettingsError(
            f"settings.voice: {target.model} cannot speak as {settings.voice}; use Tina, Serena or Maia"
        )
