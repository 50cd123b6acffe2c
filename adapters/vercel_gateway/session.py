"""A target's settings for the gateway, and the `config` made from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field

from adapters.dialect import Capabilities, Setup, TurnMode
from adapters.foreign_json import JsonObject
from adapters.openai_family.ga import CAPABILITIES, PCM_FORMAT, TURN_PARAMETERS
from adapters.openai_family.profile import FamilySettings, flat_tool
from adapters.openai_family.turn_detection import turn_detection

TURN_NAMES: Final[Mapping[TurnMode, str]] = {
    TurnMode.SERVER_VAD: "server-vad",
    TurnMode.SEMANTIC_VAD: "semantic-vad",
}
PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("model",),
    "reasoning": ("reasoning",),
    "turn_detection_inner": ("audio", "input", "turn_detection"),
    "turn_detection_outer": ("turn_detection",),
    "voice_inner": ("audio", "output", "voice"),
    "voice_outer": ("voice",),
}
"""OpenAI states these inside `audio`, xAI outside; the two are not compared with what was sent, since the gateway
rewrites it."""


class GatewaySettings(FamilySettings):
    """`settings:` of a target. What is left out is not sent, so that the vendor's default holds."""

    transcription: bool = False
    """The vendor's transcript of the caller."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """What the model does not have is refused as the session is set up."""
    provider_options: dict[str, Any] = Field(default_factory=dict)
    """Merged by the gateway into the vendor's own session, e.g. `{voice: eve}` for xAI."""


def capabilities(settings: GatewaySettings) -> Capabilities:
    """Those of OpenAI; xAI refuses `semantic_vad` itself."""
    return CAPABILITIES


def gateway_config(settings: GatewaySettings, setup: Setup) -> JsonObject:
    """`config` of `session-update`.

    Raises:
        SettingsError: turn control that the gateway does not have.
    """
    detection = turn_detection(setup.turn_control, TURN_PARAMETERS, TURN_NAMES)
    options = dict(settings.provider_options)
    if settings.reasoning_effort is not None:
        options["reasoning"] = {"effort": settings.reasoning_effort}
    config: JsonObject = {
        "instructions": setup.instructions,
        "outputModalities": ["audio"],
        "inputAudioFormat": PCM_FORMAT,
        "outputAudioFormat": PCM_FORMAT,
        "turnDetection": {"type": "disabled"} if detection is None else _camel_case(detection),
        "tools": [flat_tool(tool) for tool in setup.tools],
    }
    if settings.transcription:
        config["inputAudioTranscription"] = {}
    if options:
        config["providerOptions"] = options
    return config


def _camel_case(detection: JsonObject) -> JsonObject:
    """Parameters as the AI SDK writes them; `create_response` is its default and has no name there."""
    named = {}
    for key, value in detection.items():
        first, *rest = key.split("_")
        named[first + "".join(part.capitalize() for part in rest)] = value
    named.pop("createResponse", None)
    return named
