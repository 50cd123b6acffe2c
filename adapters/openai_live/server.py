"""Server half of OpenAI Live: the client's audio becomes turns, an agent's reply becomes the vendor's events. Sans-I/O.

It has no clock: for every piece of caller audio it gives back a piece of the same length, silence or speech, so output
is as continuous and as well paced as the client's input. Turns end by level alone (`openai_family.vad`), and the agent
is handed all the caller has said so far.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import orjson

from adapters.emulated_speech import at_rate
from adapters.foreign_json import JsonObject, brief, decode, object_of, text_of, too_deep
from adapters.openai_family.vad import LevelDetector
from adapters.openai_family.wire import decode_audio, encode
from adapters.openai_live.misbehaviour import ANSWER_FAULTS
from adapters.openai_live.session_rules import Complaint, checked_session, setup_of
from adapters.server import (
    AnswerWanted,
    AudioGiven,
    Intent,
    Reply,
    ReplyCall,
    ServerStep,
    SetupGiven,
    ToolResultGiven,
)
from captures.frames import InFrame, OutFrame

TURN_SILENCE_MS: Final = 1_000
"""Quiet of the caller after which the emulated agent answers."""
MAX_APPEND_BYTES: Final = 2 * 1024 * 1024
MAX_HEARD_BYTES: Final = 64 * 1024 * 1024
_USAGE_EVERY_MS: Final = 15_000
_EXPIRES_AT: Final = 4_102_444_800
_KNOWN: Final = (
    "session.start",
    "session.update",
    "session.input_audio.append",
    "session.input_audio.mute",
    "session.input_audio.unmute",
    "response.item.create",
    "response.create",
    "session.close",
)


class LiveServer:
    """`ServerDialect` of OpenAI Live for one connection."""

    answer_faults = ANSWER_FAULTS

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._session: JsonObject | None = None
        self._rate_hz = 24_000
        self._detector = LevelDetector(self._rate_hz)
        self._heard = bytearray()
        self._muted = False
        self._spoken = bytearray()
        """Speech that is still to be heard."""
        self._words: list[str] = []
        """Its words."""
        self._heard_bytes = 0
        self._usage_at_ms = _USAGE_EVERY_MS
        self._call_ids: set[str] = set()
        self._handlers: Mapping[str, Callable[[JsonObject], ServerStep | Complaint]] = {
            "session.start": self._on_start,
            "session.update": lambda event: Complaint(
                "not_emulated", "This emulator keeps its first settings.", "type"
            ),
            "session.input_audio.append": self._on_append,
            "session.input_audio.mute": lambda event: self._on_mute(True),
            "session.input_audio.unmute": lambda event: self._on_mute(False),
            "response.item.create": self._on_item,
            "response.create": lambda event: ServerStep((), [AnswerWanted()]),
            "session.close": self._on_close,
        }

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """Nothing: the client speaks first."""
        return ()

    def receive(self, frame: InFrame) -> ServerStep:
        """Read one client message; a fault is answered with an `error` event and changes nothing."""
        event = decode(frame.payload)
        if event is None or too_deep(event):
            return self._error(Complaint("invalid_json", "The message is not a JSON object."), None)
        kind, event_id = text_of(event, "type"), text_of(event, "event_id")
        if kind is None or kind not in self._handlers:
            names = ", ".join(_KNOWN)
            message = f"Unknown event type '{brief(str(kind), 100)}'. Accepted events: {names}."
            return self._error(Complaint("invalid_event", message, "type"), event_id)
        if (self._session is None) != (kind == "session.start"):
            message = "The session has started already." if self._session else "Send session.start first."
            return self._error(Complaint("invalid_event_order", message, "type"), event_id)
        step = self._handlers[kind](event)
        return self._error(step, event_id) if isinstance(step, Complaint) else step

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """The delegated calls of a reply, at once; its speech follows in step with the client's audio."""
        if reply.input_transcript:
            yield self._transcript("session.input_transcript.delta", reply.input_transcript)
        if reply.calls:
            yield from self._delegated(lambda response: self._call_events(response, reply.calls))
        if reply.pcm:
            self._words += reply.text.split()
            self._spoken += at_rate(reply.pcm, reply.rate_hz, self._rate_hz)
        elif reply.text:
            yield self._transcript("session.output_transcript.delta", reply.text)

    def failure(self, code: str, message: str) -> Sequence[OutFrame]:
        """Delegated work that failed."""
        error = {"code": code, "message": message}
        return list(self._delegated(lambda response: iter(()), {"status": "failed", "error": error}))

    # Delegated work

    def _delegated(
        self, inner: Callable[[JsonObject], Iterable[JsonObject]], end: JsonObject | None = None
    ) -> Iterable[OutFrame]:
        delegation_id, response_id = self._new_id("dlg"), self._new_id("resp")
        delegation = {"id": delegation_id, "type": "delegation", "target": "responses", "response_id": response_id}
        yield self._frame("session.delegation.created", {"delegation": delegation, "offset_ms": self._position_ms()})
        response: JsonObject = {"id": response_id, "object": "response", "status": "in_progress", "output": []}
        ended = response | (end or {"status": "completed", "usage": {"total_tokens": 0}})
        events = [
            {"type": "response.created", "response": response},
            *inner(response),
            {"type": f"response.{ended['status']}", "response": ended},
        ]
        for number, event in enumerate(events):
            nested = event | {"sequence_number": number}
            yield self._frame("response.event", {"delegation_id": delegation_id, "event": nested})

    def _call_events(self, response: JsonObject, calls: Sequence[ReplyCall]) -> Iterable[JsonObject]:
        for index, call in enumerate(calls):
            item_id, call_id = self._new_id("fc"), self._new_id("call")
            self._call_ids.add(call_id)
            arguments = orjson.dumps(dict(call.arguments)).decode()
            item: JsonObject = {"id": item_id, "type": "function_call", "call_id": call_id, "name": call.name}
            place: JsonObject = {"item_id": item_id, "output_index": index}
            begun = item | {"status": "in_progress", "arguments": ""}
            yield {"type": "response.output_item.added", "output_index": index, "item": begun}
            for at in range(0, len(arguments), 16):
                delta = arguments[at : at + 16]
                yield {"type": "response.function_call_arguments.delta", **place, "delta": delta}
            yield {"type": "response.function_call_arguments.done", **place, "arguments": arguments}
            done = item | {"status": "completed", "arguments": arguments}
            yield {"type": "response.output_item.done", "output_index": index, "item": done}

    # Client messages

    def _on_start(self, event: JsonObject) -> ServerStep | Complaint:
        session = checked_session(event)
        if isinstance(session, Complaint):
            return session
        self._rate_hz = session["audio"]["format"]["rate"]
        self._detector = LevelDetector(self._rate_hz)
        self._session = {"id": self._new_id("live"), "expires_at": _EXPIRES_AT, "status": "active", **session}
        started = self._frame("session.started", {"session": self._session})
        return ServerStep([started], [SetupGiven(setup_of(session))])

    def _on_append(self, event: JsonObject) -> ServerStep | Complaint:
        audio = text_of(event, "audio")
        pcm = None if audio is None else decode_audio(audio)
        if pcm is None or len(pcm) % 2 or len(pcm) > MAX_APPEND_BYTES:
            return Complaint("invalid_value", "Expected base64 of whole 16-bit samples, at most 2 MiB.", "audio")
        if self._muted:
            pcm = bytes(len(pcm))
        self._heard_bytes += len(pcm)
        if len(self._heard) + len(pcm) <= MAX_HEARD_BYTES:
            self._heard += pcm
        intents: list[Intent] = []
        for edge in self._detector.feed(pcm, TURN_SILENCE_MS):
            if edge.speaking:
                self._spoken.clear()  # the model yields when it is spoken over; delegated work goes on
                self._words.clear()
            else:
                intents += [AudioGiven(bytes(self._heard), self._rate_hz), AnswerWanted()]
        return ServerStep(self._output(len(pcm)), intents)

    def _output(self, length: int) -> list[OutFrame]:
        """As much audio as came in, what was said with it, and the usage when it is due."""
        frames: list[OutFrame] = []
        if self._spoken and self._words:
            count = max(1, len(self._words) * length // len(self._spoken))
            said, self._words = self._words[:count], self._words[count:]
            frames.append(self._transcript("session.output_transcript.delta", " ".join(said) + " "))
        piece = bytes(self._spoken[:length])
        del self._spoken[:length]
        audio = binascii.b2a_base64(piece.ljust(length, b"\0"), newline=False).decode()
        frames.append(encode({"type": "session.output_audio.delta", "delta": audio}))
        if self._position_ms() >= self._usage_at_ms:
            self._usage_at_ms += _USAGE_EVERY_MS
            window = {"usage_ratio": 0.01}
            frames.append(self._frame("session.usage.updated", {"usage": self._usage(), "context_window": window}))
        return frames

    def _on_mute(self, muted: bool) -> ServerStep:
        self._muted = muted
        return ServerStep([self._frame(f"session.input_audio.{'muted' if muted else 'unmuted'}", {})])

    def _on_item(self, event: JsonObject) -> ServerStep | Complaint:
        item = object_of(event, "item")
        if text_of(item, "type") != "function_call_output":
            return Complaint("not_emulated", "This emulator takes results of function calls alone.", "item.type")
        call_id, output = text_of(item, "call_id"), text_of(item, "output")
        if call_id is None or call_id not in self._call_ids or output is None:
            return Complaint("invalid_call_id", f"No call '{brief(str(call_id), 100)}'.", "item.call_id")
        return ServerStep((), [ToolResultGiven(call_id, output)])

    def _on_close(self, event: JsonObject) -> ServerStep:
        fields = {"reason": "close_requested", "session": self._session, "usage": self._usage()}
        return ServerStep([self._frame("session.closed", fields)], close=(1000, ""))

    # Frames

    def _transcript(self, kind: str, words: str) -> OutFrame:
        at_ms = self._position_ms()
        return self._frame(kind, {"delta": words, "start_ms": at_ms, "end_ms": at_ms})

    def _usage(self) -> JsonObject:
        return {"seconds": float(-(-self._position_ms() // 1000))}

    def _position_ms(self) -> int:
        return self._heard_bytes * 500 // self._rate_hz

    def _frame(self, kind: str, fields: Mapping[str, object]) -> OutFrame:
        return encode({"type": kind, "event_id": self._new_id("event"), **fields})

    def _error(self, complaint: Complaint, event_id: str | None) -> ServerStep:
        error = {
            "type": "invalid_request_error",
            "code": complaint.code,
            "message": complaint.message,
            "param": complaint.where,
            "client_event_id": event_id,
        }
        return ServerStep([self._frame("error", {"error": error})])

    def _new_id(self, prefix: str) -> str:
        self._ids[prefix] = self._ids.get(prefix, 0) + 1
        return f"{prefix}_{self._ids[prefix]}"
