"""Reading answers of chat.completions: a whole body, or chunks that end with `[DONE]`; both mean the same events.

Tolerant of what servers are known to differ in: calls without a name, arguments as an object, usage missing, a failed
upstream with status 200. One object per session; `begin` before each request.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import orjson

from adapters.chat_audio import tool_prompt, wav, wire
from adapters.chat_audio.faults import fault_in_body, unusable_call
from adapters.chat_audio.hearing import unheard
from adapters.chat_audio.settings import ChatSettings
from adapters.foreign_json import JsonObject, brief, decode, int_of, list_of, masked, object_of, read_arguments, text_of
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Event,
    Failed,
    FailureKind,
    Refused,
    Served,
    TextDelta,
    ToolCall,
    ToolCallArguments,
    ToolCallStarted,
    TranscriptDelta,
    Usage,
    Warned,
)

DONE: Final = b"[DONE]"
"""Last line of a streamed answer."""
_ENDS: Final = {"length": AnswerEnd.LENGTH, "content_filter": AnswerEnd.CONTENT_FILTER}
"""Other finish reasons are not reliable across providers: the answer counts as completed."""
_MAX_CALLS: Final = 128


@dataclass(slots=True)
class _Streamed:
    """What a streamed answer has shown so far."""

    calls: dict[int, JsonObject] = field(default_factory=dict)
    ids: dict[int, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    transcript: list[str] = field(default_factory=list)
    audio_rest: str = ""
    """Base64 that makes no whole group of four yet."""
    about: JsonObject = field(default_factory=dict)
    """Model, upstream and usage, as any chunk told them."""
    finish_reason: str = ""
    began: bool = False


class Answers:
    """Turns response payloads into events, for one session."""

    def __init__(self, settings: ChatSettings, pinned_upstream: str | None, secrets: Sequence[str]) -> None:
        self._settings = settings
        self._pinned = pinned_upstream
        self._secrets = secrets
        self.open_calls: dict[str, tuple[str, str]] = {}
        """Calls without a result: our id, and the vendor's with the tool's name."""
        self._spoken = False
        self._prompted = False
        self._stream = _Streamed()

    def turn(self, *, spoken: bool) -> None:
        """The caller's turn begins: as audio, or as words."""
        self._spoken = spoken

    def begin(self, *, prompted: bool) -> None:
        """A request goes out; `prompted`: its tools are in the instructions."""
        self._prompted = prompted
        self._stream = _Streamed()

    def read(self, payload: bytes) -> tuple[list[Event], JsonObject | None]:
        """Events of a payload, and the message to remember once the answer is whole."""
        if payload.strip() == DONE:
            return self._end_of_stream()
        body = decode(payload)
        if body is None:
            start = brief(payload[:80].decode("utf-8", "backslashreplace"), 200)
            return [self._failed("unreadable_response", f"the response is not a JSON object: {start}")], None
        choices = list_of(body, "choices")
        choice = choices[0] if choices and isinstance(choices[0], dict) else {}
        # A failed upstream may come with status 200, with or without a choice.
        for holder in (body, choice):
            if holder.get("error"):
                return self._fault(holder["error"]), None
        if body.get("object") == "chat.completion.chunk" or "delta" in choice:
            return self._chunk(body, choice), None
        message = choice.get("message")
        if not isinstance(message, dict):
            what = f"no message in the response; fields: {', '.join(body)}"
            return [self._failed("no_answer_in_response", what)], None
        return self._whole(body, choice, message)

    def _fault(self, error: object) -> list[Event]:
        wrote = unusable_call(error) if isinstance(error, dict) else None
        if wrote is None:
            fault = fault_in_body(error)
            return [replace(fault, message=masked(fault.message, self._secrets))]
        self.open_calls = {}
        return [*_unreadable_call(wrote), AnswerEnded(AnswerEnd.COMPLETED, "unusable call")]

    # A whole body

    def _whole(
        self, body: JsonObject, choice: JsonObject, message: JsonObject
    ) -> tuple[list[Event], JsonObject | None]:
        events: list[Event] = []
        said = wire.words_of(message.get("content")) or text_of(message, "refusal") or ""
        audio = object_of(message, "audio")
        transcript = text_of(audio, "transcript") or ""
        calls = list_of(message, "tool_calls")
        if self._prompted and not calls:
            events += self._prompted_answer(said)
        elif said:
            events.append(TextDelta(said))
        if transcript:
            events.append(TranscriptDelta(transcript))
        events += _speech(audio)
        self.open_calls = self.open_calls if self._prompted and not calls else {}
        for index, call in enumerate(calls[:_MAX_CALLS]):
            events += self._call(call, index)
        finish_reason = text_of(choice, "finish_reason") or ""
        events += self._closing(body, finish_reason, said + transcript, called=_calls_in(events))
        return events, _remembered(said or transcript, calls)

    def _call(self, call: object, index: int) -> list[Event]:
        """A call that is no object, or has no name, is still a call: a wrong one."""
        fields: JsonObject = call if isinstance(call, dict) else {}
        function = object_of(fields, "function")
        vendor_id = text_of(fields, "id") or ""
        call_id = vendor_id if vendor_id and vendor_id not in self.open_calls else f"{vendor_id}#{index}"
        name = text_of(function, "name") or None
        self.open_calls[call_id] = (vendor_id, name or "")
        stated = function.get("arguments")
        if fields and (stated is None or isinstance(stated, str)):
            arguments_json = stated or ""
        else:
            arguments_json = orjson.dumps(stated if fields else call).decode()
        arguments = read_arguments(arguments_json)
        return [
            ToolCallStarted(call_id, name, index),
            ToolCall(call_id, name, arguments_json, arguments, index),
        ]

    def _prompted_answer(self, text: str) -> list[Event]:
        """What a model without a tool template wrote; anything but the protocol is a wrong call."""
        self.open_calls = {}
        said = tool_prompt.read(text)
        if said is None:
            return _unreadable_call(text)
        events: list[Event] = [TextDelta(said.say)] if said.say else []
        if said.tool is not None:
            self.open_calls = {"prompted": ("prompted", said.tool)}
            written = orjson.dumps(said.arguments).decode()
            events += [
                ToolCallStarted("prompted", said.tool, 0),
                ToolCall("prompted", said.tool, written, said.arguments, 0),
            ]
        return events

    # Chunks

    def _chunk(self, body: JsonObject, choice: JsonObject) -> list[Event]:
        stream = self._stream
        stream.began = True
        stream.about |= {key: body[key] for key in ("id", "model", "provider", "usage") if body.get(key)}
        stream.finish_reason = text_of(choice, "finish_reason") or stream.finish_reason
        delta = object_of(choice, "delta")
        events: list[Event] = []
        if said := text_of(delta, "content"):
            stream.said.append(said)
            if not self._prompted:
                events.append(TextDelta(said))
        audio = object_of(delta, "audio")
        if transcript := text_of(audio, "transcript"):
            stream.transcript.append(transcript)
            events.append(TranscriptDelta(transcript))
        if data := text_of(audio, "data"):
            events += self._streamed_speech(data)
        for call in list_of(delta, "tool_calls"):
            events += self._fragment(call)
        return events

    def _fragment(self, call: object) -> list[Event]:
        """Id and name come with the first fragment alone."""
        fields: JsonObject = call if isinstance(call, dict) else {}
        stream = self._stream
        index = int_of(fields, "index")
        if index is None or not 0 <= index < _MAX_CALLS:
            index = max(stream.calls, default=0)
        function = object_of(fields, "function")
        events: list[Event] = []
        if index not in stream.calls:
            given = text_of(fields, "id") or ""
            taken = stream.ids.values()
            stream.ids[index] = given if given and given not in taken else f"{given}#{index}"
            stream.calls[index] = {"id": given, "type": "function", "function": {"name": "", "arguments": ""}}
            events.append(ToolCallStarted(stream.ids[index], text_of(function, "name") or None, index))
        joined = stream.calls[index]["function"]
        joined["name"] = joined["name"] or text_of(function, "name") or ""
        if piece := text_of(function, "arguments"):
            joined["arguments"] += piece
            events.append(ToolCallArguments(stream.ids[index], piece))
        return events

    def _streamed_speech(self, data: str) -> list[Event]:
        """Bare PCM16, whatever format was asked for; pieces need not end with a group of base64."""
        text = self._stream.audio_rest + data
        whole = len(text) - len(text) % 4
        self._stream.audio_rest = text[whole:]
        try:
            pcm = binascii.a2b_base64(text[:whole])
        except ValueError:
            return [Warned("unreadable_audio", "the reply's audio cannot be read: not base64")]
        return [AudioDelta(pcm, wire.RATE_HZ)] if pcm else []

    def _end_of_stream(self) -> tuple[list[Event], JsonObject | None]:
        stream = self._stream
        if not stream.began:
            return [self._failed("no_answer_in_response", "the stream ended before any chunk")], None
        said, transcript = "".join(stream.said), "".join(stream.transcript)
        self.open_calls = {}
        events: list[Event] = []
        if self._prompted and not stream.calls:
            events += self._prompted_answer(said)
        for index, call in sorted(stream.calls.items()):
            function, call_id = call["function"], stream.ids[index]
            written, name = function["arguments"], function["name"] or None
            self.open_calls[call_id] = (call["id"], name or "")
            events.append(ToolCall(call_id, name, written, read_arguments(written), index))
        called = bool(stream.calls) or _calls_in(events)
        events += self._closing(stream.about, stream.finish_reason, said + transcript, called=called)
        calls = [call for _, call in sorted(stream.calls.items())]
        return events, _remembered(said or transcript, calls)

    # The end of either

    def _closing(self, body: JsonObject, finish_reason: str, said: str, *, called: bool) -> list[Event]:
        usage = object_of(body, "usage")
        upstream = text_of(body, "provider")
        stated = {"model": text_of(body, "model"), "upstream": upstream, "finish_reason": finish_reason or None}
        details = {key: brief(text, 200) for key, text in stated.items() if text}
        temperature = self._settings.temperature
        details["temperature"] = "vendor default" if temperature is None else f"{temperature:g}"
        events: list[Event] = [Served(details)]
        if usage:
            events.append(Usage(usage))
        if self._pinned and upstream and not _same_upstream(self._pinned, upstream):
            events.append(Warned("other_upstream", f"pinned to {self._pinned}, answered by {brief(upstream, 100)}"))
        deaf = unheard(usage, said, called, self._settings.usage_tells_hearing) if self._spoken else None
        if deaf is not None:
            return [*events, deaf]
        return [*events, AnswerEnded(_ENDS.get(finish_reason, AnswerEnd.COMPLETED), brief(finish_reason, 100))]

    def _failed(self, code: str, text: str) -> Refused | Failed:
        return Failed(FailureKind.PROTOCOL, code, masked(brief(text), self._secrets))


def _unreadable_call(wrote: str) -> list[Event]:
    """A call whose words cannot be read: a wrong call, never "no call"."""
    written = orjson.dumps(wrote).decode()
    return [ToolCallStarted("unreadable", None, 0), ToolCall("unreadable", None, written, None, 0)]


def _calls_in(events: Sequence[Event]) -> bool:
    return any(isinstance(event, ToolCall) for event in events)


def _remembered(words: str, calls: Sequence[object]) -> JsonObject:
    """The answer as later requests repeat it; speech as words, since servers other than OpenAI's know no audio ids."""
    message: JsonObject = {"role": "assistant", "content": words or None}
    if calls:
        message["tool_calls"] = list(calls)
    return message


def _speech(audio: JsonObject) -> list[Event]:
    data = text_of(audio, "data")
    if not data:
        return []
    try:
        pcm, rate_hz = wire.audio_of(data)
    except wav.WavError as error:
        return [Warned("unreadable_audio", f"the reply's audio cannot be read: {error}")]
    return [AudioDelta(pcm, rate_hz, text_of(audio, "id"))]


def _same_upstream(pinned: str, told: str) -> bool:
    """Slug and shown name of one upstream differ in case, spaces and what follows a slash or a dash."""
    slug, name = ("".join(char for char in text.lower() if char.isalnum()) for text in (pinned, told))
    return slug.startswith(name) or name.startswith(slug)
