"""ElevenLabs Agents: prompt and tools are the agent's, turns are the platform's, every unknown frame ends the session.

Facts: the vendor's SDK (elevenlabs 2.78, conversational_ai) and its pages on events.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from adapters.dialect import Setup
from adapters.foreign_json import JsonObject, decode, object_of, text_of
from adapters.server import AnswerWanted, Reply, ServerStep, SetupGiven, ToolResultGiven
from adapters.template_socket.emulated.voice import CallIds, Ears, agent_called, message, speech_pieces
from captures.frames import InFrame, OutFrame

_RATE_HZ = 16_000
_HARMLESS = frozenset({"contextual_update", "user_activity", "feedback", "multimodal_message"})


class ElevenLabsServer:
    """`ServerDialect` of ElevenLabs Agents for one connection."""

    def __init__(self) -> None:
        self._agent = Setup("", (), _RATE_HZ)
        self._begun = False
        self._ears = Ears(_RATE_HZ)
        self._calls = CallIds("tool_")
        self._events = 0

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """Nothing: the client opens the conversation."""
        self._agent = agent_called(query.get("agent_id", ""), _RATE_HZ)
        return ()

    def receive(self, frame: InFrame) -> ServerStep:
        """Read one client message."""
        fields = None if frame.binary else decode(frame.payload)
        if fields is None:
            return _invalid()
        if "user_audio_chunk" in fields and "type" not in fields:
            return self._on_audio(fields)
        match text_of(fields, "type"):
            case "conversation_initiation_client_data" if not self._begun:
                return self._on_initiation(fields)
            case "pong":
                return ServerStep() if isinstance(fields.get("event_id"), int) else _invalid()
            case "user_message" if self._begun:
                return ServerStep(intents=[AnswerWanted(text_of(fields, "text") or "")])
            case "client_tool_result":
                return self._on_result(fields)
            case kind if kind in _HARMLESS:
                return ServerStep()
        return _invalid()

    def _on_initiation(self, fields: JsonObject) -> ServerStep:
        self._begun = True
        override = object_of(object_of(fields, "conversation_config_override"), "agent")
        prompt = text_of(object_of(override, "prompt"), "prompt")
        if prompt is not None:
            self._agent = replace(self._agent, instructions=prompt)
        formats = {"agent_output_audio_format": "pcm_16000", "user_input_audio_format": "pcm_16000"}
        metadata = {"conversation_id": "conv_1", **formats}
        ping = {"type": "ping", "ping_event": {"event_id": 1, "ping_ms": None}}
        opened = {
            "type": "conversation_initiation_metadata",
            "conversation_initiation_metadata_event": metadata,
        }
        return ServerStep([message(opened), message(ping)], [SetupGiven(self._agent)])

    def _on_audio(self, fields: JsonObject) -> ServerStep:
        try:
            pcm = binascii.a2b_base64(text_of(fields, "user_audio_chunk") or "", strict_mode=True)
        except ValueError:
            return _invalid()
        if not self._begun:
            return _invalid()
        edges, wanted = self._ears.hear(pcm)
        scores = [message({"type": "vad_score", "vad_score_event": {"vad_score": float(e.speaking)}}) for e in edges]
        return ServerStep(scores, wanted)

    def _on_result(self, fields: JsonObject) -> ServerStep:
        call_id, output = text_of(fields, "tool_call_id"), text_of(fields, "result")
        if not self._calls.answered(call_id) or call_id is None or output is None or "is_error" not in fields:
            return _invalid()
        given = ToolResultGiven(call_id, output)
        return ServerStep(intents=[given] if self._calls.any_open else [given, AnswerWanted()])

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """Transcript, calls or words with speech; the end only once no call is open."""
        if reply.input_transcript:
            yield _event("user_transcript", "user_transcription_event", user_transcript=reply.input_transcript)
        for call_id, call in self._calls.numbered(reply.calls):
            body = {"tool_name": call.name, "tool_call_id": call_id, "parameters": dict(call.arguments)}
            yield message({"type": "client_tool_call", "client_tool_call": body})
        if reply.text:
            yield _event("agent_response", "agent_response_event", agent_response=reply.text)
        for piece in speech_pieces(reply, _RATE_HZ):
            self._events += 1
            coded = binascii.b2a_base64(piece, newline=False).decode()
            yield _event("audio", "audio_event", audio_base_64=coded, event_id=self._events)
        if not self._calls.any_open:
            yield _event("agent_response_complete", "agent_response_complete_event", event_id=self._events)

    def failure(self, code: str, text: str) -> Sequence[OutFrame]:
        """The flat form of `error`, as it was seen."""
        return [message({"type": "error", "code": code, "message": text})]


def _event(kind: str, body: str, **fields: object) -> OutFrame:
    return message({"type": kind, body: fields})


def _invalid() -> ServerStep:
    return ServerStep(close=(1008, "Invalid message received"))
