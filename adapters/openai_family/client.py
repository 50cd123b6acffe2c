"""Client half: verbs become frames, the server's frames become events. Sans-I/O; holds one session's state.

Not here: what codes and closes mean (`faults`), how fragments become calls (`calls`), how the answer's own state is
kept (`answers`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from adapters.dialect import EncodedClip, Setup, TargetSettings, TurnMode
from adapters.foreign_json import JsonObject, brief, decode, int_of, masked, object_of, text_of
from adapters.openai_family.answers import Answers
from adapters.openai_family.faults import fault_of_close, fault_of_code, fault_of_connect
from adapters.openai_family.input_transcripts import InputTranscripts
from adapters.openai_family.profile import ClientProfile, FamilySettings
from adapters.openai_family.session_echo import echoed_settings, missing_tools, turn_detection_differs
from adapters.target_settings import read_settings, secret_values
from captures.events import (
    AnswerEnded,
    Event,
    Failed,
    FailureKind,
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
        "ping",
    }
)
"""Known, and nothing that the rig measures."""


S = TypeVar("S", bound=FamilySettings)


class RealtimeClient:
    """`ClientDialect` of a member of the family, for one session."""

    def __init__(self, profile: ClientProfile[S], target: TargetSettings) -> None:
        """Raises `SettingsError`: unknown or invalid settings, or an address that is none."""
        settings = read_settings(profile.settings, target.extra)
        url, label = profile.address(target, settings)
        self._endpoint = Endpoint(url, profile.headers(target, settings), label)
        self._secrets = _secrets(self._endpoint, target)
        self._session_of: Callable[[Setup], JsonObject] = lambda setup: profile.session(settings, setup)
        self._check: Callable[[Setup], None] = lambda setup: profile.check(target, settings, setup)
        self.capabilities = profile.capabilities(settings)
        self._profile: ClientProfile[Any] = profile
        self._messages = profile.messages
        self._setup: Setup | None = None
        self._sent_session: JsonObject = {}
        self._greeted = False
        self._ready = False
        self._session_id: str | None = None
        self._answers = Answers(self.capabilities.output_rate_hz, profile.faults)
        self._sent = 0
        self._asked: set[str] = set()
        """Ids of our messages without which no answer comes."""
        self._committed = False
        self._seen: deque[tuple[str, int]] = deque(maxlen=_SAME_FRAMES_KEPT)
        self._wrapped_before: JsonObject | None = None
        self._handlers: Mapping[str, Callable[[JsonObject], list[Event]]] = {
            "session.created": self._on_session_created,
            "session.updated": self._on_session_updated,
            "error": self._on_error,
            "input_audio_buffer.committed": self._on_committed,
            "input_audio_buffer.speech_started": lambda event: [SpeechStarted(int_of(event, "audio_start_ms"))],
            "input_audio_buffer.speech_stopped": lambda event: [SpeechStopped(int_of(event, "audio_end_ms"))],
            **InputTranscripts().handlers,
            **self._answers.handlers,
        }

    # Verbs

    def endpoint(self) -> Endpoint:
        """Where to connect; the key goes into a header, never into the label."""
        return self._endpoint

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        """`session.update`, at once: not every server sends `session.created` first.

        Raises:
            SettingsError: turn control that the API does not have, or tools that it could not call.
        """
        self._check(setup)
        self._sent_session = self._session_of(setup)
        self._setup = setup
        self._answers.invited = setup.turn_control.mode is not TurnMode.MANUAL
        return [self._messages.update_session(self._next_id("session"), self._sent_session)]

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """`input_audio_buffer.append` messages; chunk k begins at sample `round(k * rate_hz * chunk_ms / 1000)`.

        Raises:
            ValueError: a rate that is not offered, half a sample, or a chunk length below 1 ms.
        """
        offered = self.capabilities.input_rates_hz
        if rate_hz not in offered or len(pcm) % 2 or chunk_ms < 1:
            rates = " or ".join(str(rate) for rate in offered)
            raise ValueError(f"needs whole 16-bit samples at {rates} Hz and chunks of at least 1 ms")
        samples = len(pcm) // 2
        frames: list[OutFrame] = []
        start = 0
        while start < samples:
            end = min(samples, _samples(rate_hz, chunk_ms * (len(frames) + 1)))
            frames.append(self._messages.append_audio(pcm[2 * start : 2 * end]))
            start = end
        return EncodedClip(tuple(frames), chunk_ms, rate_hz, samples)

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        """One `input_audio_buffer.append` of zeros."""
        return self._messages.append_audio(bytes(2 * _samples(rate_hz, duration_ms)))

    def start_turn(self) -> Sequence[OutFrame]:
        """Nothing is owed: appended audio opens the turn."""
        self._committed = False
        self._ready = True
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
        return [
            self._messages.commit_audio(self._next_id("commit")),
            self._messages.create_response(self._next_ask("answer")),
        ]

    def text(self, text: str) -> Sequence[OutFrame]:
        """The caller's words as a user message, and the request for an answer."""
        self._ready = True
        self._answers.ask()
        return [
            self._messages.user_text(self._next_ask("words"), text),
            self._messages.create_response(self._next_ask("answer")),
        ]

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """The result of a call; the request to go on follows the last open call, once the answer is over.

        A request during a running answer would be refused, and one per call would leave calls unanswered.
        """
        frames = [self._messages.call_output(self._next_id("result"), call_id, output)]
        if self._answers.result_given(call_id):
            frames.append(self._messages.create_response(self._next_ask("answer")))
        return frames

    def cancel(self) -> Sequence[OutFrame]:
        """`response.cancel`."""
        return [self._messages.cancel_response(self._answers.running_id)]

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        """`conversation.item.truncate` of the item spoken last; nothing when none was spoken, or the API has none."""
        if self._answers.speaking is None or not self._profile.truncates:
            return ()
        item_id, content_index = self._answers.speaking
        return [self._messages.truncate_item(item_id, content_index, audio_ms)]

    def close(self) -> Sequence[OutFrame]:
        """Nothing is owed before the close."""
        return ()

    # Reading

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events of one server message, and a request to go on that was waiting for the end of the answer."""
        message = decode(frame.payload)
        if message is None:
            start = frame.payload[:80].decode("utf-8", "backslashreplace")
            return [self._shown(Unrecognised(brief(f"not a JSON object: {start}", 200), unreadable=True))], ()
        event = self._profile.unwrap(message)
        kind = text_of(event, "type")
        if kind is None:
            return [self._shown(Unrecognised(brief(f"message without a type: {', '.join(event)}", 200)))], ()
        if self._delivered_before(event, message, frame.payload):
            return (), ()
        kind = self._profile.aliases.get(kind, kind)
        handler = self._handlers.get(kind)
        if handler is None:
            known = kind in _QUIET or kind in self._profile.quiet
            return () if known else [self._shown(Unrecognised(brief(kind, 200)))], ()
        events = [self._shown(read) for read in handler(event)]
        if self._answers.take_request():
            return events, [self._messages.create_response(self._next_ask("answer"))]
        return events, ()

    def connect_failed(self, error: TransportError) -> Event:
        """401 and 403 refuse the key; 429 is a limit or a used-up quota; other 4xx refuse the target."""
        return self._shown(fault_of_connect(self._profile.faults, error, self._endpoint.label))

    def closed(self, closed: ClosedBy) -> Event | None:
        """None after a finished answer and for our own close."""
        if not closed.by_peer and closed.code is not None:
            return None
        if self._answers.finished:
            return None
        return self._shown(fault_of_close(self._profile.faults, closed, self._ready))

    # Handlers

    def _on_session_created(self, event: JsonObject) -> list[Event]:
        if self._greeted and self._profile.created_may_confirm:
            return self._on_session_updated(event)
        self._greeted = True
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
        places = self._profile.places
        path = places.get("turn_detection")
        if path is not None and turn_detection_differs(self._sent_session, session, path):
            events.append(Warned("turn_detection_differs", "the confirmed settings end turns in another mode"))
        self._ready = True
        session_id = text_of(session, "id") or self._session_id
        return [*events, SessionReady(session_id, {**echoed_settings(session, places), **self._profile.notes})]

    def _on_error(self, event: JsonObject) -> list[Event]:
        error = object_of(event, "error")
        family = text_of(error, "type") or ""
        code = brief(text_of(error, "code") or family or "error", 100)
        message = brief(text_of(error, "message") or "no explanation given")
        where = brief(text_of(error, "param") or "", 200)
        codes = self._profile.faults
        fault = fault_of_code(codes, code, message, where)
        if fault is not None:
            return [fault]
        if not self._ready:
            if family == "server_error":
                return [Failed(FailureKind.TRANSIENT, code, message)]
            return [Refused(code, message, where)]
        if codes.is_benign(code, message):
            return [Warned(code, message)]
        if code in codes.commit_empty:
            heard = self._committed or not self._manual or self._answers.running
            return [Warned(code, message, spoils_turn=True) if heard else Failed(FailureKind.PROTOCOL, code, message)]
        if self._is_of_our_request(text_of(error, "event_id")):
            kind = FailureKind.TRANSIENT if family == "server_error" else FailureKind.PROTOCOL
            return [Failed(kind, code, message)]
        return [Warned(code, message, spoils_turn=True)]

    def _is_of_our_request(self, event_id: str | None) -> bool:
        """True when an error means that the answer we asked for will not come."""
        if self._profile.commit_may_answer and self._answers.running:
            return False
        if event_id is None and not self._profile.errors_name_event:
            return bool(self._asked) and self._answers.awaited
        return event_id in self._asked

    def _on_committed(self, event: JsonObject) -> list[Event]:
        self._committed = True
        return [TurnCommitted(text_of(event, "item_id"))]

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

    def _delivered_before(self, event: JsonObject, message: JsonObject, payload: bytes) -> bool:
        """True for the same frame again: same id and same bytes (an id alone may be a constant).

        A wrapped event is the same when it follows itself: one may come in several wrappings.
        """
        if event is not message:
            again = event == self._wrapped_before
            self._wrapped_before = event
            return again
        event_id = text_of(event, "event_id")
        if not event_id:
            return False
        mark = (event_id, hash(payload))
        if mark in self._seen:
            return True
        self._seen.append(mark)
        return False

    def _shown(self, event: Event) -> Event:
        """The event without secrets, which a peer may have echoed."""
        if isinstance(event, Refused):
            return Refused(*(masked(text, self._secrets) for text in (event.code, event.message, event.where)))
        if isinstance(event, AnswerEnded):
            return replace(event, detail=masked(event.detail, self._secrets))
        if isinstance(event, Warned | Failed):
            return replace(event, code=masked(event.code, self._secrets), message=masked(event.message, self._secrets))
        if isinstance(event, Unrecognised):
            return Unrecognised(masked(event.summary, self._secrets), event.unreadable)
        if isinstance(event, SessionReady) and self._secrets:
            return SessionReady(event.session_id, self._shown_data(dict(event.echoed)))
        return event

    def _shown_data(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {masked(key, self._secrets): self._shown_data(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._shown_data(inner) for inner in value]
        return masked(value, self._secrets) if isinstance(value, str) else value


def _secrets(endpoint: Endpoint, target: TargetSettings) -> tuple[str, ...]:
    """What must never be shown: the key, headers and query of the target, but not its model's name."""
    parts = urlsplit(endpoint.url)
    query = urlsplit(target.base_url or "").query
    found = {*secret_values(endpoint.headers, query), parts.password or "", target.api_key or ""}
    return tuple(sorted((value for value in found - {target.model} if len(value) >= 4), key=len, reverse=True))


def _samples(rate_hz: int, duration_ms: int) -> int:
    """Whole samples in a time, halves rounded up."""
    return (rate_hz * duration_ms + 500) // 1000
