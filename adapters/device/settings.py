"""`settings:` of a device target."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from adapters.dialect import SettingsError
from adapters.greeting import Greeting, GreetingSetting
from adapters.target_settings import StrictSettings

DeviceName = Annotated[str, StringConstraints(min_length=1, max_length=300)]
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class DeviceSettings(StrictSettings):
    """`settings:` of a target."""

    output: DeviceName
    """The caller is played here: name (or a part of it) or number, as `rig device list` has it."""
    input: DeviceName
    """The agent is heard here."""
    loop_input: DeviceName | None = None
    """Where the output itself can be heard, for measuring the pair; default: `input`."""
    rate_hz: Literal[8000, 16000, 24000, 48000] = 48000
    tools: tuple[ToolName, ...] = Field(default=(), strict=False)
    """Names of the agent's own tools: only items that offer no other are run."""
    tool_calls: dict[str, Any]
    """Where its calls are seen (`adapters.tool_requests`)."""
    greeting: GreetingSetting = Field(default_factory=Greeting)
    end_silence_s: Annotated[float, Field(ge=0.3, le=15, strict=False)] = 3.0
    """So much silence behind what the agent says ends its answer."""


def check(settings: DeviceSettings, sees_tools: bool) -> None:
    """Raises SettingsError: what the fields say together cannot be."""
    if sees_tools and not settings.tools:
        raise SettingsError("settings.tools: required, the names of the agent's own tools")
