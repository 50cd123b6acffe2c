"""Client half: verbs become frames, the server's frames become events. Sans-I/O; holds one session's state.

The wire names no answer, so that order alone tells whose it is: in manual turns, what comes between a caller's first
audio and its commit belongs to the turn before. Not here: what closes mean (`faults`), schemas (`schema`), how a
message's content is read (`answers`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adapters.dialect import Capabilities, EncodedClip, Setup, TargetSettings, TurnMode
from adapters.foreign_json import JsonObject, bounded, brief, decode, masked, text_of
from adapters.gemini_live import wire
from adapters.gemini_live.answers import Answers
from adapters.gemini_live.faults import fault_of_close, fault_of_connect, fault_of_error
from adapters.gemini_live.schema import translate
from adapters.gemini_live.settings import EPHEMERAL, TURN_MODES, address, behavior_of, checked, setup_object
from adapters.target_settings import secret_values
from captures.events import Event, SessionReady, SpeechStarted, SpeechStopped, Unrecognised, Usage, Warned
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint, TransportError

LATE_CALL_GRACE_S: Final = 2.0
"""For calls that may come after the end of a turn: 1.4 s were seen."""
_OFFSET = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,9})?)s")


class GeminiLiveClient:
    """`ClientDialect` of Gemini Live for one session."""

    def __init__(self, target: TargetSettings) -> None:
        """Raises `SettingsError`: unknown or invalid settings, or an address that is none."""
        self._settings, self._profile = checked(target)
        self._model = target.model
        self._url, self._headers, self._label = address(self._settings, target.base_url, target.api_key)
        token = {"token": (target.api_key or "").removeprefix(EPHEMERAL)}
        self._secrets = secret_values(self._headers | token, self._url.partition("?")[2])
        grace_s = self._settings.late_call_grace_s
        if grace_s is None:
            grace_s = LATE_CALL_GRACE_S if behavior_of(self._settings, self._profile) == "NON_BLOCKING" else 0.0
        self.capabilities = Capabilities(
            text_twin=True,
            probe=True,
            turn_modes=TURN_MODES,
            input_rates_hz=(wire.INPUT_RATE_HZ,),
            output_rate_hz=wire.OUTPUT_RATE_HZ,
            waits_for_tool_result=True,
            late_call_grace_s=grace_s,
        )
        self.resumption_handle: str | None = None
        """The newest handle by which the session can be taken up again (`session_resumption.handle`)."""
        self._manual = True
        self._ready = False
        self._leaving = False
        self._in_activity = False
        """Audio was announced and its end was not."""
        self._changes: list[str] = []
        """What of the tools the model is not shown as written."""
        self._answers = Answers()
        self._handlers: Mapping[str, Callable[[JsonObject], list[Event]]] = {
            "setupComplete": self._on_setup_complete,
            "toolCall": self._answers.calls_made,
            "toolCallCancellation": self._answers.calls_withdrawn,
            "usageMetadata": self._on_usage,
            "serverContent": self._answers.content,
            "goAway": self._on_go_away,
            "sessionResumptionUpdate": self._on_resumption,
            "voiceActivity": self._on_voice_activity,
            "voiceActivityDetectionSignal": self._on_voice_signal,
            "error": lambda error: [fault_of_error(error, ready=self._ready, secrets=self._secrets)],
        }

    # Verbs

    def endpoint(self) -> Endpoint:
        """Where to connect; the key is in a header or the query, never in the label."""
        return Endpoint(self._url, self._headers, self._label)

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        """`setup`, the first message.

        Raises:
            SettingsError: turn control that the API does not have, or a tool that Gemini cannot be shown.
        """
        translated = [translate(tool) for tool in setup.tools]
        made = setup_object(self._model, self._settings, setup, translated)
        self._manual = setup.turn_control.mode is TurnMode.MANUAL
        undo = {tool.name: done.undo for tool, done in zip(setup.tools, translated, strict=True) if done.undo}
        self._answers.begin(undo, invited=not self._manual)
        self._changes = [brief(change, 200) for done in translated for change in done.changes]
        return [wire.encode({"setup": made})]

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """`realtimeInput.audio` messages; chunk k begins at sample `round(k * rate_hz * chunk_ms / 1000)`.

        Raises:
            ValueError: another rate than 16 kHz, half a sample, or a chunk length below 1 ms.
        """
        if rate_hz != wire.INPUT_RATE_HZ or len(pcm) % 2 or chunk_ms < 1:
            raise ValueError(f"needs whole 16-bit samples at {wire.INPUT_RATE_HZ} Hz and chunks of at least 1 ms")
        samples = len(pcm) // 2
        frames: list[OutFrame] = []
        start = 0
        while start < samples:
            end = min(samples, _samples(rate_hz, chunk_ms * (len(frames) + 1)))
            frames.append(wire.audio(pcm[2 * start : 2 * end], rate_hz))
            start = end
        return EncodedClip(tuple(frames), chunk_ms, rate_hz, samples)

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        """One `realtimeInput.audio` of zeros."""
        return wire.audio(bytes(2 * _samples(rate_hz, duration_ms)), rate_hz)

    def start_turn(self) -> Sequence[OutFrame]:
        """`activityStart` in manual turns; the server's own detection needs none."""
        owed = self._manual and not self._in_activity
        self._in_activity = True
        self._answers.new_turn(invited=not self._manual)
        return [wire.activity_start()] if owed else []

    def hold(self, frame: OutFrame) -> None:
        """Not in file mode: no frame is held."""

    def commit_turn(self) -> Sequence[OutFrame]:
        """`activityEnd`, which asks for the answer; nothing where the server's own detection ends turns."""
        if not self._manual:
            return ()
        self._answers.ask()
        return self._end_of_audio()

    def text(self, text: str) -> Sequence[OutFrame]:
        """The caller's words: `realtimeInput.text`, or `clientContent` on models that answer no other text."""
        self._answers.new_turn(invited=True)
        by_content = self._profile.text_by_content
        if self._settings.text_as is not None:
            by_content = self._settings.text_as == "client_content"
        return [wire.content_turn(text) if by_content else wire.realtime_text(text)]

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """`toolResponse`; nothing for a call that was withdrawn."""
        call = self._answers.result_given(call_id)
        if call is None:
            return ()
        result = decode(output)
        response: JsonObject = {"name": call.name, "response": {"output": output} if result is None else result}
        if call.given_id is not None:
            response["id"] = call.given_id
        if self._settings.result_scheduling is not None:
            response["scheduling"] = self._settings.result_scheduling
        return [wire.tool_response(response)]

    def cancel(self) -> Sequence[OutFrame]:
        """Nothing: the API has no such message."""
        return ()

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        """Nothing: the API has no such message."""
        return ()

    def close(self) -> Sequence[OutFrame]:
        """The end of audio, where it was begun and never ended (a call came first)."""
        return self._end_of_audio()

    def _end_of_audio(self) -> Sequence[OutFrame]:
        if not self._in_activity:
            return ()
        self._in_activity = False
        return [wire.activity_end() if self._manual else wire.audio_stream_end()]

    # Reading

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events of one server message, JSON in a text or a binary frame. Its top-level keys may combine."""
        message = decode(frame.payload)
        if message is None:
            start = frame.payload[:80].decode("utf-8", "backslashreplace")
            return [Unrecognised(brief(masked(f"not a JSON object: {start}", self._secrets), 200), unreadable=True)], ()
        unknown = [key for key in message if key not in self._handlers]
        events: list[Event] = []
        if unknown or not message:
            events.append(Unrecognised(brief(", ".join(unknown) or "an empty message", 200)))
        for key, handler in self._handlers.items():
            if key not in message:
                continue
            part = message[key]
            if isinstance(part, dict):
                events += handler(part)
            else:
                events.append(Unrecognised(f"{key} that is no object"))
        return events, ()

    def connect_failed(self, error: TransportError) -> Event:
        """401, 403 and a bad key refuse the target; 429 is a limit or a used-up quota."""
        return fault_of_connect(error, self._label, self._secrets)

    def closed(self, closed: ClosedBy) -> Event | None:
        """None after a finished answer and for our own close."""
        if (not closed.by_peer and closed.code is not None) or self._answers.finished:
            return None
        return fault_of_close(closed, ready=self._ready, leaving=self._leaving, secrets=self._secrets)

    # Handlers

    def _on_setup_complete(self, part: JsonObject) -> list[Event]:
        if self._ready:
            return []
        self._ready = True
        session_id = text_of(part, "sessionId")
        changes = {"tool_schemas_changed": self._changes} if self._changes else {}
        return [SessionReady(None if session_id is None else brief(session_id, 200), changes)]

    def _on_usage(self, part: JsonObject) -> list[Event]:
        counts = bounded(part)
        return [Usage(counts if isinstance(counts, dict) else {"unread": counts})] if part else []

    def _on_go_away(self, part: JsonObject) -> list[Event]:
        self._leaving = True
        return [Warned("go_away", f"the server ends the session in {brief(str(part.get('timeLeft')), 40)}")]

    def _on_resumption(self, part: JsonObject) -> list[Event]:
        handle = text_of(part, "newHandle")
        if handle and part.get("resumable") is True:
            self.resumption_handle = handle
        return []

    def _on_voice_activity(self, part: JsonObject) -> list[Event]:
        offset = _OFFSET.fullmatch(text_of(part, "audioOffset") or "")
        at_ms = round(float(offset[1]) * 1000) if offset else None
        kind = text_of(part, "type") or text_of(part, "voiceActivityType") or ""  # the SDK's own reader has `type`
        if kind.endswith("ACTIVITY_START"):
            return [SpeechStarted(at_ms)]
        return [SpeechStopped(at_ms)] if kind.endswith("ACTIVITY_END") else []

    def _on_voice_signal(self, part: JsonObject) -> list[Event]:
        kind = text_of(part, "vadSignalType") or ""
        if kind.endswith("_SOS"):
            return [SpeechStarted()]
        return [SpeechStopped()] if kind.endswith("_EOS") else []


def _samples(rate_hz: int, duration_ms: int) -> int:
    """Whole samples in a time, halves rounded up."""
    return (rate_hz * duration_ms + 500) // 1000
