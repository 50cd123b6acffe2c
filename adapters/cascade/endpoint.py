"""Requests with audio as a form: OpenAI's `/audio/transcriptions` and its lookalikes, and `/audio/tags` of our own.

`/audio/tags` takes the same form (`file`, `model`) and answers `{"tags": ["shouting", …]}`: whoever serves that is a
tagger. Facts on transcriptions: OpenAI's and Groq's API references; the form's file name needs its extension, since the
type is read from it. In a frame the form is JSON, `{"path", "fields", "file": "<WAV in base64>"}`; the
transport makes the form of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import orjson

from adapters.cascade.settings import EndpointSettings
from adapters.cascade.wire import clean_tags
from adapters.chat_audio import wire as chat_wire
from adapters.chat_audio.faults import fault_in_body, fault_of_request
from adapters.dialect import InputTooLargeError, SettingsError, TargetSettings
from adapters.foreign_json import JsonObject, brief, decode, list_of, masked, object_of, text_of
from adapters.target_settings import bearer_headers, read_address, read_settings, secret_values
from captures.events import Event, Failed, FailureKind, InputTranscript, Refused, Usage
from captures.frames import InFrame, OutFrame
from transports.transport import Endpoint, TransportError

RATE_HZ: Final = 16_000
"""What recognisers of speech work at."""
MAX_FILE_BYTES: Final = 25_000_000
"""Of an upload, as OpenAI and Groq state it."""
TRANSCRIPTIONS: Final = "/audio/transcriptions"
TAGS: Final = "/audio/tags"
MAX_TRANSCRIPT_CHARS: Final = 20_000


class FormStage:
    """One request with the caller's turn as a form, for one turn."""

    rates_hz: tuple[int, ...] = (RATE_HZ,)

    def __init__(self, target: TargetSettings, path: str, where: str) -> None:
        """Raises `SettingsError`, which names `where`: unknown settings, no model, an address that is none."""
        if not target.model and path == TRANSCRIPTIONS:
            raise SettingsError(f"{where}.model: required")
        self._settings = read_settings(EndpointSettings, target.extra, f"{where}.settings")
        base_url = target.base_url or chat_wire.BASE_URL
        try:
            parts, label = read_address(base_url, ("http", "https"), "https://host/v1")
        except SettingsError as error:
            raise SettingsError(f"{where}.{error}") from None
        if parts.query or parts.fragment:
            raise SettingsError(f"{where}.base_url: must end before any ? or #")
        headers = bearer_headers(self._settings.headers, target.api_key)
        self._endpoint = Endpoint(base_url, headers, label)
        self._secrets = secret_values(headers)
        self._model, self._path = target.model, path
        self._held: list[bytes] = []

    def endpoint(self) -> Endpoint:
        """The base URL; the path stands in the frame."""
        return self._endpoint

    def encoded(self, pcm: bytes, rate_hz: int) -> bytes:
        """A whole clip as it is held: a WAV file in base64.

        Raises:
            InputTooLargeError: larger than the vendor takes.
        """
        piece = chat_wire.audio_piece(pcm, rate_hz)
        if (size := len(piece) * 3 // 4) > MAX_FILE_BYTES:
            raise InputTooLargeError(size, MAX_FILE_BYTES)
        return piece

    def hold(self, piece: bytes) -> None:
        """Keep a piece of the caller's turn until commit."""
        self._held.append(piece)

    def request(self) -> Sequence[OutFrame]:
        """One request with everything held; several pieces are joined into one file."""
        piece = self._held[0] if len(self._held) == 1 else _joined(self._held)
        self._held = []
        fields = {"model": self._model} if self._model else {}
        if self._path == TRANSCRIPTIONS:
            fields["response_format"] = "json"
        else:
            fields["task"] = "tags"
        stated = self._settings.model_dump(exclude_none=True, include={"language", "prompt", "temperature"})
        fields |= {name: str(value) for name, value in stated.items()} | self._settings.fields
        head = b'{"path":' + orjson.dumps(self._path) + b',"fields":' + orjson.dumps(fields)
        return [OutFrame(head + b',"file":"' + piece + b'"}')]

    def receive(self, frame: InFrame) -> list[Event]:
        """The transcript, or the tags, with the vendor's usage; or what went wrong."""
        body = decode(frame.payload)
        if body is None:
            start = brief(frame.payload[:80].decode("utf-8", "backslashreplace"), 200)
            return [self._failed("unreadable_response", f"the response is not a JSON object: {start}")]
        if body.get("error"):
            return [self._without_secrets(fault_in_body(body["error"]))]
        if self._path == TAGS:
            if not isinstance(body.get("tags"), list):
                return [self._failed("no_tags_in_response", f"no list of tags; fields: {', '.join(body)}")]
            return [InputTranscript("", tags=clean_tags(list_of(body, "tags")))]
        words = text_of(body, "text")
        if words is None:
            return [self._failed("no_text_in_response", f"no text in the response; fields: {', '.join(body)}")]
        # An empty transcript is a valid one: some models write nothing on silence.
        return [InputTranscript(words[:MAX_TRANSCRIPT_CHARS].strip()), *_usage(body)]

    def connect_failed(self, error: TransportError) -> Event:
        """As in chat completions: 401, 403, 404 and other 4xx refuse; 429 is a limit; 413 concerns this clip alone."""
        return self._without_secrets(fault_of_request(error))

    def _failed(self, code: str, text: str) -> Event:
        return self._without_secrets(Failed(FailureKind.PROTOCOL, code, brief(f"{self._path}: {text}")))

    def _without_secrets(self, fault: Refused | Failed) -> Event:
        return replace(fault, message=masked(fault.message, self._secrets))


def _joined(pieces: Sequence[bytes]) -> bytes:
    """Several WAV files of one rate as one."""
    decoded = [chat_wire.audio_of(piece.decode()) for piece in pieces]
    rate_hz = decoded[0][1] if decoded else RATE_HZ
    return chat_wire.audio_piece(b"".join(pcm for pcm, _ in decoded), rate_hz)


def _usage(body: JsonObject) -> list[Event]:
    usage = object_of(body, "usage")
    return [Usage({"transcription": usage})] if usage else []
