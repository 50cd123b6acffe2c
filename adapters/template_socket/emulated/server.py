"""All emulated agents behind one server half: the path that a client asks for says which one it meets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from adapters.server import ChecksHandshake, Denied, Handshake, Reply, ServerDialect, ServerStep
from adapters.template_socket.emulated.deepgram import DeepgramServer
from adapters.template_socket.emulated.elevenlabs import ElevenLabsServer
from adapters.template_socket.emulated.pipecat import PipecatServer
from adapters.template_socket.emulated.plain import PlainServer
from adapters.template_socket.emulated.ultravox import UltravoxServer
from captures.frames import InFrame, OutFrame

PATHS: Final[Mapping[str, Callable[[], ServerDialect]]] = {
    "/": PlainServer,
    "/agent": PlainServer,
    "/v1/convai/conversation": ElevenLabsServer,
    "/v1/agent/converse": DeepgramServer,
    "/ultravox": UltravoxServer,
    "/ws": PipecatServer,
}


class TemplateServer:
    """`ServerDialect` of whichever agent the handshake's path names."""

    def __init__(self) -> None:
        self._agent: ServerDialect = PlainServer()

    def denied(self, handshake: Handshake) -> Denied | None:
        """Choose by path, and ask the chosen one."""
        self._agent = PATHS.get(handshake.path, PlainServer)()
        return self._agent.denied(handshake) if isinstance(self._agent, ChecksHandshake) else None

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """The chosen one's."""
        return self._agent.greeting(query)

    def receive(self, frame: InFrame) -> ServerStep:
        """The chosen one's."""
        return self._agent.receive(frame)

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """The chosen one's."""
        return self._agent.answer(reply)

    def failure(self, code: str, message: str) -> Sequence[OutFrame]:
        """The chosen one's."""
        return self._agent.failure(code, message)
