"""`turn_detection` of a session from a target's turn control; the parameters are those of the vendor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from adapters.dialect import SettingsError, TurnControlSettings, TurnMode
from adapters.foreign_json import JsonObject
from adapters.target_settings import StrictSettings, read_settings


class VoiceActivity(StrictSettings):
    """What all kinds of detection have."""

    create_response: Literal[True] = True
    """Without it nothing would ask for the answer."""
    interrupt_response: bool | None = None


class ServerVad(VoiceActivity):
    """Parameters of turn mode `server_vad`."""

    threshold: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    prefix_padding_ms: Annotated[int, Field(ge=0)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=0)] | None = None
    idle_timeout_ms: int | None = None


class SemanticVad(VoiceActivity):
    """Parameters of turn mode `semantic_vad`."""

    eagerness: Literal["low", "medium", "high", "auto"] | None = None


class NoParameters(StrictSettings):
    """Turn mode `manual` has none."""


def turn_detection(
    turn_control: TurnControlSettings,
    parameters_of: Mapping[TurnMode, type[StrictSettings]],
    names: Mapping[TurnMode, str] | None = None,
) -> JsonObject | None:
    """`turn_detection` of the session; None is manual.

    `parameters_of` has a model for each mode of the vendor; `names` its own word for a mode, where it is another.

    Raises:
        SettingsError: a mode or parameter that the vendor does not have; names the key.
    """
    mode = turn_control.mode
    if mode not in parameters_of:
        raise SettingsError(f"turn_control.mode: {mode} is not one of {', '.join(sorted(parameters_of))}")
    parameters = read_settings(parameters_of[mode], turn_control.parameters, "turn_control")
    if mode is TurnMode.MANUAL:
        return None
    return {"type": (names or _NO_NAMES).get(mode, mode.value), **parameters.model_dump(exclude_none=True)}


_NO_NAMES: Final[Mapping[TurnMode, str]] = {}
