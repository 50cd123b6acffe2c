"""Twilio Media Streams: the rig plays Twilio towards an agent that answers phone calls."""

from __future__ import annotations

from adapters.dialect import ClientDialect, TargetSettings
from adapters.server import ServerDialect
from adapters.twilio_media.client import TwilioClient
from adapters.twilio_media.server import TwilioServer


class TwilioDialect:
    """`DialectInfo` of Twilio Media Streams."""

    name = "twilio_media"
    wire_version = 1
    parser_version = 1
    default_key_env: str | None = None
    sees_tools_elsewhere = True

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session; `settings.model` is for the record.

        Raises:
            SettingsError: unknown or invalid settings, or no address that Twilio could call.
        """
        return TwilioClient(settings)

    def server(self) -> ServerDialect:
        """An agent that speaks and has no tools."""
        return TwilioServer()


DIALECT = TwilioDialect()
