"""Cascades: any transcriber, then any text model that chooses the tool; with a tagger, one that can hear a little.

The rungs (`rung: words | verbatim | tags`) are what the text model is told. Stages that hear are endpoints made for it
(`/audio/transcriptions`, `/audio/tags`) or file-mode adapters that are asked to write down what they hear.
"""

from __future__ import annotations

from adapters.cascade.client import CascadeClient
from adapters.cascade.server import CascadeServer
from adapters.cascade.transport import CascadeTransport
from adapters.chat_audio import sdk
from adapters.dialect import ClientDialect, TargetSettings
from adapters.server import ServerDialect
from captures.clock import Clock


class CascadeDialect:
    """`DialectInfo` of cascades."""

    name = "cascade"
    wire_version = 1
    parser_version = 1
    default_key_env: str | None = "OPENAI_API_KEY"

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session.

        Raises:
            SettingsError: unknown or invalid settings.
        """
        return CascadeClient(settings)

    def server(self) -> ServerDialect:
        """A server half for one request."""
        return CascadeServer()

    def transport(self, clock: Clock) -> CascadeTransport:
        """The transport of this dialect: one of each stage's own."""
        return CascadeTransport(clock)

    def preload(self) -> None:
        """Import the SDK that forms and chat completions use; a stage of another dialect imports its own when asked."""
        sdk.preload()


DIALECT = CascadeDialect()
