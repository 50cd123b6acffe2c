"""File mode over OpenAI's chat.completions with `input_audio`, and whatever else serves that request."""

from __future__ import annotations

from adapters.chat_audio import sdk
from adapters.chat_audio.client import ChatAudioClient
from adapters.chat_audio.sdk import SdkTransport
from adapters.chat_audio.server import ChatAudioServer
from adapters.dialect import ClientDialect, TargetSettings
from adapters.server import ServerDialect
from captures.clock import Clock


class ChatAudioDialect:
    """`DialectInfo` of file mode over chat.completions."""

    name = "chat_audio"
    wire_version = 1
    parser_version = 1
    default_key_env: str | None = "OPENAI_API_KEY"

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session.

        Raises:
            SettingsError: unknown or invalid settings.
        """
        return ChatAudioClient(settings)

    def server(self) -> ServerDialect:
        """A server half for one request."""
        return ChatAudioServer()

    def transport(self, clock: Clock) -> SdkTransport:
        """The transport of this dialect: requests through the vendor's SDK instead of a WebSocket."""
        return SdkTransport(clock)

    def preload(self) -> None:
        """Import the SDK, which takes most of a second."""
        sdk.preload()


DIALECT = ChatAudioDialect()
