"""The agent of the template `plain_json`: a small protocol of JSON and base64, the caller's turn committed."""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Mapping, Sequence

from adapters.dialect import Setup
from adapters.foreign_json import JsonObject, decode, int_of, list_of, text_of
from adapters.server import AnswerCancelled, AnswerWanted, AudioGiven, Reply, ServerStep, SetupGiven, ToolResultGiven
from adapters.template_socket.emulated.voice import CallIds, message, speech_pieces, tools_in
from captures.frames import InFrame, OutFrame

_SPEECH_HZ = 16_000


class PlainServer:
    """`ServerDialect` of the plain protocol for one connection."""

    def __init__(self) -> None:
        self._rate_hz = 0
        self._calls = CallIds("c")

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """Nothing: the client speaks first."""
        return ()

    def receive(self, frame: InFrame) -> ServerStep:
        """Read one client message."""
        fields = decode(frame.payload)
        kind = None if fields is None else text_of(fields, "type")
        if fields is None or kind is None:
            return _failed("a message is a JSON object with a type")
        if kind == "start":
            return self._on_start(fields)
        if not self._rate_hz:
            return _failed(f"{kind} before start")
        match kind:
            case "audio":
                return self._on_audio(fields)
            case "end_of_speech":
                return ServerStep(intents=[AnswerWanted()])
            case "say":
                return ServerStep(intents=[AnswerWanted(text_of(fields, "text") or "")])
            case "tool_output":
                return self._on_output(fields)
            case "quiet":
                return ServerStep(intents=[AnswerCancelled()])
            case "stop":
                return ServerStep(close=(1000, ""))
        return _failed(f"no message {kind}")

    def _on_start(self, fields: JsonObject) -> ServerStep:
        rate_hz = int_of(fields, "rate")
        if rate_hz not in (8_000, 16_000, 24_000):
            return _failed("rate must be 8000, 16000 or 24000")
        self._rate_hz = rate_hz
        setup = Setup(text_of(fields, "prompt") or "", tools_in(list_of(fields, "tools")), rate_hz)
        return ServerStep([message({"type": "started", "session": "s-1"})], [SetupGiven(setup)])

    def _on_audio(self, fields: JsonObject) -> ServerStep:
        try:
            pcm = binascii.a2b_base64(text_of(fields, "data") or "", strict_mode=True)
        except ValueError:
            return _failed("data is not base64")
        return ServerStep(intents=[AudioGiven(pcm, self._rate_hz)])

    def _on_output(self, fields: JsonObject) -> ServerStep:
        call_id, output = text_of(fields, "id"), text_of(fields, "output")
        if not self._calls.answered(call_id) or call_id is None or output is None:
            return _failed("tool_output needs the id of an open call, and its output")
        given = ToolResultGiven(call_id, output)
        return ServerStep(intents=[given] if self._calls.any_open else [given, AnswerWanted()])

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """Caller's words, calls, words and speech, done."""
        if reply.input_transcript:
            yield message({"type": "heard", "text": reply.input_transcript})
        for call_id, call in self._calls.numbered(reply.calls):
            yield message({"type": "call", "id": call_id, "tool": call.name, "args": dict(call.arguments)})
        if reply.text:
            yield message({"type": "words", "text": reply.text, "spoken": bool(reply.pcm)})
        for piece in speech_pieces(reply, _SPEECH_HZ):
            yield message({"type": "speech", "data": binascii.b2a_base64(piece, newline=False).decode()})
        yield message({"type": "done"})

    def failure(self, code: str, message_text: str) -> Sequence[OutFrame]:
        """`failed`."""
        return [message({"type": "failed", "code": code, "reason": message_text})]


def _failed(reason: str) -> ServerStep:
    return ServerStep([message({"type": "failed", "code": "bad_message", "reason": reason})])
