"""Server half of Nova Sonic: the client's events become turns, an agent's reply becomes the model's events. Sans-I/O.

It holds the client to the vendor's order of events, ends turns by level alone after the length of silence that the
sensitivity stands for, and hands the agent all that the caller has said so far.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import orjson

from adapters.dialect import Setup, ToolSpec, TurnControlSettings, TurnMode
from adapters.emulated_speech import at_rate
from adapters.foreign_json import JsonObject, brief, decode, list_of, object_of, text_of, too_deep
from adapters.misbehaviour import without_end
from adapters.nova_sonic import wire
from adapters.openai_family.vad import LevelDetector
from adapters.openai_family.wire import decode_audio
from adapters.server import AnswerWanted, AudioGiven, Intent, Reply, ReplyCall, ServerStep, SetupGiven, ToolResultGiven
from captures.frames import InFrame, OutFrame

SILENCE_MS: Final[Mapping[str | None, int]] = {"HIGH": 1500, "MEDIUM": 1750, "LOW": 2000, None: 1500}
MAX_HEARD_BYTES: Final = 16 * 1024 * 1024
MAX_TEXT_CHARS: Final = 200_000
_PIECE_S: Final = 0.1


class _InvalidError(Exception):
    """A client's event breaks the vendor's rules; its text becomes the exception's message."""


def _cut_arguments(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """The arguments of every call stop half-way (`adapters.misbehaviour`)."""
    for frame in frames:
        found = wire.read(frame.payload)
        if found is not None and found[1] == "toolUse":
            yield wire.event("toolUse", {**found[2], "content": without_end(text_of(found[2], "content") or "")})
        else:
            yield frame


class NovaServer:
    """`ServerDialect` of Nova Sonic for one connection."""

    answer_faults = MappingProxyType({"cut-arguments": _cut_arguments})

    def __init__(self) -> None:
        self._ids = 0
        self._session_started = False
        self._silence_ms = SILENCE_MS[None]
        self._prompt: str | None = None
        self._output_rate_hz = 24_000
        self._tools: tuple[ToolSpec, ...] = ()
        self._system = ""
        self._contents: dict[str, JsonObject] = {}
        """Open contents of the client by name."""
        self._text = ""
        self._audio_begun = False
        self._detector = LevelDetector(wire.INPUT_RATE_HZ)
        self._heard = bytearray()
        self._completion_id: str | None = None
        self._tool_uses: set[str] = set()
        self._handlers: Mapping[str, Callable[[JsonObject], ServerStep]] = {
            "sessionStart": self._on_session_start,
            "promptStart": self._on_prompt_start,
            "contentStart": self._on_content_start,
            "textInput": self._on_text_input,
            "audioInput": self._on_audio_input,
            "toolResult": self._on_tool_result,
            "contentEnd": self._on_content_end,
            "promptEnd": lambda body: ServerStep(),
            "sessionEnd": lambda body: ServerStep(close=(1000, "")),
        }

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """Nothing: the client speaks first, and its set-up is not confirmed."""
        return ()

    def receive(self, frame: InFrame) -> ServerStep:
        """Read one event; a fault ends the stream with `validationException`, as the vendor does."""
        found = wire.read(frame.payload)
        try:
            if found is None or found[0] != "event" or too_deep(found[2]):
                raise _InvalidError("Invalid event bytes")
            _, name, body = found
            handler = self._handlers.get(name)
            if handler is None:
                raise _InvalidError(f"Unknown event {brief(name, 80)}")
            if not self._session_started and name != "sessionStart":
                raise _InvalidError("The first event must be sessionStart")
            if self._prompt is None and name not in ("sessionStart", "promptStart", "sessionEnd"):
                raise _InvalidError("promptStart must come before content")
            return handler(body)
        except _InvalidError as fault:
            return ServerStep([wire.exception("validationException", str(fault))], close=(1000, "the stream ended"))

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """Events of a reply in the vendor's order: the caller's words, calls, the plan, the speech, what was spoken."""
        if self._completion_id is None:
            self._completion_id = self._new_id()
            yield self._event("completionStart", {})
        if reply.input_transcript:
            yield from self._text_block("USER", "FINAL", reply.input_transcript)
        for call in reply.calls:
            yield from self._tool_block(call)
        if reply.pcm or reply.text:
            yield from self._text_block("ASSISTANT", "SPECULATIVE", reply.text)
            yield from self._audio_block(at_rate(reply.pcm, reply.rate_hz, self._output_rate_hz))
            yield from self._text_block("ASSISTANT", "FINAL", reply.text)
        yield self._usage(reply)

    def failure(self, code: str, message: str) -> Sequence[OutFrame]:
        """An exception of the stream."""
        return [wire.exception("modelStreamErrorException", f"{code}: {message}")]

    # Client events

    def _on_session_start(self, body: JsonObject) -> ServerStep:
        nested = object_of(body, "turnDetectionConfiguration")
        sensitivity = text_of(nested, "endpointingSensitivity") or text_of(body, "endpointingSensitivity")
        if sensitivity not in SILENCE_MS:
            raise _InvalidError("endpointingSensitivity must be HIGH, MEDIUM or LOW")
        self._session_started, self._silence_ms = True, SILENCE_MS[sensitivity]
        return ServerStep()

    def _on_prompt_start(self, body: JsonObject) -> ServerStep:
        name = text_of(body, "promptName")
        if name is None:
            raise _InvalidError("promptStart needs promptName")
        rate = object_of(body, "audioOutputConfiguration").get("sampleRateHertz", 24_000)
        if rate not in (8_000, 16_000, 24_000):
            raise _InvalidError("sampleRateHertz must be 8000, 16000 or 24000")
        self._tools = tuple(_tool_of(tool) for tool in list_of(object_of(body, "toolConfiguration"), "tools"))
        self._prompt, self._output_rate_hz = name, rate
        return ServerStep()

    def _on_content_start(self, body: JsonObject) -> ServerStep:
        name, kind, role = text_of(body, "contentName"), text_of(body, "type"), text_of(body, "role")
        if name is None or name in self._contents or kind not in ("TEXT", "AUDIO", "TOOL"):
            raise _InvalidError("contentStart needs a new contentName and a type of TEXT, AUDIO or TOOL")
        if kind == "TEXT" and self._audio_begun and (role != "USER" or body.get("interactive") is not True):
            raise _InvalidError("Chat history should be sent completely before streaming audio")
        self._contents[name] = body
        if kind != "AUDIO":
            return ServerStep()
        if object_of(body, "audioInputConfiguration").get("sampleRateHertz") != wire.INPUT_RATE_HZ:
            raise _InvalidError(f"This emulator takes audio at {wire.INPUT_RATE_HZ} Hz")
        self._audio_begun = True
        turn_control = TurnControlSettings(TurnMode.SERVER_VAD)
        return ServerStep(intents=[SetupGiven(Setup(self._system, self._tools, wire.INPUT_RATE_HZ, turn_control))])

    def _on_text_input(self, body: JsonObject) -> ServerStep:
        self._open_content(body, "TEXT")
        text = text_of(body, "content")
        if text is None or len(self._text) + len(text) > MAX_TEXT_CHARS:
            raise _InvalidError("textInput needs content of a size that is allowed")
        self._text += text
        return ServerStep()

    def _on_audio_input(self, body: JsonObject) -> ServerStep:
        self._open_content(body, "AUDIO")
        content = text_of(body, "content")
        pcm = None if content is None else decode_audio(content)
        if pcm is None or len(pcm) % 2 or len(self._heard) + len(pcm) > MAX_HEARD_BYTES:
            raise _InvalidError("audioInput needs base64 of whole samples, not too many in all")
        self._heard += pcm
        intents: list[Intent] = []
        for edge in self._detector.feed(pcm, self._silence_ms):
            if not edge.speaking:
                intents += [AudioGiven(bytes(self._heard), wire.INPUT_RATE_HZ), AnswerWanted()]
        return ServerStep(intents=intents)

    def _on_tool_result(self, body: JsonObject) -> ServerStep:
        opened = self._open_content(body, "TOOL")
        tool_use_id = text_of(object_of(opened, "toolResultInputConfiguration"), "toolUseId")
        content = text_of(body, "content")
        if content is None or decode(content) is None:
            raise _InvalidError("Tool Response parsing error")
        if tool_use_id is None or tool_use_id not in self._tool_uses:
            raise _InvalidError("toolUseId is not of a tool use")
        return ServerStep(intents=[ToolResultGiven(tool_use_id, content), AnswerWanted()])

    def _on_content_end(self, body: JsonObject) -> ServerStep:
        opened = self._contents.pop(text_of(body, "contentName") or "", None)
        if opened is None:
            raise _InvalidError("contentEnd of a content that is not open")
        if opened["type"] != "TEXT":
            return ServerStep()
        text, self._text = self._text, ""
        if opened.get("role") == "SYSTEM":
            self._system = text
        elif self._audio_begun:
            return ServerStep(intents=[AnswerWanted(text)])
        return ServerStep()

    def _open_content(self, body: JsonObject, kind: str) -> JsonObject:
        opened = self._contents.get(text_of(body, "contentName") or "")
        if opened is None or opened["type"] != kind:
            raise _InvalidError(f"No open content of type {kind}")
        return opened

    # The model's events

    def _text_block(self, role: str, stage: str, text: str) -> Iterator[OutFrame]:
        content_id = self._new_id()
        yield self._content_start(content_id, "TEXT", role, stage)
        yield self._event("textOutput", {"contentId": content_id, "role": role, "content": text})
        reason = "END_TURN" if stage == "FINAL" else "PARTIAL_TURN"
        yield self._event("contentEnd", {"contentId": content_id, "type": "TEXT", "stopReason": reason})

    def _tool_block(self, call: ReplyCall) -> Iterator[OutFrame]:
        content_id, tool_use_id = self._new_id(), self._new_id()
        self._tool_uses.add(tool_use_id)
        yield self._content_start(content_id, "TOOL", "TOOL", None)
        arguments = orjson.dumps(dict(call.arguments)).decode()
        fields = {"contentId": content_id, "toolName": call.name, "toolUseId": tool_use_id, "content": arguments}
        yield self._event("toolUse", fields)
        yield self._event("contentEnd", {"contentId": content_id, "type": "TOOL", "stopReason": "TOOL_USE"})

    def _audio_block(self, pcm: bytes) -> Iterator[OutFrame]:
        content_id = self._new_id()
        yield self._content_start(content_id, "AUDIO", "ASSISTANT", None)
        step = 2 * round(_PIECE_S * self._output_rate_hz)
        for at in range(0, len(pcm), step):
            content = binascii.b2a_base64(pcm[at : at + step], newline=False).decode()
            yield self._event("audioOutput", {"contentId": content_id, "content": content})
        yield self._event("contentEnd", {"contentId": content_id, "type": "AUDIO", "stopReason": "END_TURN"})

    def _content_start(self, content_id: str, kind: str, role: str, stage: str | None) -> OutFrame:
        fields: JsonObject = {"contentId": content_id, "type": kind, "role": role}
        if stage is not None:
            fields["additionalModelFields"] = orjson.dumps({"generationStage": stage}).decode()
        return self._event("contentStart", fields)

    def _usage(self, reply: Reply) -> OutFrame:
        heard, spoken = len(self._heard) // 3_200, len(reply.text.split()) + len(reply.calls)
        return self._event(
            "usageEvent",
            {"totalInputTokens": heard, "totalOutputTokens": spoken, "totalTokens": heard + spoken, "details": {}},
        )

    def _event(self, name: str, fields: JsonObject) -> OutFrame:
        common = {"sessionId": "session", "promptName": self._prompt, "completionId": self._completion_id}
        return wire.event(name, {**common, **fields})

    def _new_id(self) -> str:
        self._ids += 1
        return f"00000000-0000-4000-8000-{self._ids:012d}"


def _tool_of(tool: object) -> ToolSpec:
    spec = object_of(tool, "toolSpec") if isinstance(tool, dict) else {}
    name, schema = text_of(spec, "name"), object_of(spec, "inputSchema").get("json")
    parameters = decode(schema) if isinstance(schema, str) else None
    if name is None or parameters is None:
        raise _InvalidError("toolSpec needs a name, and inputSchema.json as a JSON string")
    return ToolSpec(name, text_of(spec, "description") or "", parameters)
