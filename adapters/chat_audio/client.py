"""Client half of file mode over chat.completions: one request body per turn, one answer, whole or in chunks.

The clip is held until commit and nothing is paced. The peer keeps no session, so every request carries the whole
conversation. What a vendor changes stands in its `ClientProfile`; reading is in `answers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from adapters.chat_audio import tool_prompt, wire
from adapters.chat_audio.answers import Answers
from adapters.chat_audio.faults import fault_of_request
from adapters.chat_audio.profile import ClientProfile
from adapters.chat_audio.settings import ChatAudioSettings
from adapters.dialect import (
    Capabilities,
    EncodedClip,
    InputTooLargeError,
    InputTooLongError,
    SettingsError,
    Setup,
    TargetSettings,
    TurnMode,
)
from adapters.foreign_json import JsonObject, masked
from adapters.target_settings import read_address, read_settings, secret_values
from captures.events import Event
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
# OpenAI itself serves no request without audio on either side.
ANY_SERVER: Final = ClientProfile(
    ChatAudioSettings,
    text_twin=lambda settings, host: settings.speaks or host != urlsplit(wire.BASE_URL).hostname,
)


class ChatAudioClient:
    """`ClientDialect` of file mode over chat.completions for one session."""

    def __init__(self, target: TargetSettings, profile: ClientProfile[Any] = ANY_SERVER) -> None:
        """Raises `SettingsError`: unknown or invalid settings, no model, or an address that is none."""
        if not target.model:
            raise SettingsError("model: required")
        self._profile = profile
        self._settings = settings = read_settings(profile.settings, target.extra)
        own_url = profile.base_url if isinstance(profile.base_url, str) else profile.base_url(settings)
        base_url = target.base_url or own_url
        parts, label = read_address(base_url, ("http", "https"), "https://host/v1")
        if parts.query or parts.fragment:
            raise SettingsError("base_url: must end before any ? or #")
        headers = profile.headers(target, settings)
        self._endpoint = Endpoint(base_url, headers, label)
        self._secrets = secret_values(headers)
        self.capabilities = replace(
            _CAPABILITIES,
            text_twin=profile.text_twin(settings, parts.hostname or ""),
            input_rates_hz=(profile.rate_hz,),
            max_input_bytes=self._max_bytes,
        )
        self._model = target.model
        self._setup = Setup("", (), profile.rate_hz)
        self._history: list[JsonObject] = []
        self._held: list[bytes] = []
        self._answers = Answers(settings, profile.pinned_upstream(settings), self._secrets)
        profile.fields(settings, False)

    @property
    def _max_bytes(self) -> int:
        return self._profile.max_request_bytes or wire.MAX_REQUEST_BYTES

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
            InputTooLargeError: no request could carry the clip, or it lasts longer than the vendor takes.
            ValueError: half a sample.
        """
        if len(pcm) % 2:
            raise ValueError("needs whole 16-bit samples")
        length_s, longest_s = len(pcm) / 2 / rate_hz, self._profile.max_audio_s
        if longest_s is not None and length_s > longest_s:
            raise InputTooLongError(length_s, longest_s, self._profile.vendor)
        piece = wire.audio_piece(pcm, rate_hz)
        self._check_size(len(piece))
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
        self._answers.turn(spoken=True)
        return self._request(wire.user_audio([self._profile.audio_part(piece.decode()) for piece in pieces]))

    def text(self, text: str) -> Sequence[OutFrame]:
        """The request with the caller's words.

        Raises:
            InputTooLargeError: larger than the vendor takes.
        """
        self._answers.turn(spoken=False)
        return self._request(wire.user_text(text))

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """The request to go on, once every call has its result: the vendor refuses one with calls unanswered.

        Raises:
            InputTooLargeError: larger than the vendor takes.
        """
        vendor_id, name = self._answers.open_calls.pop(call_id, (call_id, ""))
        if self._prompted:
            message = wire.user_text(tool_prompt.result_text(name, output))
        else:
            message = self._profile.tool_message(vendor_id, name, output)
        if self._answers.open_calls:
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

    @property
    def _prompted(self) -> bool:
        return self._settings.prompted_tools and bool(self._setup.tools)

    def _request(self, message: JsonObject) -> Sequence[OutFrame]:
        self._history.append(message)
        told, tools = self._setup.instructions, self._setup.tools
        if self._prompted:
            told, tools = tool_prompt.with_tools(told, tools), ()
        instructions = [wire.system_message(told)] if told else []
        body: JsonObject = {"model": self._model, "messages": [*instructions, *self._history]}
        if tools:
            body["tools"] = [self._profile.tool(tool) for tool in tools]
        body |= self._profile.fields(self._settings, bool(tools))
        payload = wire.encode(body)
        self._check_size(len(payload))
        self._answers.begin(prompted=self._prompted)
        return [OutFrame(payload)]

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            named = self._profile.vendor if self._profile is not ANY_SERVER else ""
            raise InputTooLargeError(size, self._max_bytes, named)

    # Reading

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events of a response body, or of one chunk of a streamed one. Nothing is owed in return."""
        events, remembered = self._answers.read(frame.payload)
        if remembered is not None:
            self._history.append(remembered)
        return events, ()

    def connect_failed(self, error: TransportError) -> Event:
        """401, 403, 404 and other 4xx refuse; 429 is a limit or a used-up quota; 5xx and network may be tried again."""
        fault = fault_of_request(error)
        return replace(fault, message=masked(fault.message, self._secrets))

    def closed(self, closed: ClosedBy) -> Event | None:
        """None: there is no connection to lose, a lost request is a failed one."""
        return None
