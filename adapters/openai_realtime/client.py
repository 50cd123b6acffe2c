"""Client half: verbs become frames, the server's frames become events. Sans-I/O; holds one session's state.

Not here: what codes and closes mean (`faults`), how fragments become calls (`calls`), how the answer's own state is
kept (`answers`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adapters.dialect import Capabilities, EncodedClip, Setup, TargetSettings, TurnMode
from adapters.openai_realtime import wire
from adapters.openai_realtime.answers import Answers
from adapters.openai_realtime.faults import (
    BENIGN_CODES,
    COMMIT_EMPTY,
    fault_of_close,
    fault_of_code,
    fault_of_connect,
)
from adapters.openai_realtime.session_echo import echoed_settings, missing_tools, turn_detection_differs
from adapters.openai_realtime.settings import TURN_MODES, read_settings, session_object, session_url
from adapters.openai_realtime.wire import JsonObject, Profile, brief, int_of, object_of, text_of
from captures.events import (
    Event,
    Failed,
    FailureKind,
    InputTranscript,
    Refused,
    SessionReady,
    SpeechStarted,
    SpeechStopped,
    TurnCommitted,
    Unrecognised,
    Warned,
)
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint, TransportError

CAPABILITIES: Final = Capabilities(
    text_twin=True,
    probe=True,
    turn_modes=TURN_MODES,
    input_rates_hz=(wire.RATE_HZ,),
    output_rate_hz=wire.RATE_HZ,
    min_commit_s=wire.MIN_COMMIT_S,
)
_SAME_FRAMES_KEPT: Final = 256
"""How far back a frame delivered twice is recognised."""

_QUIET: Final = frozenset(
    {
        "rate_limits.updated",
        "conversation.created",
        "conversation.item.added",
        "conversation.item.created",
        "conversation.item.done",
        "conversation.item.deleted",
        "conversation.item.retrieved",
        "conversation.item.truncated",
        "conversation.item.input_audio_transcription.segment",
        "input_audio_buffer.cleared",
        "input_audio_buffer.timeout_triggered",
    }
)
"""Known, and nothing that the rig measures."""


class RealtimeClient:
    """`ClientDialect` of OpenAI Realtime for one session."""

    capabilities = CAPABILITIES

    def __init__(self, profile: Profile, target: TargetSettings) -> None:
        """Raises `SettingsError`: unknown or invalid settings, or an address that is none."""
        self._profile = profile
        self._settings = read_settings(target.extra)
        self._url, self._label = session_url(target.base_url or profile.url, target.model)
        self._key = target.api_key
        self._setup: Setup | None = None
        self._ready = False
        self._session_id: str | None = None
        self._answers = Answers()
        self._sent = 0
        self._asked: set[str] = set()
        """Ids of our messages without which no answer comes."""
        self._committed = False
        self._seen: deque[tuple[str, int]] = deque(maxlen=_SAME_FRAMES_KEPT)
        self._handlers: Mapping[str, Callable[[JsonObject], list[Event]]] = {
            "session.created": self._on_session_created,
            "session.updated": self._on_session_updated,
            "error": self._on_error,
            "input_audio_buffer.committed": self._on_committed,
            "input_audio_buffer.speech_started": lambda event: [SpeechStarted(int_of(event, "audio_start_ms"))],
            "input_audio_buffer.speech_stopped": lambda event: [SpeechStopped(int_of(event, "audio_end_ms"))],
            "conversation.item.input_audio_transcription.delta": self._on_input_transcript_delta,
            "conversation.item.input_audio_transcription.completed": self._on_input_transcript,
            "conversation.item.input_audio_transcription.failed": self._on_input_transcript_failed,
            **self._answers.handlers,
        }

    # Verbs

    def endpoint(self) -> Endpoint:
        """Where to connect; the key goes into `Authorization`, never into the label."""
        headers = dict(self._settings.headers)
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return Endpoint(self._url, headers, self._label)

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        """`session.update`, at once: not every server sends `session.created` first.

        Raises:
            SettingsError: turn control that the API does not have.
        """
        session = session_object(self._settings, setup)
        self._setup = setup
        self._answers.invited = setup.turn_control.mode is not TurnMode.MANUAL
        return [wire.update_session(self._next_id("session"), session)]

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """`input_audio_buffer.append` messages; chunk k begins at sample `round(k * rate_hz * chunk_ms / 1000)`.

        Raises:
            ValueError: another rate than 24 kHz, half a sample, or a chunk length below 1 ms.
        """
        if rate_hz != wire.RATE_HZ or len(pcm) % 2 or chunk_ms < 1:
            raise ValueError(f"needs whole 16-bit samples at {wire.RATE_HZ} Hz and chunks of at least 1 ms")
        samples = len(pcm) // 2
        frames: list[OutFrame] = []
        start = 0
        while start < samples:
            end = min(samples, _samples(rate_hz, chunk_ms * (len(frames) + 1)))
            frames.append(wire.append_audio(pcm[2 * start : 2 * end]))
            start = end
        return EncodedClip(tuple(frames), chunk_ms, rate_hz, samples)

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        """One `input_audio_buffer.append` of zeros."""
        return wire.append_audio(bytes(2 * _samples(rate_hz, duration_ms)))

    def start_turn(self) -> Sequence[OutFrame]:
        """Nothing is owed: appended audio opens the turn."""
        self._committed = False
        if self._manual:
            self._answers.invited = False
        return ()

    def hold(self, frame: OutFrame) -> None:
        """Not in file mode: no frame is held."""

    def commit_turn(self) -> Sequence[OutFrame]:
        """Commit and request for an answer; nothing when the server's own detection ends turns.

        A commit of ours would then meet an empty buffer and be refused.
        """
        if not self._manual:
            return ()
        self._answers.ask()
        return [wire.commit_audio(self._next_id("commit")), wire.create_response(self._next_ask("answer"))]

    def text(self, text: str) -> Sequence[OutFrame]:
        """The caller's words as a user message, and the request for an answer."""
        self._answers.ask()
        return [
            wire.create_item(self._next_ask("words"), wire.user_text(text)),
            wire.create_response(self._next_ask("answer")),
        ]

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """The result of a call; the request to go on follows the last open call, once the answer is over.

        A request during a running answer would be refused, and one per call would leave calls unanswered.
        """
        frames = [wire.create_item(self._next_id("result"), wire.call_output(call_id, output))]
        if self._answers.result_given(call_id):
            frames.append(wire.create_response(self._next_ask("answer")))
        return frames

    def cancel(self) -> Sequence[OutFrame]:
        """`response.cancel`."""
        return [wire.cancel_response(self._answers.running_id)]

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        """`conversation.item.truncate` of the item spoken last; nothing when none was spoken."""
        if self._answers.speaking is None:
            return ()
        item_id, content_index = self._answers.speaking
        return [wire.truncate_item(item_id, content_index, audio_ms)]

    def close(self) -> Sequence[OutFrame]:
        """Nothing is owed before the close."""
        return ()

    # Reading

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events of one server message, and a request to go on that was waiting for the end of the answer."""
        event = wire.decode(frame.payload)
        if event is None:
            start = frame.payload[:80].decode("utf-8", "backslashreplace")
            return [Unrecognised(brief(f"not a JSON object: {start}", 200))], ()
        kind = text_of(event, "type")
        if kind is None:
            return [Unrecognised(brief(f"message without a type: {', '.join(event)}", 200))], ()
        if self._delivered_before(event, frame.payload):
            return (), ()
        kind = self._profile.aliases.get(kind, kind)
        handler = self._handlers.get(kind)
        if handler is None:
            return () if kind in _QUIET else [Unrecognised(brief(kind, 200))], ()
        events = handler(event)
        if self._answers.take_request():
            return events, [wire.create_response(self._next_ask("answer"))]
        return events, ()

    def connect_failed(self, error: TransportError) -> Event:
        """401 and 403 refuse the key; 429 is a limit or a used-up quota; other 4xx refuse the target."""
        return fault_of_connect(error, self._label)

    def closed(self, closed: ClosedBy) -> Event | None:
        """None after a finished answer and for our own close."""
        if not closed.by_peer and closed.code is not None:
            return None
        if self._answers.finished:
            return None
        return fault_of_close(closed, self._ready)

    # Handlers

    def _on_session_created(self, event: JsonObject) -> list[Event]:
        self._session_id = text_of(object_of(event, "session"), "id")
        return []

    def _on_session_updated(self, event: JsonObject) -> list[Event]:
        session = event.get("session")
        if not isinstance(session, dict):
            return [Unrecognised("session.updated without a session")]
        if self._ready or self._setup is None:
            return []
        offered = [tool.name for tool in self._setup.tools]
        missing = missing_tools(offered, session)
        if missing:
            names = ", ".join(brief(name, 80) for name in missing[:8])
            message = f"{len(missing)} of {len(offered)} tools are missing from the confirmed settings: {names}"
            return [Refused("tools_missing", message, "session.tools")]
        events: list[Event] = []
        if offered and "tools" not in session:
            events.append(Warned("tools_not_echoed", "the confirmed settings do not say which tools are known"))
        if turn_detection_differs(self._setup.turn_control.mode, session):
            events.append(Warned("turn_detection_differs", "the confirmed settings end turns in another mode"))
        self._ready = True
        session_id = text_of(session, "id") or self._session_id
        return [*events, SessionReady(session_id, echoed_settings(session))]

    def _on_error(self, event: JsonObject) -> list[Event]:
        error = object_of(event, "error")
        family = text_of(error, "type") or ""
        code = brief(text_of(error, "code") or family or "error", 100)
        message = brief(text_of(error, "message") or "no explanation given")
        where = brief(text_of(error, "param") or "", 200)
        fault = fault_of_code(code, message, where)
        if fault is not None:
            return [fault]
        if not self._ready:
            if family == "server_error":
                return [Failed(FailureKind.TRANSIENT, code, message)]
            return [Refused(code, message, where)]
        if code in BENIGN_CODES:
            return [Warned(code, message)]
        if code == COMMIT_EMPTY:
            heard = self._committed or not self._manual or self._answers.running
            return [Warned(code, message) if heard else Failed(FailureKind.PROTOCOL, code, message)]
        if text_of(error, "event_id") in self._asked:
            kind = FailureKind.TRANSIENT if family == "server_error" else FailureKind.PROTOCOL
            return [Failed(kind, code, message)]
        return [Warned(code, message)]

    def _on_committed(self, event: JsonObject) -> list[Event]:
        self._committed = True
        return [TurnCommitted(text_of(event, "item_id"))]

    def _on_input_transcript_delta(self, event: JsonObject) -> list[Event]:
        delta = text_of(event, "delta")
        return [InputTranscript(delta, final=False)] if delta else []

    def _on_input_transcript(self, event: JsonObject) -> list[Event]:
        transcript = text_of(event, "transcript")
        return [Unrecognised("input transcript without text") if transcript is None else InputTranscript(transcript)]

    def _on_input_transcript_failed(self, event: JsonObject) -> list[Event]:
        error = object_of(event, "error")
        code = brief(text_of(error, "code") or "error", 100)
        return [Warned(f"input_transcription:{code}", brief(text_of(error, "message") or ""))]

    # State

    @property
    def _manual(self) -> bool:
        return self._setup is None or self._setup.turn_control.mode is TurnMode.MANUAL

    def _next_id(self, purpose: str) -> str:
        self._sent += 1
        return f"rig_{purpose}_{self._sent}"

    def _next_ask(self, purpose: str) -> str:
        event_id = self._next_id(purpose)
        self._asked.add(event_id)
        return event_id

    def _delivered_before(self, event: JsonObject, payload: bytes) -> bool:
        """True for the same frame again: same id and same bytes (an id alone may be a constant)."""
        event_id = text_of(event, "event_id")
        if not event_id:
            return False
        mark = (event_id, hash(payload))
        if mark in self._seen:
            return True
        self._seen.append(mark)
        return False


def _samples(rate_hz: int, duration_ms: int) -> int:
    """Whole samples in a time, halves rounded up."""
    return (rate_hz * duration_ms + 500) // 1000
