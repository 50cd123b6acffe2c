"""Client half for Python agents: the rig socket's, with what the class declared and an address that is never shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field

from adapters.dialect import SettingsError, TargetSettings, TurnMode
from adapters.rig_socket.client import RigSocketClient
from adapters.target_settings import StrictSettings, read_settings
from transports.transport import Endpoint

_NOT_STARTED: Final = "tcp://127.0.0.1:1/"


class DeclaredCapabilities(StrictSettings):
    """What the class says it can do."""

    text: bool = True
    probe: bool = True
    takes_setup: bool = True


class PythonAgentSettings(StrictSettings):
    """`settings:` of a target."""

    driver: Annotated[str, Field(pattern=r"^.+:[A-Za-z_][A-Za-z0-9_]*$")]
    """`module:Class`, or `file.py:Class` relative to the config's folder."""
    python: str | None = None
    """Interpreter to run it with; default: the rig's own."""
    arguments: dict[str, str] = Field(default_factory=dict)
    """Keyword arguments for the class."""
    input_rate_hz: Literal[8000, 16000, 24000, 48000] = 24000
    """Rate of the caller audio that the agent is given."""
    declared: dict[str, Any] = Field(default_factory=dict)
    """Filled in by the rig from the class itself."""


class PythonAgentClient(RigSocketClient):
    """`ClientDialect` of a Python agent for one session."""

    def __init__(self, target: TargetSettings) -> None:
        """Raises `SettingsError`."""
        settings = read_settings(PythonAgentSettings, target.extra)
        address = target.base_url or _NOT_STARTED
        parts = urlsplit(address)
        if parts.scheme != "tcp" or parts.hostname != "127.0.0.1":
            raise SettingsError("base_url: none is needed; the rig starts the agent itself")
        inner = {"input_rate_hz": settings.input_rate_hz}
        super().__init__(TargetSettings(target.model, f"ws://127.0.0.1:{parts.port}/", None, inner))
        can = read_settings(DeclaredCapabilities, settings.declared.get("capabilities", {}))
        self.capabilities = replace(
            self.capabilities,
            text_twin=can.text,
            probe=can.probe,
            takes_setup=can.takes_setup,
            turn_modes=frozenset({TurnMode.MANUAL}),
        )
        self._address = Endpoint(address, {}, f"python:{settings.driver}")

    def endpoint(self) -> Endpoint:
        """The process's address; its token is in no label."""
        return self._address
