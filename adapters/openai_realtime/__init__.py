"""OpenAI Realtime (GA shape) over WebSocket; the core that its look-alikes share."""

from __future__ import annotations

from adapters.dialect import ClientDialect, TargetSettings
from adapters.openai_realtime.client import RealtimeClient
from adapters.openai_realtime.server import RealtimeServer
from adapters.openai_realtime.wire import OPENAI, Profile
from adapters.server import ServerDialect


class RealtimeDialect:
    """`DialectInfo` of one profile of the family."""

    wire_version = 1
    parser_version = 1

    def __init__(self, profile: Profile, default_key_env: str | None) -> None:
        self.name = profile.name
        self.default_key_env = default_key_env
        self._profile = profile

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session.

        Raises:
            SettingsError: unknown or invalid settings.
        """
        return RealtimeClient(self._profile, settings)

    def server(self) -> ServerDialect:
        """A server half for one connection."""
        return RealtimeServer()


DIALECT = RealtimeDialect(OPENAI, "OPENAI_API_KEY")
