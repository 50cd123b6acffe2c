"""Gemini Live (BidiGenerateContent) over WebSocket."""

from __future__ import annotations

from adapters.dialect import ClientDialect, TargetSettings
from adapters.gemini_live.client import GeminiLiveClient
from adapters.gemini_live.server import GeminiLiveServer
from adapters.server import ServerDialect


class GeminiLiveDialect:
    """`DialectInfo` of Gemini Live."""

    name = "gemini_live"
    wire_version = 1
    parser_version = 1
    default_key_env = "GEMINI_API_KEY"

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session.

        Raises:
            SettingsError: unknown or invalid settings.
        """
        return GeminiLiveClient(settings)

    def server(self) -> ServerDialect:
        """A server half for one connection."""
        return GeminiLiveServer()


DIALECT = GeminiLiveDialect()
