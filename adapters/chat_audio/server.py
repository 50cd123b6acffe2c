"""Server half of file mode over chat.completions, for one request: body in, body (or a stream of events) out.

In `ServerStep.close` stands the HTTP status of a refusal, since a request has no close code; its body is the frame.
Frames of a streamed answer carry their own framing (`data: …`), by which the emulator knows them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import orjson

from adapters.chat_audio import misbehaviour, tool_prompt, wav, wire
from adapters.chat_audio.hearing import audio_units
from adapters.chat_audio.profile import ServerProfile
from adapters.dialect import Setup, ToolSpec
from adapters.foreign_json import JsonObject, decode, list_of, object_of, text_of
from adapters.server import AnswerWanted, AudioGiven, Intent, Reply, ServerStep, SetupGiven, ToolResultGiven
from captures.frames import InFrame, OutFrame

ANY_SERVER: Final = ServerProfile()
_PIECE_CHARS: Final = 16
"""Of a streamed text or call's arguments."""
_SPEECH_PIECE_BYTES: Final = 48_000


class _BadRequestError(ValueError):
    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.param = param


class ChatAudioServer:
    """`ServerDialect` of file mode over chat.completions."""

    def __init__(self, profile: ServerProfile = ANY_SERVER) -> None:
        self._profile = profile
        self._model = ""
        self._speaks = False
        self._streams = False
        self._usage_wanted = True
        self._prompted = False
        self._heard_s = 0.0
        self._digest = ""

    @property
    def answer_faults(self) -> Mapping[str, Any]:
        """See `adapters.misbehaviour.Misbehaves`."""
        faults = {"cut-arguments": misbehaviour.cut_arguments}
        if self._profile.usage is not None and audio_units(self._profile.usage(1.0)) is not None:
            faults["deaf"] = misbehaviour.deaf
        if self._profile.error_in_body:
            faults["error-in-body"] = misbehaviour.error_in_body
        return MappingProxyType(faults)

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
        self._check(body)
        messages = [message for message in list_of(body, "messages") if isinstance(message, dict)]
        self._speaks = "audio" in list_of(body, "modalities")
        self._usage_wanted = not self._streams or object_of(body, "stream_options").get("include_usage") is True
        self._digest = hashlib.sha256(payload).hexdigest()
        instructions, prompted = tool_prompt.tools_in(
            "\n".join(
                wire.words_of(message.get("content"))
                for message in messages
                if message.get("role") in ("system", "developer")
            )
        )
        self._prompted = bool(prompted)
        caller, at, results = self._caller(messages)
        audio = [self._audio(part, f"messages[{at}]") for part in wire.parts_of(caller, "input_audio")]
        self._heard_s = sum(len(piece.pcm) / 2 / piece.rate_hz for piece in audio)
        tools = prompted or tuple(_tool(tool, index) for index, tool in enumerate(list_of(body, "tools")))
        setup = Setup(instructions, tools, audio[0].rate_hz if audio else wire.RATE_HZ)
        words = None if audio else wire.words_of(caller.get("content"))
        return [SetupGiven(setup), *audio, *results, AnswerWanted(words)]

    def _check(self, body: JsonObject) -> None:
        profile = self._profile
        self._model = text_of(body, "model") or ""
        if not self._model:
            raise _BadRequestError("you must provide a model", "model")
        self._streams = bool(body.get("stream"))
        if self._streams and not (profile.may_stream or profile.must_stream):
            raise _BadRequestError("streaming is not served here", "stream")
        if profile.must_stream and not self._streams:
            raise _BadRequestError("This model only support stream mode, please enable the stream parameter", "stream")
        complaint = profile.complaint(body)
        if complaint is not None:
            raise _BadRequestError(*complaint)

    def _caller(self, messages: Sequence[JsonObject]) -> tuple[JsonObject, int, list[Intent]]:
        """The caller's last turn, its place, and the results of calls after it."""
        results: list[Intent] = []
        for at in range(len(messages) - 1, -1, -1):
            message = messages[at]
            words = wire.words_of(message.get("content"))
            if message.get("role") == "tool":
                results.insert(0, ToolResultGiven(text_of(message, "tool_call_id") or "", words))
            elif message.get("role") == "user":
                told = tool_prompt.result_in(words) if self._prompted else None
                if told is None:
                    return message, at, results
                results.insert(0, ToolResultGiven("prompted", told))
        raise _BadRequestError("a message of role user is needed", "messages")

    def _audio(self, part: JsonObject, where: str) -> AudioGiven:
        try:
            form, data = self._profile.audio_of_part(part)
        except wire.BadPartError as error:
            raise _BadRequestError(str(error), f"{where}.{error.field}") from None
        if form != "wav":
            raise _BadRequestError("input_audio.format must be wav here", f"{where}.input_audio.format")
        try:
            pcm, rate_hz = wire.audio_of(data)
        except wav.WavError as error:
            raise _BadRequestError(f"input_audio.data: {error}", f"{where}.input_audio.data") from None
        return AudioGiven(pcm, rate_hz)

    # Answering

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """The response body, or the events of a stream. Speech is left out when the request did not ask for it."""
        message = self._message(reply)
        usage = dict(reply.usage) or (self._profile.usage(self._heard_s) if self._profile.usage else {})
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        about: dict[str, Any] = {
            "id": f"chatcmpl-{self._digest[:24]}",
            "object": "chat.completion.chunk" if self._streams else "chat.completion",
            "created": 0,
            "model": self._model,
            **self._profile.answer_fields,
        }
        if self._streams:
            yield from self._chunks(about, message, finish, usage if self._usage_wanted else {})
            return
        body = about | {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}
        yield OutFrame(wire.encode(body | ({"usage": usage} if usage else {})))

    def _message(self, reply: Reply) -> JsonObject:
        if self._prompted:
            call = reply.calls[0] if reply.calls else None
            said = (
                tool_prompt.call_text(call.name, dict(call.arguments), reply.text)
                if call
                else tool_prompt.say_text(reply.text)
            )
            return {"role": "assistant", "content": said}
        message: JsonObject = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if self._speaks and reply.pcm and not self._profile.text_only:
            message["content"] = None
            message["audio"] = {
                "id": f"audio_{self._digest[:24]}",
                "data": wire.audio_piece(reply.pcm, reply.rate_hz).decode(),
                "transcript": reply.text,
                # Already past: this server keeps nothing that a later request could refer to.
                "expires_at": 0,
            }
            if self._profile.raw_speech:
                message["audio"]["data"] = base64.b64encode(reply.pcm).decode()
        if reply.calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{self._digest[:20]}_{index}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": self._arguments(dict(call.arguments))},
                }
                for index, call in enumerate(reply.calls)
            ]
        return message

    def _arguments(self, arguments: JsonObject) -> JsonObject | str:
        return arguments if self._profile.arguments_as_object else orjson.dumps(arguments).decode()

    def _chunks(self, about: JsonObject, message: JsonObject, finish: str, usage: JsonObject) -> Iterator[OutFrame]:
        """The events of a streamed answer, usage last, as the vendors have it."""

        def event(delta: JsonObject, reason: str | None = None) -> OutFrame:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            return wire.event(about | {"choices": [choice], "usage": None})

        yield event({"role": "assistant", "content": ""})
        for piece in _pieces(message.get("content") or "", _PIECE_CHARS):
            yield event({"content": piece})
        audio = object_of(message, "audio")
        for piece in _pieces(text_of(audio, "transcript") or "", _PIECE_CHARS):
            yield event({"audio": {"transcript": piece}})
        for piece in _pieces(text_of(audio, "data") or "", _SPEECH_PIECE_BYTES):
            yield event({"audio": {"data": piece}})
        for index, call in enumerate(list_of(message, "tool_calls")):
            function = call["function"]
            opening = {"name": function["name"], "arguments": ""}
            yield event({"tool_calls": [{**call, "index": index, "function": opening}]})
            for piece in _pieces(function["arguments"], _PIECE_CHARS):
                yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield event({}, finish)
        if usage:
            yield wire.event(about | {"choices": [], "usage": usage})
        yield wire.LAST_EVENT

    def failure(self, code: str, message: str) -> Sequence[OutFrame]:
        """The body of a failed request; its HTTP status is `wire.ERROR_STATUS.get(code, 500)`."""
        return [OutFrame(wire.error_body(code, message))]


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _tool(tool: object, index: int) -> ToolSpec:
    function = object_of(tool, "function") if isinstance(tool, dict) else {}
    name = text_of(function, "name")
    if not name:
        raise _BadRequestError("a tool needs function.name", f"tools[{index}].function.name")
    return ToolSpec(name, text_of(function, "description") or "", object_of(function, "parameters"))
