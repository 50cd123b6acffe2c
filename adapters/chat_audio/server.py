"""Server half of file mode over chat.completions, for one request: body in, body out.

In `ServerStep.close` stands the HTTP status of a refusal, since a request has no close code; its body is the frame.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import orjson

from adapters.chat_audio import wav, wire
from adapters.dialect import Setup, ToolSpec
from adapters.foreign_json import JsonObject, decode, list_of, object_of, text_of
from adapters.misbehaviour import without_end
from adapters.server import AnswerWanted, AudioGiven, Intent, Reply, ServerStep, SetupGiven, ToolResultGiven
from captures.frames import InFrame, OutFrame


class _BadRequestError(ValueError):
    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.param = param


def _cut_arguments(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """The arguments of every call stop half-way (`adapters.misbehaviour`)."""
    for frame in frames:
        body = decode(frame.payload) or {}
        for choice in list_of(body, "choices"):
            for call in list_of(object_of(choice, "message"), "tool_calls"):
                call["function"]["arguments"] = without_end(call["function"]["arguments"])
        yield OutFrame(wire.encode(body))


class ChatAudioServer:
    """`ServerDialect` of file mode over chat.completions."""

    answer_faults = MappingProxyType({"cut-arguments": _cut_arguments})

    def __init__(self) -> None:
        self._model = ""
        self._speaks = False
        self._digest = ""

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """Nothing: the request comes first."""
        return ()

    def receive(self, frame: InFrame) -> ServerStep:
        """Setup, caller turn and the wish for an answer, from one request body."""
        try:
            return ServerStep(intents=self._intents(frame.payload))
        except _BadRequestError as error:
            code = "invalid_request_error"
            body = wire.error_body(code, str(error), error.param)
            return ServerStep([OutFrame(body)], close=(wire.ERROR_STATUS[code], code))

    def _intents(self, payload: bytes) -> list[Intent]:
        body = decode(payload)
        if body is None:
            raise _BadRequestError("the body is not a JSON object", "")
        messages = [message for message in list_of(body, "messages") if isinstance(message, dict)]
        self._model = text_of(body, "model") or ""
        if not self._model:
            raise _BadRequestError("you must provide a model", "model")
        if body.get("stream"):
            raise _BadRequestError("streaming is not served here", "stream")
        self._speaks = "audio" in list_of(body, "modalities")
        self._digest = hashlib.sha256(payload).hexdigest()
        callers = [index for index, message in enumerate(messages) if message.get("role") == "user"]
        if not callers:
            raise _BadRequestError("a message of role user is needed", "messages")
        caller = messages[callers[-1]]
        audio = [_audio(part, f"messages[{callers[-1]}]") for part in wire.parts_of(caller, "input_audio")]
        results = [
            ToolResultGiven(text_of(message, "tool_call_id") or "", wire.words_of(message.get("content")))
            for message in messages[callers[-1] + 1 :]
            if message.get("role") == "tool"
        ]
        instructions = "\n".join(
            wire.words_of(message.get("content"))
            for message in messages
            if message.get("role") in ("system", "developer")
        )
        tools = tuple(_tool(tool, index) for index, tool in enumerate(list_of(body, "tools")))
        setup = Setup(instructions, tools, audio[0].rate_hz if audio else wire.RATE_HZ)
        words = None if audio else wire.words_of(caller.get("content"))
        return [SetupGiven(setup), *audio, *results, AnswerWanted(words)]

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """One frame: the response body. Speech is left out when the request did not ask for it."""
        message: JsonObject = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if self._speaks and reply.pcm:
            message["content"] = None
            message["audio"] = {
                "id": f"audio_{self._digest[:24]}",
                "data": wire.audio_piece(reply.pcm, reply.rate_hz).decode(),
                "transcript": reply.text,
                # Already past: this server keeps nothing that a later request could refer to.
                "expires_at": 0,
            }
        if reply.calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{self._digest[:20]}_{index}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": orjson.dumps(dict(call.arguments)).decode()},
                }
                for index, call in enumerate(reply.calls)
            ]
        body: dict[str, Any] = {
            "id": f"chatcmpl-{self._digest[:24]}",
            "object": "chat.completion",
            "created": 0,
            "model": self._model,
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if reply.calls else "stop"}],
        }
        if reply.usage:
            body["usage"] = dict(reply.usage)
        yield OutFrame(wire.encode(body))

    def failure(self, code: str, message: str) -> Sequence[OutFrame]:
        """The body of a failed request; its HTTP status is `wire.ERROR_STATUS.get(code, 500)`."""
        return [OutFrame(wire.error_body(code, message))]


def _audio(part: JsonObject, where: str) -> AudioGiven:
    audio = object_of(part, "input_audio")
    if audio.get("format") != "wav":
        raise _BadRequestError("input_audio.format must be wav here", f"{where}.input_audio.format")
    try:
        pcm, rate_hz = wire.audio_of(text_of(audio, "data") or "")
    except wav.WavError as error:
        raise _BadRequestError(f"input_audio.data: {error}", f"{where}.input_audio.data") from None
    return AudioGiven(pcm, rate_hz)


def _tool(tool: object, index: int) -> ToolSpec:
    function = object_of(tool, "function") if isinstance(tool, dict) else {}
    name = text_of(function, "name")
    if not name:
        raise _BadRequestError("a tool needs function.name", f"tools[{index}].function.name")
    return ToolSpec(name, text_of(function, "description") or "", object_of(function, "parameters"))
