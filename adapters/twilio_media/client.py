"""Client half of Twilio Media Streams: the rig is Twilio, the agent is the WebSocket server. Sans-I/O.

The stream carries audio alone: no text, no tools, no end of a turn. What has been *played* counts as heard
(`playback`); tool calls come from beside the connection (`adapters.tool_requests`).
"""

from __future__ import annotations

import binascii
import secrets
from collections.abc import Sequence
from typing import Final

from adapters.dialect import Capabilities, EncodedClip, Setup, TargetSettings, TurnMode
from adapters.foreign_json import JsonObject, brief, decode, object_of, text_of
from adapters.greeting import Waiting, longest_s
from adapters.rig_socket.faults import fault_of_connect
from adapters.target_settings import read_settings
from adapters.template_socket.sound import from_base64
from adapters.tool_requests import ToolRequests
from adapters.twilio_media import wire
from adapters.twilio_media.playback import Playback, PlaybackFullError
from adapters.twilio_media.settings import TwilioSettings, check, endpoint_of
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioCleared,
    AudioDelta,
    Event,
    Failed,
    FailureKind,
    SessionReady,
    ToolCall,
    Unrecognised,
    Warned,
)
from captures.frames import ClosedBy, InFrame, OutFrame
from captures.playback import is_loud
from transports.transport import Endpoint, TransportError

_MS: Final = 1_000_000
_FRAME_NS: Final = wire.FRAME_MS * _MS
_LATE_NS: Final = _FRAME_NS
"""Silence that is later than this is not caught up: a burst of it would shorten the agent's endpointing."""
_HEADERS: Final = (b"RIFF", b"fLaC", b"OggS", b"ID3")
_HUNG_UP: Final = (1000, 1001, 1005)
_MAX_MARK: Final = 500


class TwilioClient:
    """`ClientDialect` of Twilio for one session. Also `Timed`, `StampsAudio`, `NamesItself`, `SeesToolsBeside`."""

    def __init__(self, target: TargetSettings) -> None:
        """Raises `SettingsError`: unknown, missing or invalid settings, or an address that Twilio could not call."""
        self._settings = read_settings(TwilioSettings, target.extra)
        self._requests = ToolRequests(self._settings.tool_calls)
        check(self._settings, self._requests.sees)
        self._endpoint = endpoint_of(target.base_url, self._settings)
        self.tool_channel = target.tool_channel
        self.call_id = "CA" + secrets.token_hex(16)
        self._stream = "MZ" + secrets.token_hex(16)
        self._account = "AC" + secrets.token_hex(16)
        self.capabilities = Capabilities(
            text_twin=False,
            probe=False,
            turn_modes=frozenset({TurnMode.SERVER_VAD}),
            input_rates_hz=(wire.RATE_HZ,),
            output_rate_hz=wire.RATE_HZ,
            takes_setup=False,
            declared_tools=frozenset(self._settings.tools) if self._requests.sees else None,
            sees_tools=self._requests.sees,
            deterministic_turns=False,
            second_turn=False,
            confirms_setup=True,
            ends_by_silence_s=self._settings.end_silence_s,
            continuous_audio=True,
            chunk_ms=wire.FRAME_MS,
            greeting_s=longest_s(self._settings.greeting),
        )
        self._number = 0
        self._chunk = 0
        self._started_ns: int | None = None
        self._silence_due_ns: int | None = None
        self._playback = Playback()
        self._greeting = Waiting(self._settings.greeting)
        self._turn_begun = False
        self._spoiled = False
        self._wire_silence = binascii.b2a_base64(bytes([wire.SILENCE]) * wire.FRAME_BYTES, newline=False)

    # Verbs

    def endpoint(self) -> Endpoint:
        """The agent's address; Twilio's signature is in its headers."""
        return self._endpoint

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        """`connected` and `start`. Nothing of the item: the agent has a prompt and tools of its own."""
        begun = wire.start(self._next(), self._stream, self._account, self.call_id, self._settings.parameters)
        return [wire.connected(), begun]

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """Frames of 160 bytes of µ-law in base64; the last one is filled up with silence. Numbered as they are sent.

        Raises:
            ValueError: another rate than 8 kHz, other pieces than of 20 ms, or half a sample.
        """
        if rate_hz != wire.RATE_HZ or chunk_ms != wire.FRAME_MS or len(pcm) % 2:
            raise ValueError("Twilio's audio is 16-bit samples at 8000 Hz in pieces of 20 ms (chunk_ms: 20)")
        coded = wire.MULAW.encode(pcm)
        frames = []
        for start in range(0, len(coded), wire.FRAME_BYTES):
            piece = coded[start : start + wire.FRAME_BYTES].ljust(wire.FRAME_BYTES, bytes([wire.SILENCE]))
            frames.append(OutFrame(binascii.b2a_base64(piece, newline=False), binary=True))
        filler = len(frames) * wire.FRAME_BYTES - len(coded)
        return EncodedClip(tuple(frames), chunk_ms, rate_hz, len(coded), filler)

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        """A frame of 0xFF."""
        silence = bytes([wire.SILENCE]) * (wire.RATE_HZ * duration_ms // 1000)
        return OutFrame(binascii.b2a_base64(silence, newline=False), binary=True)

    def start_turn(self) -> Sequence[OutFrame]:
        """The keys that the caller presses, if any. From now on the player sends the audio."""
        self._turn_begun = True
        self._silence_due_ns = None
        return [wire.dtmf(self._next(), self._stream, digit) for digit in self._settings.dtmf]

    def hold(self, frame: OutFrame) -> None:
        """Not in file mode: no frame is held."""

    def commit_turn(self) -> Sequence[OutFrame]:
        """Nothing commits a turn on a phone."""
        return ()

    def text(self, text: str) -> Sequence[OutFrame]:
        """No text turn on a phone."""
        return ()

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """The webhook answers by itself."""
        return ()

    def cancel(self) -> Sequence[OutFrame]:
        """A caller cuts in by speaking."""
        return ()

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        """Marks that come back say it."""
        return ()

    def close(self) -> Sequence[OutFrame]:
        """`stop`: the caller hangs up."""
        return [wire.stop(self._next(), self._stream, self._account, self.call_id)]

    def on_wire(self, frame: OutFrame, t_ns: int) -> OutFrame:
        """See `StampsAudio`: the caller's audio with its number and its time since the start of the stream."""
        if self._started_ns is None:
            self._started_ns = t_ns
        self._chunk += 1
        since_ms = (t_ns - self._started_ns) // _MS
        return wire.media(self._next(), self._stream.encode(), self._chunk, since_ms, frame.payload)

    def recall(self, sent: bytes) -> None:
        """See `NamesItself`: the stream's name in a stored `start`."""
        fields = decode(sent) if b'"start"' in sent else None
        stream = text_of(fields or {}, "streamSid")
        if stream is not None and text_of(fields or {}, "event") == "start":
            self._stream = stream

    def _next(self) -> int:
        self._number += 1
        return self._number

    # What is due in time

    def next_due_ns(self) -> int | None:
        """See `Timed`: the next mark to come back, piece of silence before the turn, or end of the greeting."""
        if self._started_ns is None:
            return None
        times = [self._playback.next_due_ns(), self._silence_due_ns, self._greeting.due_ns()]
        return min((ns for ns in times if ns is not None), default=None)

    def due(self, now_ns: int) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """See `Timed`."""
        frames = [wire.mark(self._next(), self._stream, name) for name in self._playback.due(now_ns)]
        if self._silence_due_ns is not None and now_ns >= self._silence_due_ns:
            frames.append(OutFrame(self._wire_silence, binary=True))
            on_time = now_ns - self._silence_due_ns < _LATE_NS
            self._silence_due_ns = (self._silence_due_ns if on_time else now_ns) + _FRAME_NS
        if not self._greeting.is_over(now_ns):
            return (), frames
        heard_s = round(self._playback.heard_ns(now_ns) / 1e9, 3)
        return [SessionReady(self.call_id, {"greeting_s": heard_s, "stream_sid": self._stream})], frames

    def opened(self, t_ns: int) -> None:
        """See `Timed`: the stream has begun."""
        self._started_ns = t_ns
        self._silence_due_ns = t_ns
        self._greeting.begin(t_ns)

    # Reading

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events of one message of the agent, or of a tool request. Marks that `clear` lets go come back at once."""
        requested = self._requests.events(frame)
        if requested is not None:
            return self._in_turn(requested), ()
        if frame.binary:
            return self._undecodable("a binary message: Twilio takes JSON text alone (error 31950)"), ()
        fields = decode(frame.payload)
        if fields is None:
            start = brief(frame.payload[:80].decode("utf-8", "backslashreplace"), 200)
            return self._undecodable(f"a message is not a JSON object: {start}"), ()
        kind = text_of(fields, "event")
        if kind not in ("media", "mark", "clear"):
            named = brief(str(kind), 60)
            return [
                Unrecognised(named),
                *self._noted(f"{named}: Twilio takes media, mark and clear alone (error 31924)"),
            ], ()
        if fields.get("streamSid") != self._stream:
            return [
                Unrecognised(f"{kind} of another stream"),
                *self._noted(f"{kind} without this call's streamSid"),
            ], ()
        try:
            if kind == "media":
                return self._on_media(fields, frame.t_ns), ()
            if kind == "mark":
                return self._on_mark(fields, frame.t_ns), ()
        except PlaybackFullError as full:
            return [Failed(FailureKind.PROTOCOL, "flood", f"the agent queued {full}")], ()
        return self._on_clear(frame.t_ns)

    def _on_media(self, fields: JsonObject, t_ns: int) -> Sequence[Event]:
        payload = text_of(object_of(fields, "media"), "payload")
        coded = None if payload is None else from_base64(payload)
        if coded is None:
            return self._undecodable("media whose payload is not base64")
        if coded.startswith(_HEADERS):
            return self._undecodable("media that begins with a file's header: Twilio plays raw µ-law alone")
        self._playback.audio(len(coded), t_ns)
        pcm = wire.MULAW.decode(coded)
        if self._turn_begun:
            return [AudioDelta(pcm, wire.RATE_HZ)]
        if is_loud(pcm, wire.RATE_HZ):
            self._greeting.heard(self._playback.end_ns)
        return ()

    def _on_mark(self, fields: JsonObject, t_ns: int) -> Sequence[Event]:
        name = text_of(object_of(fields, "mark"), "name")
        if name is None or len(name) > _MAX_MARK:
            return self._undecodable("a mark without a name, or with one too long")
        self._playback.mark(name, t_ns)
        return ()

    def _on_clear(self, t_ns: int) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        frames = [wire.mark(self._next(), self._stream, name) for name in self._playback.clear(t_ns)]
        self._greeting.cut(t_ns)
        return ([AudioCleared()] if self._turn_begun else ()), frames

    def _in_turn(self, events: list[Event]) -> list[Event]:
        """A call before the caller has spoken (a look-up by number, say) is no answer to the turn."""
        if self._turn_begun or not any(isinstance(event, ToolCall) for event in events):
            return events
        names = ", ".join(event.name or "?" for event in events if isinstance(event, ToolCall))
        return [Warned("call_before_turn", brief(f"{names} was called before the caller spoke; it is no answer", 200))]

    def _undecodable(self, summary: str) -> list[Event]:
        return [Unrecognised(summary), *self._noted(summary)]

    def _noted(self, text: str) -> list[Event]:
        """Told once: of an agent that does it all the time, one line is enough."""
        if self._spoiled:
            return []
        self._spoiled = True
        return [Warned("not_twilio", text)]

    def connect_failed(self, error: TransportError) -> Event:
        """401, 403, 404 and other 4xx refuse the target; 429, 5xx and network failures may be tried again."""
        return fault_of_connect(error)

    def closed(self, closed: ClosedBy) -> Event | None:
        """The agent hangs up by closing the socket: its answer ends there."""
        if not closed.by_peer:
            return None
        if closed.code in _HUNG_UP and self._turn_begun:
            return AnswerEnded(AnswerEnd.COMPLETED, "the agent hung up")
        code = "closed" if closed.code is None else f"close_{closed.code}"
        when = "during the call" if self._turn_begun else "before the caller spoke"
        reason = f": {brief(closed.reason)}" if closed.reason else ""
        return Failed(FailureKind.TRANSIENT, code, f"the agent's connection was lost {when}{reason}")
