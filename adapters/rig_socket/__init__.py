"""The rig socket: our own WebSocket contract, for agents that speak no vendor's (docs/bring-your-own-agent.md)."""

from __future__ import annotations

from adapters.dialect import ClientDialect, TargetSettings
from adapters.rig_socket.client import RigSocketClient
from adapters.rig_socket.server import RigSocketServer
from adapters.server import ServerDialect


class RigSocketDialect:
    """`DialectInfo` of the rig socket."""

    name = "rig_socket"
    wire_version = 1
    parser_version = 2
    default_key_env: str | None = None

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session; `settings.model` may be anything.

        Raises:
            SettingsError: unknown or invalid settings, or no `base_url`.
        """
        return RigSocketClient(settings)

    def server(self) -> ServerDialect:
        """A server half for one connection."""
        return RigSocketServer()


DIALECT = RigSocketDialect()
