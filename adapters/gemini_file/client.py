"""Client half of generateContent: one request body per turn, one response body per answer.

The clip is held until commit and nothing is paced. The API keeps no session, so every request carries the whole
conversation, the model's own parts exactly as received: their signatures are checked. Tools are shown as Gemini Live
shows them, so that a pair of the two modes sees the same menu.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

import orjson

from adapters.chat_audio import wav
from adapters.chat_audio.hearing import unheard
from adapters.dialect import (
    Capabilities,
    EncodedClip,
    InputTooLargeError,
    InputTooLongError,
    Setup,
    TargetSettings,
    TurnMode,
)
from adapters.foreign_json import (
    JsonObject,
    brief,
    decode,
    list_of,
    masked,
    object_of,
    read_arguments,
    text_of,
    too_deep,
)
from adapters.gemini_file.faults import fault_of_body, fault_of_request
from adapters.gemini_file.settings import MAX_AUDIO_S, MAX_REQUEST_BYTES, GeminiFileSettings, endpoint
from adapters.gemini_live.schema import Translated, translate, undone
from adapters.target_settings import read_settings, secret_values
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    Event,
    Failed,
    FailureKind,
    Served,
    TextDelta,
    ToolCall,
    ToolCallStarted,
    Usage,
    Warned,
)
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint, TransportError

RATE_HZ: Final = 16_000
_CAPABILITIES: Final = Capabilities(
    text_twin=True,
    probe=True,
    turn_modes=frozenset({TurnMode.MANUAL}),
    input_rates_hz=(RATE_HZ,),
    output_rate_hz=RATE_HZ,
    streams_audio=False,
    max_input_bytes=MAX_REQUEST_BYTES,
)
_ENDS: Final = {
    "MAX_TOKENS": AnswerEnd.LENGTH,
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"), AnswerEnd.CONTENT_FILTER
    ),
}
_WRONG_CALLS: Final = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"})
"""The model called, but not so that its vendor could read it: a wrong call, never none."""
_LOST_SIGNATURE: Final = "MISSING_THOUGHT_SIGNATURE"
_VENDOR: Final = "Gemini"


class GeminiFileClient:
    """`ClientDialect` of generateContent for one session."""

    capabilities = _CAPABILITIES

    def __init__(self, target: TargetSettings) -> None:
        """Raises `SettingsError`: unknown or invalid settings, no model or a Live one, an address that is none."""
        self._settings = read_settings(GeminiFileSettings, target.extra)
        self._endpoint = endpoint(target, self._settings)
        self._secrets = secret_values(self._endpoint.headers)
        self._setup = Setup("", (), RATE_HZ)
        self._tools: dict[str, Translated] = {}
        self._history: list[JsonObject] = []
        self._held: list[bytes] = []
        self._open_calls: dict[str, JsonObject] = {}
        """Calls without a result: our id, and the `functionResponse` that answers it."""
        self._answered: list[JsonObject] = []
        self._spoken = False

    # Verbs

    def endpoint(self) -> Endpoint:
        """The API's base; the key goes into `x-goog-api-key`."""
        return self._endpoint

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        """Nothing to send: the setup is part of each request. Raises SettingsError for an untranslatable tool."""
        self._setup = setup
        self._tools = {tool.name: translate(tool) for tool in setup.tools}
        return ()

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """The whole clip as one held frame: a WAV file in base64. `chunk_ms` is only noted.

        Raises:
            InputTooLargeError: no request could carry the clip, or it lasts longer than one prompt may.
            ValueError: half a sample.
        """
        if len(pcm) % 2:
            raise ValueError("needs whole 16-bit samples")
        if (length_s := len(pcm) / 2 / rate_hz) > MAX_AUDIO_S:
            raise InputTooLongError(length_s, MAX_AUDIO_S, _VENDOR)
        piece = base64.b64encode(wav.encode(pcm, rate_hz))
        _check_size(len(piece))
        return EncodedClip((OutFrame(piece, held=True),), chunk_ms, rate_hz, len(pcm) // 2)

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        """A held frame of its own, which becomes a second audio part of the turn."""
        pcm = bytes(2 * round(rate_hz * duration_ms / 1000))
        return OutFrame(base64.b64encode(wav.encode(pcm, rate_hz)), held=True)

    def start_turn(self) -> Sequence[OutFrame]:
        """Nothing is sent before the commit."""
        return ()

    def hold(self, frame: OutFrame) -> None:
        """Keep a piece of the caller's turn until commit."""
        self._held.append(frame.payload)

    def commit_turn(self) -> Sequence[OutFrame]:
        """The request with everything held. Raises InputTooLargeError: larger than the vendor takes."""
        pieces, self._held = self._held, []
        self._spoken = True
        return self._request([{"inlineData": {"mimeType": "audio/wav", "data": piece.decode()}} for piece in pieces])

    def text(self, text: str) -> Sequence[OutFrame]:
        """The request with the caller's words. Raises InputTooLargeError: larger than the vendor takes."""
        self._spoken = False
        return self._request([{"text": text}])

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """The request to go on, once every call has its result, in the order of the calls.

        Raises:
            InputTooLargeError: larger than the vendor takes.
        """
        response = self._open_calls.pop(call_id, {"name": call_id})
        self._answered.append({"functionResponse": response | {"response": {"result": output}}})
        if self._open_calls:
            return ()
        answered, self._answered = self._answered, []
        return self._request(answered)

    def cancel(self) -> Sequence[OutFrame]:
        """Nothing can be sent into a running request; closing the transport ends it."""
        return ()

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        """The vendor keeps no played speech."""
        return ()

    def close(self) -> Sequence[OutFrame]:
        """Nothing is owed."""
        return ()

    def _request(self, parts: list[JsonObject]) -> Sequence[OutFrame]:
        self._history.append({"role": "user", "parts": parts})
        body: JsonObject = {"contents": self._history}
        if self._setup.instructions:
            body["systemInstruction"] = {"parts": [{"text": self._setup.instructions}]}
        if self._setup.tools:
            body["tools"] = [{"functionDeclarations": [self._declaration(tool.name) for tool in self._setup.tools]}]
            if self._settings.function_calling is not None:
                body["toolConfig"] = {"functionCallingConfig": {"mode": self._settings.function_calling}}
        if config := self._settings.generation_config():
            body["generationConfig"] = config
        payload = orjson.dumps(body)
        _check_size(len(payload))
        return [OutFrame(payload)]

    def _declaration(self, name: str) -> JsonObject:
        tool = next(tool for tool in self._setup.tools if tool.name == name)
        shown = self._tools[name].parameters
        declared: JsonObject = {"name": name, "description": tool.description}
        return declared if shown is None else declared | {"parameters": shown}

    # Reading

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events of a response body, all of them: it is a whole answer. Nothing is owed in return."""
        body = decode(frame.payload)
        if body is None:
            start = brief(frame.payload[:80].decode("utf-8", "backslashreplace"), 200)
            return [self._failed("unreadable_response", f"the response is not a JSON object: {start}")], ()
        if body.get("error"):
            return [fault_of_body(object_of(body, "error"), self._endpoint.label, self._secrets)], ()
        candidates = list_of(body, "candidates")
        blocked = text_of(object_of(body, "promptFeedback"), "blockReason")
        if not candidates and blocked is not None:
            ended = AnswerEnded(AnswerEnd.CONTENT_FILTER, brief(f"prompt blocked: {blocked}", 100))
            return [self._served(body, blocked), *_usage(body), ended], ()
        candidate = candidates[0] if candidates and isinstance(candidates[0], dict) else None
        if candidate is None:
            return [self._failed("no_answer_in_response", f"no candidates; fields: {', '.join(body)}")], ()
        return self._answer(body, candidate), ()

    def connect_failed(self, error: TransportError) -> Event:
        """Refused keys and requests, limits and used-up quotas by the vendor's own words."""
        return fault_of_request(error, self._endpoint.label, self._secrets)

    def closed(self, closed: ClosedBy) -> Event | None:
        """None: there is no connection to lose, a lost request is a failed one."""
        return None

    def _answer(self, body: JsonObject, candidate: JsonObject) -> list[Event]:
        content = object_of(candidate, "content")
        parts = [part for part in list_of(content, "parts") if isinstance(part, dict)]
        reason = text_of(candidate, "finishReason") or ""
        if reason == _LOST_SIGNATURE:
            return [self._failed("missing_thought_signature", "the vendor misses a signature in the conversation")]
        if content:
            self._history.append(content)
        self._open_calls, self._answered = {}, []
        events: list[Event] = []
        said = ""
        for part in parts:
            if (text := text_of(part, "text")) and not part.get("thought"):
                said += text
                events.append(TextDelta(text))
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        for index, call in enumerate(calls):
            events += self._call(call, index)
        if reason in _WRONG_CALLS and not calls:
            written = orjson.dumps(text_of(candidate, "finishMessage") or reason).decode()
            events += [
                ToolCallStarted("unreadable", None, 0),
                ToolCall("unreadable", None, written, None, 0),
            ]
        events += [self._served(body, reason), *_usage(body)]
        called = any(isinstance(event, ToolCall) for event in events)
        usage = object_of(body, "usageMetadata")
        deaf = unheard(usage, said, called, self._settings.usage_tells_hearing) if self._spoken else None
        if deaf is not None:
            return [*events, deaf]
        return [*events, AnswerEnded(_ENDS.get(reason, AnswerEnd.COMPLETED), brief(reason, 100))]

    def _call(self, call: Any, index: int) -> list[Event]:
        """A call that is no object, or has no name, is still a call: a wrong one."""
        fields: JsonObject = call if isinstance(call, dict) else {}
        vendor_id, name = text_of(fields, "id"), text_of(fields, "name") or None
        call_id = vendor_id if vendor_id and vendor_id not in self._open_calls else f"{vendor_id or 'call'}#{index}"
        self._open_calls[call_id] = {"name": name or ""} | ({"id": vendor_id} if vendor_id else {})
        stated = fields.get("args", {} if fields else call)
        written = orjson.dumps(stated).decode()
        arguments = stated if isinstance(stated, dict) and not too_deep(stated) else None
        if isinstance(stated, str):
            arguments = read_arguments(stated)
        events: list[Event] = [ToolCallStarted(call_id, name, index)]
        shown = self._tools.get(name or "")
        if arguments is not None and shown is not None:
            arguments, changes = undone(arguments, shown.undo)
            events += [Warned("argument_turned_back", brief(change, 200)) for change in changes]
        return [*events, ToolCall(call_id, name, written, arguments, index)]

    def _served(self, body: JsonObject, reason: str) -> Event:
        stated = {"model": text_of(body, "modelVersion"), "finish_reason": reason or None}
        details = {key: brief(text, 200) for key, text in stated.items() if text}
        temperature = self._settings.temperature
        details["temperature"] = "vendor default" if temperature is None else f"{temperature:g}"
        return Served(details)

    def _failed(self, code: str, text: str) -> Event:
        return Failed(FailureKind.PROTOCOL, code, masked(brief(text), self._secrets))


def _usage(body: JsonObject) -> list[Event]:
    usage = object_of(body, "usageMetadata")
    return [Usage(usage)] if usage else []


def _check_size(size: int) -> None:
    if size > MAX_REQUEST_BYTES:
        raise InputTooLargeError(size, MAX_REQUEST_BYTES, _VENDOR)
