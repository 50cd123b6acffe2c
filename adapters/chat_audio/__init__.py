"""File mode over OpenAI's chat.completions with `input_audio`: the core of that family, and any server of its shape.

Members are folders of their own that declare what they change (`adapters.chat_audio.profile`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adapters.chat_audio import client, sdk, server
from adapters.chat_audio.client import ChatAudioClient
from adapters.chat_audio.profile import ClientProfile, ServerProfile
from adapters.chat_audio.sdk import SdkTransport
from adapters.chat_audio.server import ChatAudioServer
from adapters.dialect import ClientDialect, TargetSettings
from adapters.server import ServerDialect
from captures.clock import Clock


@dataclass(frozen=True, slots=True)
class ChatDialect:
    """`DialectInfo` of a member of the family."""

    name: str
    default_key_env: str | None
    client_profile: ClientProfile[Any]
    server_profile: ServerProfile
    wire_version: int = 1
    parser_version: int = 2

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session.

        Raises:
            SettingsError: unknown or invalid settings.
        """
        return ChatAudioClient(settings, self.client_profile)

    def server(self) -> ServerDialect:
        """A server half for one request."""
        return ChatAudioServer(self.server_profile)

    def transport(self, clock: Clock) -> SdkTransport:
        """The transport of this dialect: requests through the OpenAI SDK instead of a WebSocket."""
        return SdkTransport(clock)

    def preload(self) -> None:
        """Import the SDK, which takes most of a second."""
        sdk.preload()


DIALECT = ChatDialect("chat_audio", "OPENAI_API_KEY", client.ANY_SERVER, server.ANY_SERVER)
