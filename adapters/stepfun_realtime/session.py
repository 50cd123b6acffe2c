"""A StepFun target's settings, and the session object made from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field

from adapters.dialect import Capabilities, SettingsError, Setup, TargetSettings, TurnMode
from adapters.foreign_json import JsonObject
from adapters.openai_family.profile import FamilySettings, nested_tool, session_url
from adapters.openai_family.turn_detection import NoParameters, turn_detection
from adapters.target_settings import StrictSettings

RATE_HZ: Final = 24_000
"""Both ways, as the vendor's console has it; the API page names no rate."""
MIN_COMMIT_S: Final = 0.1
"""Padded to by us; the vendor refuses an empty commit and states no shortest one."""
BUILT_IN_TOOL: Final = "web_search"


class ServerVad(StrictSettings):
    """Parameters of turn mode `server_vad`. The vendor's own 100 ms of silence cut sentences short."""

    prefix_padding_ms: Annotated[int, Field(ge=0)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=0)] | None = None
    energy_awakeness_threshold: Annotated[int, Field(ge=0, le=5000)] | None = None


class StepSettings(FamilySettings):
    """`settings:` of a target. What is left out is not sent, so that the vendor's default holds."""

    voice: str | None = None
    """Not changeable later; which one holds by default is not documented."""


TURN_PARAMETERS: Final[Mapping[TurnMode, type[StrictSettings]]] = {
    TurnMode.MANUAL: NoParameters,
    TurnMode.SERVER_VAD: ServerVad,
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
    "modalities": ("modalities",),
    "voice": ("voice",),
    "input_format": ("input_audio_format",),
    "output_format": ("output_audio_format",),
    "turn_detection": ("turn_detection",),
    "max_output_tokens": ("max_response_output_tokens",),
}
"""Where a confirmed session states what; see `ClientProfile.places`."""


def address(target: TargetSettings, settings: StepSettings) -> tuple[str, str]:
    """`base_url`, else the host in China.

    Raises:
        SettingsError: not an address, or no model: the handshake would be refused.
    """
    if not target.model:
        raise SettingsError("model: StepFun needs one, e.g. stepaudio-2.5-realtime")
    return session_url(target.base_url or "wss://api.stepfun.com/v1/realtime", {"model": target.model})


def step_session(settings: StepSettings, setup: Setup) -> JsonObject:
    """`session` of `session.update`; detection is off unless it is given.

    Raises:
        SettingsError: turn control that the API does not have.
    """
    session: JsonObject = {
        "modalities": ["text", "audio"],
        "instructions": setup.instructions,
        "input_audio_format": "pcm16",
        "output_audio_format": "pcm16",
    }
    if (detection := turn_detection(setup.turn_control, TURN_PARAMETERS)) is not None:
        session["turn_detection"] = detection
    if setup.tools:
        session["tools"] = [nested_tool(tool) for tool in setup.tools]
    if settings.voice is not None:
        session["voice"] = settings.voice
    return session


def check(target: TargetSettings, settings: StepSettings, setup: Setup) -> None:
    """A tool of the built-in search's name is taken for it (QwenAudio/qwen-audio-agent, `voice-frontends/stepfun.md`).

    Raises:
        SettingsError: such a tool.
    """
    if any(tool.name == BUILT_IN_TOOL for tool in setup.tools):
        raise SettingsError(f"tool {BUILT_IN_TOOL}: StepFun has a built-in tool of that name; rename it in the bank")
