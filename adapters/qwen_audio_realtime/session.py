"""A Qwen-Audio target's settings, and the session object made from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from adapters.dialect import Capabilities, Setup, TurnMode
from adapters.foreign_json import JsonObject
from adapters.openai_family.turn_detection import NoParameters, turn_detection
from adapters.qwen_omni_realtime.endpoint import DashScopeSettings
from adapters.qwen_omni_realtime.session import INPUT_RATE_HZ, MIN_COMMIT_S, OUTPUT_RATE_HZ, shared_fields
from adapters.target_settings import StrictSettings

SMART_TURN: Final = "smart_turn"
"""The vendor's name of detection by meaning."""


class ServerVad(StrictSettings):
    """Parameters of turn mode `server_vad`; `smart_turn` has none."""

    threshold: Annotated[float, Field(ge=-1, le=1, strict=False)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=200, le=6000)] | None = None


class AudioSettings(DashScopeSettings):
    """`settings:` of a target. What is left out is not sent, so that the vendor's default holds."""

    voice: str | None = None
    modalities: Literal["audio", "text"] = "audio"
    """Speech (with its transcript), or text alone."""
    enable_speech_emotion: bool | None = None
    max_history_turns: Annotated[int, Field(ge=1, le=50)] | None = None


_SENT_AS_GIVEN: Final = ("voice", "enable_speech_emotion", "max_history_turns")
TURN_PARAMETERS: Final[Mapping[TurnMode, type[StrictSettings]]] = {
    TurnMode.MANUAL: NoParameters,
    TurnMode.SERVER_VAD: ServerVad,
    TurnMode.SEMANTIC_VAD: NoParameters,
}
CAPABILITIES: Final = Capabilities(
    text_twin=True,
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
    "turn_detection": ("turn_detection",),
    **{name: (name,) for name in _SENT_AS_GIVEN},
}
"""Where a confirmed session states what; see `ClientProfile.places`."""


def audio_session(settings: AudioSettings, setup: Setup) -> JsonObject:
    """`session` of `session.update`.

    Raises:
        SettingsError: turn control that the API does not have.
    """
    session = shared_fields(settings.modalities, setup)
    session["turn_detection"] = turn_detection(setup.turn_control, TURN_PARAMETERS, {TurnMode.SEMANTIC_VAD: SMART_TURN})
    given = settings.model_dump(include=set(_SENT_AS_GIVEN), exclude_none=True)
    return session | {name: given[name] for name in _SENT_AS_GIVEN if name in given}
