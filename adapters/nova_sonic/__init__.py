"""Amazon Nova Sonic over Bedrock's bidirectional stream, or its JSON events over a WebSocket (loopback emulator)."""

from __future__ import annotations

from adapters.dialect import ClientDialect, TargetSettings
from adapters.nova_sonic.client import NovaClient
from adapters.nova_sonic.server import NovaServer
from adapters.server import ServerDialect
from captures.clock import Clock
from transports.transport import Transport


class NovaDialect:
    """`DialectInfo` of Nova Sonic; its stream is a transport of its own."""

    name = "nova_sonic"
    wire_version = 1
    parser_version = 1
    default_key_env: str | None = "AWS_SECRET_ACCESS_KEY"

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session.

        Raises:
            SettingsError: unknown or invalid settings.
        """
        return NovaClient(settings)

    def server(self) -> ServerDialect:
        """A server half for one connection."""
        return NovaServer()

    def transport(self, clock: Clock) -> Transport:
        """One connection: Bedrock's stream, or a WebSocket where the address says so."""
        from adapters.nova_sonic.sdk import NovaTransport

        return NovaTransport(clock)


DIALECT = NovaDialect()
