"""A Python class as an agent: the rig socket's messages over loopback TCP, to the process that runs the class."""

from __future__ import annotations

from adapters.dialect import ClientDialect, TargetSettings
from adapters.python_agent.client import PythonAgentClient
from adapters.rig_socket.server import RigSocketServer
from adapters.server import ServerDialect
from captures.clock import Clock
from transports.transport import Transport


class PythonAgentDialect:
    """`DialectInfo` of Python agents. Whoever runs them starts their process (`hosted`)."""

    name = "python_agent"
    wire_version = 1
    parser_version = 1
    default_key_env: str | None = None
    hosted = True

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session.

        Raises:
            SettingsError: unknown or invalid settings.
        """
        return PythonAgentClient(settings)

    def server(self) -> ServerDialect:
        """The rig socket's."""
        return RigSocketServer()

    def transport(self, clock: Clock) -> Transport:
        """One connection to the agent's process."""
        from transports.local_tcp import LocalTcpTransport

        return LocalTcpTransport(clock)


DIALECT = PythonAgentDialect()
