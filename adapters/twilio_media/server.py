"""Server half of Twilio Media Streams: an agent that speaks and has no tools. Sans-I/O.

Turns end by level. A phone stream carries neither prompt nor tools, so this emulated agent can only answer in words.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Mapping, Sequence

import orjson

from adapters.dialect import Setup
from adapters.foreign_json import JsonObject, decode, object_of, text_of
from adapters.server import AnswerWanted, AudioGiven, Intent, Reply, ServerStep, SetupGiven
from adapters.template_socket.emulated.voice import Ears, speech_pieces
from adapters.template_socket.sound import from_base64
from adapters.twilio_media import wire
from captures.frames import InFrame, OutFrame


class TwilioServer:
    """`ServerDialect` of an agent behind Twilio for one connection."""

    def __init__(self) -> None:
        self._stream = ""
        self._ears = Ears(wire.RATE_HZ)
        self._answers = 0

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """Nothing: it waits for the caller."""
        return ()

    def receive(self, frame: InFrame) -> ServerStep:
        """Read one message of Twilio's; what is none is passed over, as agents do."""
        fields = None if frame.binary else decode(frame.payload)
        match text_of(fields or {}, "event"):
            case "start":
                self._stream = text_of(fields or {}, "streamSid") or ""
                return ServerStep(intents=[SetupGiven(Setup("", (), wire.RATE_HZ))])
            case "media":
                return ServerStep(intents=self._hear(fields or {}))
            case "stop":
                return ServerStep(close=(1000, ""))
        return ServerStep()

    def _hear(self, fields: JsonObject) -> Sequence[Intent]:
        payload = text_of(object_of(fields, "media"), "payload")
        coded = from_base64(payload) if payload else None
        if not coded or not self._stream:
            return ()
        _, wanted = self._ears.hear(wire.MULAW.decode(coded))
        return [one for one in wanted if isinstance(one, AudioGiven | AnswerWanted)]

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """Speech, and a mark behind it. Calls have no place on the stream."""
        for piece in speech_pieces(reply, wire.RATE_HZ):
            payload = binascii.b2a_base64(wire.MULAW.encode(piece), newline=False).decode()
            yield self._message("media", {"payload": payload})
        self._answers += 1
        yield self._message("mark", {"name": f"answer-{self._answers}"})

    def failure(self, code: str, message: str) -> Sequence[OutFrame]:
        """A stream has no errors: an agent that fails is silent."""
        return ()

    def _message(self, kind: str, details: Mapping[str, str]) -> OutFrame:
        return OutFrame(orjson.dumps({"event": kind, "streamSid": self._stream, kind: details}))
