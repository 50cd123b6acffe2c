"""Client half of file mode over chat.completions: one request body per turn, one response body per answer.

The clip is held until commit; nothing is paced and nothing streams. The peer keeps no session, so every request
carries the whole conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

import orjson

from adapters.chat_audio import wav, wire
from adapters.chat_audio.faults import fault_in_body, fault_of_request
from adapters.chat_audio.settings import ChatAudioSettings
from adapters.dialect import (
    Capabilities,
    EncodedClip,
    InputTooLargeError,
    SettingsError,
    Setup,
    TargetSettings,
    TurnMode,
)
from adapters.foreign_json import JsonObject, brief, decode, list_of, masked, object_of, read_arguments, text_of
from adapters.target_settings import bearer_headers, read_address, read_settings, secret_values
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Event,
    Failed,
    FailureKind,
    Refused,
    TextDelta,
    ToolCall,
    ToolCallStarted,
    TranscriptDelta,
    Usage,
    Warned,
)
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint, TransportError

_CAPABILITIES: Final = Capabilities(
    text_twin=True,
    probe=True,
    turn_modes=frozenset({TurnMode.MANUAL}),
    input_rates_hz=(wire.RATE_HZ,),
    output_rate_hz=wire.RATE_HZ,
    streams_audio=False,
    max_input_bytes=wire.MAX_REQUEST_BYTES,
)
_ENDS: Final = {"length": AnswerEnd.LENGTH, "content_filter": AnswerEnd.CONTENT_FILTER}
"""Other finish reasons are not reliable across providers: the answer counts as completed."""


class ChatAudioClient:
    """`ClientDialect` of file mode over chat.completions for one session."""

    def __init__(self, target: TargetSettings) -> None:
        """Raises `SettingsError`: unknown or invalid settings, no model, or an address that is none."""
        if not target.model:
            raise SettingsError("model: required")
        self._settings = read_settings(ChatAudioSettings, target.extra)
        base_url = target.base_url or wire.BASE_URL
        parts, label = read_address(base_url, ("http", "https"), "https://host/v1")
        if parts.query or parts.fragment:
            raise SettingsError("base_url: must end before any ? or #")
        headers = bearer_headers(self._settings.headers, target.api_key)
        self._endpoint = Endpoint(base_url, headers, label)
        self._secrets = secret_values(headers)
        # OpenAI itself serves no request without audio on either side.
        silent_vendor = parts.hostname == urlsplit(wire.BASE_URL).hostname and not self._settings.speaks
        self.capabilities = replace(_CAPABILITIES, text_twin=not silent_vendor)
        self._model = target.model
        self._setup = Setup("", (), wire.RATE_HZ)
        self._history: list[JsonObject] = []
        self._held: list[bytes] = []
        self._open_calls: dict[str, str] = {}
        """Calls without a result: our id and the vendor's."""

    # Verbs

    def endpoint(self) -> Endpoint:
        """The base URL; the key goes into `Authorization`."""
        return self._endpoint

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        """Nothing to send: the setup is part of each request."""
        self._setup = setup
        return ()

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """The whole clip as one held frame: a WAV file in base64. `chunk_ms` is only noted.

        Raises:
            InputTooLargeError: no request could carry the clip.
            ValueError: half a sample.
        """
        if len(pcm) % 2:
            raise ValueError("needs whole 16-bit samples")
        piece = wire.audio_piece(pcm, rate_hz)
        _check_size(len(piece))
        return EncodedClip((OutFrame(piece, held=True),), chunk_ms, rate_hz, len(pcm) // 2)

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        """A held frame of its own, which becomes a second audio part of the turn."""
        return OutFrame(wire.audio_piece(bytes(2 * round(rate_hz * duration_ms / 1000)), rate_hz), held=True)

    def start_turn(self) -> Sequence[OutFrame]:
        """Nothing is sent before the commit."""
        return ()

    def hold(self, frame: OutFrame) -> None:
        """Keep a piece of the caller's turn until commit."""
        self._held.append(frame.payload)

    def commit_turn(self) -> Sequence[OutFrame]:
        """The request with everything held.

        Raises:
            InputTooLargeError: larger than the vendor takes.
        """
        pieces, self._held = self._held, []
        return self._request(wire.user_audio(pieces))

    def text(self, text: str) -> Sequence[OutFrame]:
        """The request with the caller's words.

        Raises:
            InputTooLargeError: larger than the vendor takes.
        """
        return self._request(wire.user_text(text))

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """The request to go on, once every call has its result: the vendor refuses one with calls unanswered.

        Raises:
            InputTooLargeError: larger than the vendor takes.
        """
        message = wire.tool_message(self._open_calls.pop(call_id, call_id), output)
        if self._open_calls:
            self._history.append(message)
            return ()
        return self._request(message)

    def cancel(self) -> Sequence[OutFrame]:
        """Nothing can be sent into a running request; closing the transport ends it."""
        return ()

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        """The vendor keeps no played speech."""
        return ()

    def close(self) -> Sequence[OutFrame]:
        """Nothing is owed."""
        return ()

    def _request(self, message: JsonObject) -> Sequence[OutFrame]:
        self._history.append(message)
        instructions = [wire.system_message(self._setup.instructions)] if self._setup.instructions else []
        body: JsonObject = {"model": self._model, "messages": [*instructions, *self._history]}
        if self._setup.tools:
            body["tools"] = wire.tool_list(self._setup.tools)
        body |= self._settings.request_fields(with_tools=bool(self._setup.tools))
        payload = wire.encode(body)
        _check_size(len(payload))
        return [OutFrame(payload)]

    # Reading

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events of a response body, all of them: it is a whole answer. Nothing is owed in return."""
        body = decode(frame.payload)
        if body is None:
            start = brief(frame.payload[:80].decode("utf-8", "backslashreplace"), 200)
            return [self._failed("unreadable_response", f"the response is not a JSON object: {start}")], ()
        choices = list_of(body, "choices")
        choice = choices[0] if choices and isinstance(choices[0], dict) else {}
        # A failed upstream may come with status 200, with or without a choice.
        for holder in (body, choice):
            if holder.get("error"):
                return [self._without_secrets(fault_in_body(holder["error"]))], ()
        message = choice.get("message")
        if not isinstance(message, dict):
            return [self._failed("no_answer_in_response", f"no message in the response; fields: {', '.join(body)}")], ()
        return [*self._answer(message), *_usage(body), _end(choice)], ()

    def connect_failed(self, error: TransportError) -> Event:
        """401, 403, 404 and other 4xx refuse; 429 is a limit or a used-up quota; 5xx and network may be tried again."""
        return self._without_secrets(fault_of_request(error))

    def closed(self, closed: ClosedBy) -> Event | None:
        """None: there is no connection to lose, a lost request is a failed one."""
        return None

    def _answer(self, message: JsonObject) -> list[Event]:
        events: list[Event] = []
        said = wire.words_of(message.get("content")) or text_of(message, "refusal") or ""
        if said:
            events.append(TextDelta(said))
        audio = object_of(message, "audio")
        transcript = text_of(audio, "transcript") or ""
        if transcript:
            events.append(TranscriptDelta(transcript))
        events += _speech(audio)
        calls = list_of(message, "tool_calls")
        # Spoken turns go into the history as words: servers other than OpenAI's know no audio ids.
        remembered: JsonObject = {"role": "assistant", "content": said or transcript or None}
        if calls:
            remembered["tool_calls"] = calls
        self._history.append(remembered)
        self._open_calls = {}
        for index, call in enumerate(calls):
            events += self._call(call, index)
        return events

    def _call(self, call: object, index: int) -> list[Event]:
        """A call that is no object, or has no name, is still a call: a wrong one."""
        fields: JsonObject = call if isinstance(call, dict) else {}
        function = object_of(fields, "function")
        vendor_id = text_of(fields, "id") or ""
        call_id = vendor_id if vendor_id and vendor_id not in self._open_calls else f"{vendor_id}#{index}"
        self._open_calls[call_id] = vendor_id
        name = text_of(function, "name") or None
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

    def _failed(self, code: str, text: str) -> Event:
        return self._without_secrets(Failed(FailureKind.PROTOCOL, code, brief(text)))

    def _without_secrets(self, fault: Refused | Failed) -> Event:
        return replace(fault, message=masked(fault.message, self._secrets))


def _speech(audio: JsonObject) -> list[Event]:
    data = text_of(audio, "data")
    if not data:
        return []
    try:
        pcm, rate_hz = wire.audio_of(data)
    except wav.WavError as error:
        return [Warned("unreadable_audio", f"the reply's audio cannot be read: {error}")]
    return [AudioDelta(pcm, rate_hz, text_of(audio, "id"))]


def _usage(body: JsonObject) -> list[Event]:
    usage = object_of(body, "usage")
    return [Usage(usage)] if usage else []


def _end(choice: JsonObject) -> Event:
    reason = text_of(choice, "finish_reason") or ""
    return AnswerEnded(_ENDS.get(reason, AnswerEnd.COMPLETED), brief(reason, 100))


def _check_size(size: int) -> None:
    if size > wire.MAX_REQUEST_BYTES:
        raise InputTooLargeError(size, wire.MAX_REQUEST_BYTES)
