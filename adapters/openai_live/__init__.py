"""OpenAI Live (gpt-live-1): full duplex over WebSocket, its tool calls made by a Responses backend."""

from __future__ import annotations

from adapters.dialect import ClientDialect, TargetSettings
from adapters.openai_live.client import LiveClient
from adapters.openai_live.server import LiveServer
from adapters.server import ServerDialect


class LiveDialect:
    """`DialectInfo` of OpenAI Live."""

    name = "openai_live"
    wire_version = 1
    parser_version = 1
    default_key_env: str | None = "OPENAI_API_KEY"

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session.

        Raises:
            SettingsError: unknown, missing or invalid settings.
        """
        return LiveClient(settings)

    def server(self) -> ServerDialect:
        """A server half for one connection."""
        return LiveServer()


DIALECT = LiveDialect()
