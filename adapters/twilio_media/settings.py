"""`settings:` of a Twilio target, and where its agent is."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints

from adapters.dialect import SettingsError
from adapters.greeting import Greeting, GreetingSetting
from adapters.target_settings import HeaderText, StrictSettings, read_address
from transports.transport import Endpoint, is_loopback

MAX_PARAMETER_CHARS: Final = 500
"""Name and value of a custom parameter together (reported for `<Parameter>`, uncertain)."""
_EXAMPLE: Final = "ws://127.0.0.1:8080/media, or wss://agent.example.org/media"

ParameterName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
ParameterValue = Annotated[str, StringConstraints(max_length=MAX_PARAMETER_CHARS)]
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class TwilioSettings(StrictSettings):
    """`settings:` of a target."""

    tools: tuple[ToolName, ...] = Field(default=(), strict=False)
    """Names of the agent's own tools: only items that offer no other are run."""
    tool_calls: dict[str, Any]
    """Where its calls are seen (`adapters.tool_requests`)."""
    greeting: GreetingSetting = Field(default_factory=Greeting)
    end_silence_s: Annotated[float, Field(ge=0.3, le=15, strict=False)] = 3.0
    """So much silence behind what the agent says ends its answer."""
    parameters: dict[ParameterName, ParameterValue] = Field(default_factory=dict, repr=False)
    """Custom parameters of the start message, as `<Parameter>` gives them."""
    dtmf: Annotated[str, StringConstraints(pattern=r"^[0-9*#A-D]{0,32}$")] = ""
    """Keys pressed as the caller begins to speak."""
    auth_token: Annotated[str, StringConstraints(min_length=8, max_length=200)] | None = Field(default=None, repr=False)
    """Write it as `${NAME}`. Signs the connection as Twilio does."""
    headers: dict[HeaderText, HeaderText] = Field(default_factory=dict, repr=False)
    """More headers of the handshake; values are secret."""


def check(settings: TwilioSettings, sees_tools: bool) -> None:
    """Raises SettingsError: what the fields say together cannot be."""
    if sees_tools and not settings.tools:
        raise SettingsError("settings.tools: required, the names of the agent's own tools")
    for name, value in settings.parameters.items():
        if len(name) + len(value) > MAX_PARAMETER_CHARS:
            raise SettingsError(f"settings.parameters.{name}: Twilio takes {MAX_PARAMETER_CHARS} characters in all")


def endpoint_of(base_url: str | None, settings: TwilioSettings) -> Endpoint:
    """The agent's WebSocket server, with Twilio's signature where there is a token.

    Raises:
        SettingsError: no address, one with a query (Twilio drops it), or ws:// to another machine.
    """
    if not base_url:
        raise SettingsError(f"base_url: required, the agent's WebSocket server, e.g. {_EXAMPLE}")
    parts, label = read_address(base_url, ("ws", "wss"), _EXAMPLE)
    if parts.query:
        raise SettingsError("base_url: Twilio drops the query of a stream's address; use settings.parameters")
    if parts.scheme == "ws" and not is_loopback(parts.hostname or ""):
        raise SettingsError("base_url: Twilio connects over wss:// alone (ws:// is for this machine)")
    url = parts._replace(fragment="").geturl()
    headers = dict(settings.headers)
    if settings.auth_token is not None:
        headers["X-Twilio-Signature"] = signature(url, settings.auth_token)
    return Endpoint(url, headers, label)


def signature(url: str, auth_token: str) -> str:
    """`X-Twilio-Signature` of a WebSocket handshake: HMAC-SHA1 of the address, in base64.

    https://www.twilio.com/docs/usage/security (a handshake has no parameters that would be appended).
    """
    return base64.b64encode(hmac.new(auth_token.encode(), url.encode(), hashlib.sha1).digest()).decode()
