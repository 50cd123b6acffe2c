"""Ultravox over its server WebSocket: the call, made beforehand, holds prompt and tools; states tell who speaks.

Facts: docs.ultravox.ai (apps/websockets, apps/datamessages).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from adapters.dialect import Setup
from adapters.foreign_json import JsonObject, decode, text_of
from adapters.server import AnswerWanted, Intent, Reply, ServerStep, SetupGiven, ToolResultGiven
from adapters.template_socket.emulated.voice import CallIds, Ears, agent_called, message, speech_pieces
from captures.frames import InFrame, OutFrame

_RATE_HZ = 16_000


class UltravoxServer:
    """`ServerDialect` of an Ultravox call for one connection."""

    def __init__(self) -> None:
        self._call = Setup("", (), _RATE_HZ)
        self._given = False
        self._ears = Ears(_RATE_HZ)
        self._calls = CallIds("inv-")
        self._ordinal = 0

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """`call_started`, then the first state."""
        self._call = agent_called(query.get("call", ""), _RATE_HZ)
        return [message({"type": "call_started", "callId": "call-1"}), _state("listening")]

    def receive(self, frame: InFrame) -> ServerStep:
        """Read one client message."""
        first: list[Intent] = [] if self._given else [SetupGiven(self._call)]
        self._given = True
        if frame.binary:
            if len(frame.payload) % 2:
                return ServerStep(close=(1003, "half a sample"))
            _, wanted = self._ears.hear(frame.payload)
            return ServerStep([_state("thinking")] if len(wanted) > 1 else [], first + wanted)
        fields = decode(frame.payload)
        match None if fields is None else text_of(fields, "type"):
            case "user_text_message":
                assert fields is not None
                text = text_of(fields, "text") or ""
                # The vendor gives text back as if it had been heard.
                return ServerStep(
                    [self._transcript("user", text, "text"), _state("thinking")], [*first, AnswerWanted(text)]
                )
            case "client_tool_result":
                assert fields is not None
                return self._on_result(fields, first)
            case "ping":
                return ServerStep([message({"type": "pong"})], first)
            case "hang_up":
                return ServerStep(close=(1000, ""))
        return ServerStep(intents=first)

    def _on_result(self, fields: JsonObject, first: list[Intent]) -> ServerStep:
        call_id, output = text_of(fields, "invocationId"), text_of(fields, "result")
        if not self._calls.answered(call_id) or call_id is None or output is None:
            return ServerStep(close=(1003, "no such invocation"))
        given = ToolResultGiven(call_id, output)
        return ServerStep(intents=[*first, given] if self._calls.any_open else [*first, given, AnswerWanted()])

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """Transcript of the caller, invocations, or speech with its transcript and back to listening."""
        if reply.input_transcript:
            yield self._transcript("user", reply.input_transcript, "voice")
        for call_id, call in self._calls.numbered(reply.calls):
            body = {"toolName": call.name, "invocationId": call_id, "parameters": dict(call.arguments)}
            yield message({"type": "client_tool_invocation", **body})
        if self._calls.any_open and not reply.text:
            return
        yield _state("speaking")
        self._ordinal += 1
        words = reply.text.split(" ")
        common = {"type": "transcript", "role": "agent", "medium": "voice", "ordinal": self._ordinal}
        for number, word in enumerate(words if reply.text else ()):
            yield message({**common, "delta": word if number == 0 else f" {word}", "final": False})
        for piece in speech_pieces(reply, _RATE_HZ):
            yield OutFrame(piece, binary=True)
        yield message({**common, "text": reply.text, "final": True})
        yield _state("listening")

    def failure(self, code: str, text: str) -> Sequence[OutFrame]:
        """There is no event of an error; the agent falls silent."""
        return [_state("idle")]

    def _transcript(self, role: str, text: str, medium: str) -> OutFrame:
        self._ordinal += 1
        body = {"role": role, "medium": medium, "text": text, "final": True, "ordinal": self._ordinal}
        return message({"type": "transcript", **body})


def _state(state: str) -> OutFrame:
    return message({"type": "state", "state": state})
