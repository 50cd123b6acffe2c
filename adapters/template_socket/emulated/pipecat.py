"""A Pipecat bot behind its WebSocket transport: protobuf frames of audio and RTVI messages. It runs its tools itself.

Facts: pipecat-ai/pipecat, src/pipecat/frames/frames.proto and processors/frameworks/rtvi/models.py (RTVI 1.4). The
protobuf is written here once more, so that it can disagree with the client's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

import orjson

from adapters.dialect import Setup
from adapters.foreign_json import JsonObject, decode, object_of, text_of
from adapters.server import AnswerWanted, Reply, ServerStep, SetupGiven
from adapters.template_socket.emulated.voice import CallIds, Ears, agent_called, speech_pieces
from captures.frames import InFrame, OutFrame

_RATE_HZ = 16_000
_SPEECH_HZ = 24_000


class PipecatServer:
    """`ServerDialect` of a Pipecat bot for one connection."""

    def __init__(self) -> None:
        self._bot = Setup("", (), _RATE_HZ)
        self._ears = Ears(_RATE_HZ)
        self._calls = CallIds("call_")
        self._ready = False

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """Nothing: the bot waits for `client-ready`."""
        self._bot = agent_called(query.get("bot", ""), _RATE_HZ)
        return ()

    def receive(self, frame: InFrame) -> ServerStep:
        """Read one protobuf frame; like Pipecat's own, a frame that is none is dropped."""
        try:
            (kind, body), *_ = _split(frame.payload) if frame.binary else [(0, b"")]
            parts = dict(_split(body)) if kind and isinstance(body, bytes) else {}
        except (IndexError, ValueError, struct.error):
            return ServerStep()
        if kind == 2 and self._ready and parts.get(4) == _RATE_HZ:
            pcm = parts.get(3, b"")
            edges, wanted = self._ears.hear(pcm if isinstance(pcm, bytes) else b"")
            said = [_rtvi("user-started-speaking" if edge.speaking else "user-stopped-speaking") for edge in edges]
            return ServerStep(said, wanted)
        text = parts.get(1, b"")
        fields = decode(text) if kind == 4 and isinstance(text, bytes) else None
        if fields is None or fields.get("label") != "rtvi-ai" or not isinstance(fields.get("id"), str):
            return ServerStep()
        return self._on_rtvi(fields)

    def _on_rtvi(self, fields: JsonObject) -> ServerStep:
        data = object_of(fields, "data")
        match text_of(fields, "type"):
            case "client-ready" if text_of(object_of(data, "about"), "library"):
                self._ready = True
                ready = _rtvi("bot-ready", {"version": "1.4.0", "about": {"library": "emulator"}}, id=fields["id"])
                return ServerStep([ready], [SetupGiven(self._bot)])
            case "send-text" if self._ready:
                return ServerStep(intents=[AnswerWanted(text_of(data, "content") or "")])
            case "disconnect-bot":
                return ServerStep(close=(1000, ""))
        error = {"error": f"Unsupported type {fields.get('type')}"}
        return ServerStep([_rtvi("error-response", error, id=fields["id"])])

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """The caller's words, calls that the bot makes itself, words and speech."""
        if reply.input_transcript:
            said = {"text": reply.input_transcript, "user_id": "", "timestamp": "", "final": True}
            yield _rtvi("user-transcription", said)
        yield _rtvi("bot-llm-started")
        for call_id, call in self._calls.numbered(reply.calls):
            yield _rtvi("llm-function-call-started", {"function_name": call.name})
            named = {"tool_call_id": call_id, "function_name": call.name}
            yield _rtvi("llm-function-call-in-progress", {**named, "arguments": dict(call.arguments)})
            yield _rtvi("llm-function-call-stopped", {**named, "cancelled": False, "result": "ok"})
        if reply.text:
            yield _rtvi("bot-llm-text", {"text": reply.text})
        yield _rtvi("bot-llm-stopped")
        if reply.text:
            yield _rtvi("bot-tts-started")
            yield _rtvi("bot-started-speaking")
            yield _rtvi("bot-tts-text", {"text": reply.text})
            for piece in speech_pieces(reply, _SPEECH_HZ):
                inner = _bytes(2, b"TTSAudioRawFrame#1") + _bytes(3, piece) + _int(4, _SPEECH_HZ) + _int(5, 1)
                yield OutFrame(_bytes(2, _int(1, 77) + inner), binary=True)
            yield _rtvi("bot-tts-stopped")
            yield _rtvi("bot-stopped-speaking")

    def failure(self, code: str, text: str) -> Sequence[OutFrame]:
        """An RTVI error that stopped the pipeline."""
        return [_rtvi("error", {"error": f"{code}: {text}", "fatal": True})]


def _rtvi(kind: str, data: JsonObject | None = None, **more: object) -> OutFrame:
    fields = {"label": "rtvi-ai", "type": kind, **more} | ({} if data is None else {"data": data})
    return OutFrame(_bytes(4, _bytes(1, orjson.dumps(fields))), binary=True)


def _base128(number: int) -> bytes:
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def _int(field: int, number: int) -> bytes:
    return _base128(field * 8) + _base128(number)


def _bytes(field: int, data: bytes) -> bytes:
    return _base128(field * 8 + 2) + _base128(len(data)) + data


def _split(data: bytes) -> list[tuple[int, int | bytes]]:
    """Fields in order; of the wire types, numbers and bytes. Raises IndexError, ValueError or struct.error."""
    found: list[tuple[int, int | bytes]] = []
    rest = data
    while rest:
        key, rest = _take_number(rest)
        value, rest = _take_number(rest)
        if key % 8 == 2:
            found.append((key // 8, struct.unpack(f"{value}s", rest[:value])[0]))
            rest = rest[value:]
        elif key % 8 == 0:
            found.append((key // 8, value))
        else:
            raise ValueError("a wire type that Pipecat's frames do not have")
    return found


def _take_number(data: bytes) -> tuple[int, bytes]:
    length = next(n for n, byte in enumerate(data[:10] + b"\0", start=1) if byte < 0x80)
    if length > min(len(data), 10):
        raise IndexError("ends within a number")
    return sum((byte & 0x7F) << 7 * n for n, byte in enumerate(data[:length])), data[length:]
