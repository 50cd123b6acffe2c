"""The server half of the gateway: its envelope around the server half of the vendor that the model names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import orjson

from adapters.foreign_json import JsonObject, brief, decode, list_of, object_of, text_of, too_deep
from adapters.misbehaviour import AnswerFault
from adapters.openai_family.ga import PCM_FORMAT
from adapters.openai_family.ga_rules import GaRules
from adapters.openai_family.profile import ServerProfile
from adapters.openai_family.server import RealtimeServer
from adapters.openai_family.wire import encode
from adapters.server import Denied, Handshake, Reply, ServerStep
from adapters.vercel_gateway.envelope import MAX_MESSAGE_BYTES
from adapters.xai_realtime import SERVER as XAI
from captures.frames import InFrame, OutFrame

_OPENAI: Final = ServerProfile(GaRules())
CREATORS: Final[Mapping[str, ServerProfile]] = {"openai": _OPENAI, "xai": XAI, "spacexai": XAI}
"""Whose models the route reaches. Google's go by another protocol."""
_PART: Final = "-part"
"""End of the name of an event that came of another's fanning out."""


class GatewayServer:
    """`ServerDialect` of the gateway, for one connection."""

    @property
    def answer_faults(self) -> Mapping[str, AnswerFault]:
        """Those of the vendor's own events, inside the envelope."""
        return {name: partial(_inside, fault) for name, fault in self._inner.answer_faults.items()}

    def __init__(self) -> None:
        self._creator = "openai"
        self._inner = RealtimeServer(_OPENAI)

    def denied(self, handshake: Handshake) -> Denied | None:
        """See `ChecksHandshake`."""
        creator, _, model = handshake.query.get("ai-model-id", "").partition("/")
        if creator in CREATORS and model:
            return None
        error = {"message": "Query parameter ai-model-id must name a realtime model", "type": "invalid_request_error"}
        return Denied(400, orjson.dumps({"error": error}))

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """The vendor's opening, wrapped; it says nothing of the client's settings."""
        creator, _, model = query.get("ai-model-id", "openai/").partition("/")
        if creator in CREATORS:
            self._creator = creator
            self._inner = RealtimeServer(CREATORS[creator])
        return [*_wrapped(self._inner.greeting({"model": model}))]

    def receive(self, frame: InFrame) -> ServerStep:
        """Read one client message; faults of the envelope are the gateway's own errors, without `raw`."""
        if len(frame.payload) > MAX_MESSAGE_BYTES:
            return _own_error("message_too_large", f"Messages may hold {MAX_MESSAGE_BYTES} bytes.")
        message = decode(frame.payload)
        if message is None or too_deep(message):
            return _own_error("invalid_message", "The message is not a JSON object.")
        kind = text_of(message, "type") or ""
        if kind == "session-update":
            native = _session_update(object_of(message, "config"), outer=self._creator != "openai")
        elif kind in _CLIENT_MESSAGES:
            native = _CLIENT_MESSAGES[kind](message)
        else:
            return _own_error("invalid_message", f"Unknown message type: {brief(kind, 100)}")
        step = self._inner.receive(InFrame(orjson.dumps(native), False, frame.t_ns))
        return ServerStep([*_wrapped(step.frames)], step.intents, step.close)

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """The vendor's events, wrapped."""
        return _wrapped(self._inner.answer(reply))

    def failure(self, code: str, message: str) -> Sequence[OutFrame]:
        """The vendor's failed answer, wrapped."""
        return [*_wrapped(self._inner.failure(code, message))]


def _wrapped(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """Normalised events; some of the vendor's fan out into two, with the same `raw`."""
    for frame in frames:
        raw = orjson.loads(frame.payload)
        kind = raw["type"].replace(".", "-").replace("_", "-")
        yield encode({"type": kind, "raw": raw})
        if raw["type"] in ("response.output_item.done", "response.output_audio_transcript.delta"):
            yield encode({"type": f"{kind}{_PART}", "raw": raw})


def _inside(fault: AnswerFault, frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """A fault of the vendor's events, seen through the gateway; what fans out does so after it."""
    events = (orjson.loads(frame.payload) for frame in frames)
    return _wrapped(fault(encode(event["raw"]) for event in events if not event["type"].endswith(_PART)))


def _own_error(code: str, message: str) -> ServerStep:
    return ServerStep([encode({"type": "error", "code": code, "message": message})])


def _session_update(config: JsonObject, outer: bool) -> JsonObject:
    """`session.update` of the vendor; `outer`: turn detection sits at the top level, as xAI has it."""
    caller: JsonObject = {"format": config.get("inputAudioFormat", dict(PCM_FORMAT))}
    if "inputAudioTranscription" in config:
        caller["transcription"] = config["inputAudioTranscription"]
    session: JsonObject = {
        "instructions": config.get("instructions"),
        "tools": list_of(config, "tools"),
        "audio": {"input": caller, "output": {"format": config.get("outputAudioFormat", dict(PCM_FORMAT))}},
    }
    if not outer:
        session |= {"type": "realtime", "output_modalities": config.get("outputModalities")}
    given = config.get("turnDetection")
    if isinstance(given, dict):
        (session if outer else caller)["turn_detection"] = _detection(given, outer)
    return {"type": "session.update", "session": session | object_of(config, "providerOptions")}


def _detection(given: JsonObject, outer: bool) -> JsonObject | None:
    kind = text_of(given, "type")
    if kind == "disabled":
        return {"type": None} if outer else None
    named = {"type": (kind or "").replace("-", "_")}
    return named | {_snake_case(key): value for key, value in given.items() if key != "type"}


def _snake_case(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def _item_create(message: JsonObject) -> JsonObject:
    item = object_of(message, "item")
    kind = text_of(item, "type")
    if kind == "text-message":
        content = [{"type": "input_text", "text": item.get("text")}]
        native: JsonObject = {"type": "message", "role": item.get("role"), "content": content}
    elif kind == "function-call-output":
        native = {"type": "function_call_output", "call_id": item.get("callId"), "output": item.get("output")}
    else:
        native = item
    return {"type": "conversation.item.create", "item": native}


_CLIENT_MESSAGES: Final[Mapping[str, Callable[[JsonObject], JsonObject]]] = {
    "input-audio-append": lambda message: {"type": "input_audio_buffer.append", "audio": message.get("audio")},
    "input-audio-commit": lambda message: {"type": "input_audio_buffer.commit"},
    "input-audio-clear": lambda message: {"type": "input_audio_buffer.clear"},
    "response-create": lambda message: {"type": "response.create"},
    "response-cancel": lambda message: {"type": "response.cancel"},
    "conversation-item-create": _item_create,
    "conversation-item-truncate": lambda message: {
        "type": "conversation.item.truncate",
        "item_id": message.get("itemId"),
        "content_index": message.get("contentIndex"),
        "audio_end_ms": message.get("audioEndMs"),
    },
}
