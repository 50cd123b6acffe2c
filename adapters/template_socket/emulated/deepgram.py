"""Deepgram Voice Agent: settings on the wire and strict about them, binary audio both ways, turns by its own ears.

Facts: the vendor's SDK (deepgram-sdk 7.17, deepgram/agent/v1/types) and its pages on errors and warnings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from adapters.dialect import Setup
from adapters.foreign_json import JsonObject, decode, int_of, list_of, object_of, text_of
from adapters.server import AnswerWanted, Denied, Handshake, Reply, ServerStep, SetupGiven, ToolResultGiven
from adapters.template_socket.emulated.voice import CallIds, Ears, message, speech_pieces, tools_in
from captures.frames import InFrame, OutFrame

_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"type", "audio", "agent", "flags", "tags", "experimental", "mip_opt_out"}),
    "audio": frozenset({"input", "output"}),
    "audio.input": frozenset({"encoding", "sample_rate"}),
    "audio.output": frozenset({"encoding", "sample_rate", "container", "bitrate"}),
    "agent": frozenset({"listen", "think", "speak", "greeting", "context", "language"}),
    "agent.listen": frozenset({"provider"}),
    "agent.think": frozenset({"provider", "endpoint", "prompt", "functions", "context_length"}),
    "agent.speak": frozenset({"provider", "endpoint"}),
}
_FUNCTION: Final = frozenset(
    {"name", "description", "parameters", "endpoint", "defer_until_eot"}
    | {"initial_agent_filler", "agent_filler_max_count", "agent_filler_interval_ms"}
)


class DeepgramServer:
    """`ServerDialect` of Deepgram's Voice Agent for one connection."""

    def __init__(self) -> None:
        self._ears: Ears | None = None
        self._speech_hz = 24_000
        self._calls = CallIds("fn_")

    def denied(self, handshake: Handshake) -> Denied | None:
        """An API key goes with the scheme Token."""
        given = handshake.headers.get("authorization")
        if given is None or given.startswith("Token "):
            return None
        return Denied(401, b'{"err_code":"INVALID_AUTH","err_msg":"Invalid credentials."}')

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """`Welcome`."""
        return [message({"type": "Welcome", "request_id": "req-1"})]

    def receive(self, frame: InFrame) -> ServerStep:
        """Read one client message."""
        if frame.binary:
            return self._on_audio(frame.payload)
        fields = decode(frame.payload)
        if fields is None:
            return _error("UNPARSABLE_CLIENT_MESSAGE", "not a JSON object")
        match text_of(fields, "type"):
            case "Settings":
                return self._on_settings(fields)
            case "KeepAlive":
                return ServerStep()
            case "InjectUserMessage" if self._ears is not None:
                return ServerStep(intents=[AnswerWanted(text_of(fields, "content") or "")])
            case "FunctionCallResponse":
                return self._on_response(fields)
        return _error("UNPARSABLE_CLIENT_MESSAGE", "Error parsing client message")

    def _on_settings(self, fields: JsonObject) -> ServerStep:
        if unknown := next(_unknown_fields(fields), None):
            return _error("UNPARSABLE_CLIENT_MESSAGE", f"unknown field {unknown}")
        audio, agent = object_of(fields, "audio"), object_of(fields, "agent")
        given, wanted = object_of(audio, "input"), object_of(audio, "output")
        rate_hz, speech_hz = int_of(given, "sample_rate"), int_of(wanted, "sample_rate")
        if given.get("encoding") != "linear16" or wanted.get("encoding") != "linear16" or not rate_hz or not speech_hz:
            return _error("INVALID_SETTINGS", "this emulator takes linear16 with whole sample rates")
        think = object_of(agent, "think")
        if not text_of(object_of(think, "provider"), "model"):
            return _error("INVALID_SETTINGS", "agent.think.provider.model is required")
        self._ears, self._speech_hz = Ears(rate_hz), speech_hz
        setup = Setup(text_of(think, "prompt") or "", tools_in(list_of(think, "functions")), rate_hz)
        return ServerStep([message({"type": "SettingsApplied"})], [SetupGiven(setup)])

    def _on_audio(self, pcm: bytes) -> ServerStep:
        if self._ears is None or len(pcm) % 2:
            return _error("UNPARSABLE_CLIENT_MESSAGE", "audio before Settings, or half a sample")
        edges, wanted = self._ears.hear(pcm)
        return ServerStep([message({"type": "UserStartedSpeaking"}) for edge in edges if edge.speaking], wanted)

    def _on_response(self, fields: JsonObject) -> ServerStep:
        call_id, content = text_of(fields, "id"), text_of(fields, "content")
        if content is None or text_of(fields, "name") is None or call_id is None or not self._calls.answered(call_id):
            return _error("UNPARSABLE_CLIENT_MESSAGE", "FunctionCallResponse needs id, name and content")
        given = ToolResultGiven(call_id, content)
        return ServerStep(intents=[given] if self._calls.any_open else [given, AnswerWanted()])

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """The caller's words, a request of functions, or speech up to `AgentAudioDone`."""
        if reply.input_transcript:
            yield message({"type": "ConversationText", "role": "user", "content": reply.input_transcript})
        functions: list[dict[str, Any]] = [
            {
                "id": call_id,
                "name": call.name,
                "arguments": orjson.dumps(dict(call.arguments)).decode(),
                "client_side": True,
            }
            for call_id, call in self._calls.numbered(reply.calls)
        ]
        if functions:
            yield message({"type": "FunctionCallRequest", "functions": functions})
        if reply.text:
            latencies = {"total_latency": 0.1, "tts_latency": 0.05, "ttt_latency": 0.05}
            yield message({"type": "AgentStartedSpeaking", **latencies})
            yield message({"type": "ConversationText", "role": "assistant", "content": reply.text})
        for piece in speech_pieces(reply, self._speech_hz):
            yield OutFrame(piece, binary=True)
        if reply.text or not functions:
            yield message({"type": "AgentAudioDone"})

    def failure(self, code: str, text: str) -> Sequence[OutFrame]:
        """`Error`, which is always the end."""
        return [message({"type": "Error", "code": "FAILED_TO_THINK", "description": f"{code}: {text}"})]


def _unknown_fields(settings: JsonObject) -> Iterator[str]:
    for place, known in _KNOWN.items():
        value: Any = settings
        for part in place.split(".") if place else ():
            value = value.get(part) if isinstance(value, dict) else None
        for part in value if isinstance(value, list) else [value]:
            fields = part if isinstance(part, dict) else {}
            yield from (f"{place}.{key}".lstrip(".") for key in fields if key not in known)
    for function in list_of(object_of(object_of(settings, "agent"), "think"), "functions"):
        fields = function if isinstance(function, dict) else {}
        yield from (f"agent.think.functions.{key}" for key in fields if key not in _FUNCTION)


def _error(code: str, description: str) -> ServerStep:
    return ServerStep([message({"type": "Error", "code": code, "description": description})], close=(1000, ""))
