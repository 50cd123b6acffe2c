"""Gemini's generateContent with inline audio: a whole clip in, a whole answer out, through google-genai."""

from __future__ import annotations

from adapters.dialect import ClientDialect, TargetSettings
from adapters.gemini_file import sdk
from adapters.gemini_file.client import GeminiFileClient
from adapters.gemini_file.sdk import GeminiTransport
from adapters.gemini_file.server import GeminiFileServer
from adapters.server import ServerDialect
from captures.clock import Clock


class GeminiFileDialect:
    """`DialectInfo` of generateContent."""

    name = "gemini_file"
    wire_version = 1
    parser_version = 1
    default_key_env: str | None = "GEMINI_API_KEY"

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session.

        Raises:
            SettingsError: unknown or invalid settings.
        """
        return GeminiFileClient(settings)

    def server(self) -> ServerDialect:
        """A server half for one request."""
        return GeminiFileServer()

    def transport(self, clock: Clock) -> GeminiTransport:
        """The transport of this dialect: requests through the vendor's SDK."""
        return GeminiTransport(clock)

    def preload(self) -> None:
        """Import the SDK, which takes seconds."""
        sdk.preload()


DIALECT = GeminiFileDialect()
