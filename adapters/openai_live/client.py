"""Client half of OpenAI Live: verbs become frames, the server's frames become events. Sans-I/O; one session's state.

Full duplex: audio goes both ways all the time, the vendor alone decides when to speak, and nothing says that a turn
is over. So there is no commit, no text turn, no cancel and no truncate (openai.types.live, 3.57).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adapters.chunks import pieces, samples_in
from adapters.dialect import Capabilities, EncodedClip, Setup, TargetSettings, TurnMode
from adapters.foreign_json import (
    JsonObject,
    bounded,
    brief,
    decode,
    list_of,
    masked,
    object_of,
    text_of,
    too_deep,
)
from adapters.openai_family.faults import fault_of_close, fault_of_code, fault_of_connect
from adapters.openai_family.wire import decode_audio
from adapters.openai_live import wire
from adapters.openai_live.delegations import FAULTS, Delegations
from adapters.openai_live.settings import LiveSettings, session_object, session_url
from adapters.target_settings import bearer_headers, read_settings, secret_values
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Event,
    Failed,
    FailureKind,
    InputTranscript,
    Refused,
    SessionReady,
    TranscriptDelta,
    Unrecognised,
    Usage,
    Warned,
)
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint, TransportError

_SAME_FRAMES_KEPT: Final = 256
_QUIET: Final = frozenset(
    {
        "info",
        "session.updated",
        "session.input_audio.muted",
        "session.input_audio.unmuted",
        "session.instructions.appended",
        "session.thinking.appended",
        "session.commentary.appended",
    }
)
"""Known, and nothing that the rig measures."""


class LiveClient:
    """`ClientDialect` of OpenAI Live for one session."""

    def __init__(self, target: TargetSettings) -> None:
        """Raises `SettingsError`: unknown, missing or invalid settings, or an address that is none."""
        self._settings = read_settings(LiveSettings, target.extra)
        self._model = target.model
        self._url, self._label = session_url(target.base_url)
        self._headers = bearer_headers(self._settings.headers, target.api_key)
        self._secrets = secret_values(self._headers)
        self.capabilities = Capabilities(
            text_twin=False,
            probe=True,
            turn_modes=frozenset({TurnMode.SERVER_VAD}),
            input_rates_hz=(self._settings.rate_hz,),
            output_rate_hz=self._settings.rate_hz,
            deterministic_turns=False,
            ends_by_silence_s=self._settings.end_silence_s,
            continuous_audio=True,
        )
        self._tools: list[str] = []
        self._ready = False
        self._delegations = Delegations()
        self._seen: deque[tuple[str, int]] = deque(maxlen=_SAME_FRAMES_KEPT)
        self._handlers: Mapping[str, Callable[[JsonObject], list[Event]]] = {
            "session.started": self._on_started,
            "session.output_audio.delta": self._on_audio,
            "session.input_transcript.delta": lambda event: self._on_words(event, heard=True),
            "session.output_transcript.delta": lambda event: self._on_words(event, heard=False),
            "session.delegation.created": lambda event: self._delegations.created(object_of(event, "delegation")),
            "response.event": self._delegations.event,
            "session.usage.updated": self._on_usage,
            "session.closed": self._on_closed,
            "error": self._on_error,
        }

    # Verbs

    def endpoint(self) -> Endpoint:
        """Where to connect; the key goes into `Authorization`, never into the label."""
        return Endpoint(self._url, self._headers, self._label)

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        """`session.start`: the client speaks first.

        Raises:
            SettingsError: turn control that the API does not have.
        """
        session = session_object(self._settings, self._model, setup)
        self._tools = [tool.name for tool in setup.tools]
        return [wire.start_session(session)]

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """`session.input_audio.append` messages.

        Raises:
            ValueError: another rate than the session's, half a sample, or a chunk length below 1 ms.
        """
        if rate_hz != self._settings.rate_hz:
            raise ValueError(f"this session takes audio at {self._settings.rate_hz} Hz, not {rate_hz}")
        frames = tuple(wire.append_audio(piece) for piece in pieces(pcm, rate_hz, chunk_ms))
        return EncodedClip(frames, chunk_ms, rate_hz, len(pcm) // 2)

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        """One `session.input_audio.append` of zeros."""
        return wire.append_audio(bytes(2 * samples_in(rate_hz, duration_ms)))

    def start_turn(self) -> Sequence[OutFrame]:
        """Nothing is owed."""
        return ()

    def hold(self, frame: OutFrame) -> None:
        """Not in file mode: no frame is held."""

    def commit_turn(self) -> Sequence[OutFrame]:
        """Nothing commits a turn here."""
        return ()

    def text(self, text: str) -> Sequence[OutFrame]:
        """There is no user turn as text: a message would reach the backend, not the model that listens."""
        return ()

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """The result of a call; the request to go on follows the last open call, once the backend is at rest."""
        going_on = [wire.create_response()] if self._delegations.result_given(call_id) else []
        return [wire.create_call_output(call_id, output), *going_on]

    def cancel(self) -> Sequence[OutFrame]:
        """Nothing cancels: the model yields when it is spoken over."""
        return ()

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        """Not in this protocol."""
        return ()

    def close(self) -> Sequence[OutFrame]:
        """`session.close`, once a session was started."""
        return [wire.close_session()] if self._ready else ()

    # Reading

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events of one server message, and a request to go on that waited for the backend."""
        event = decode(frame.payload)
        if event is None:
            start = frame.payload[:80].decode("utf-8", "backslashreplace")
            return [Unrecognised(brief(f"not a JSON object: {start}", 200), unreadable=True)], ()
        kind = text_of(event, "type")
        if kind is None or too_deep(event):
            return [
                Unrecognised("message without a type" if kind is None else "nested too deeply", unreadable=True)
            ], ()
        if self._delivered_before(event, frame.payload):
            return (), ()
        handler = self._handlers.get(kind)
        if handler is None:
            return () if kind in _QUIET else [Unrecognised(brief(kind, 200))], ()
        events = handler(event)
        return events, [wire.create_response()] if self._delegations.take_request() else ()

    def connect_failed(self, error: TransportError) -> Event:
        """401 and 403 refuse the key; 429 is a limit or a used-up quota; other 4xx refuse the target."""
        return self._masked(fault_of_connect(FAULTS, error, self._label))

    def closed(self, closed: ClosedBy) -> Event | None:
        """None for our own close; turns have no end here, so any other close comes before one."""
        if not closed.by_peer and closed.code is not None:
            return None
        return self._masked(fault_of_close(FAULTS, closed, self._ready))

    # Handlers

    def _on_started(self, event: JsonObject) -> list[Event]:
        if self._ready:
            return []
        session = object_of(event, "session")
        backend = object_of(object_of(session, "delegation"), "responses")
        if "tools" in backend:
            named = {text_of(tool, "name") for tool in list_of(backend, "tools") if isinstance(tool, dict)}
            if missing := [name for name in self._tools if name not in named]:
                names = ", ".join(brief(name, 80) for name in missing[:8])
                message = f"{len(missing)} of {len(self._tools)} tools are missing from the started session: {names}"
                return [Refused("tools_missing", message, "session.delegation.responses.tools")]
        self._ready = True
        shown = ("model", "audio", "expires_at")
        echoed: JsonObject = {key: bounded(session[key]) for key in shown if key in session}
        for key in ("model", "reasoning", "tool_choice"):
            if key in backend:
                echoed[f"delegate_{key}"] = bounded(backend[key])
        return [SessionReady(text_of(session, "id"), echoed)]

    def _on_audio(self, event: JsonObject) -> list[Event]:
        delta = text_of(event, "delta")
        pcm = None if delta is None else decode_audio(delta)
        if pcm is None:
            return [Unrecognised("audio that is not base64")]
        return [AudioDelta(pcm, self._settings.rate_hz)] if pcm else []

    def _on_words(self, event: JsonObject, *, heard: bool) -> list[Event]:
        delta = text_of(event, "delta")
        if delta is None:
            return [Unrecognised("transcript without a delta")]
        if not delta:
            return []
        return [InputTranscript(delta, final=False) if heard else TranscriptDelta(delta)]

    def _on_usage(self, event: JsonObject) -> list[Event]:
        usage = bounded(object_of(event, "usage"))
        return [Usage(usage)] if isinstance(usage, dict) and usage else []

    def _on_closed(self, event: JsonObject) -> list[Event]:
        """The session's end, with its cause."""
        reason, usage = text_of(event, "reason") or "no reason given", self._on_usage(event)
        if reason == "close_requested":
            return usage
        if reason == "content":
            return [*usage, AnswerEnded(AnswerEnd.CONTENT_FILTER, "the session was closed by a safety filter")]
        code = brief(f"session_closed:{reason}", 100)
        return [*usage, Failed(FailureKind.TRANSIENT, code, f"the session ended: {brief(reason, 100)}")]

    def _on_error(self, event: JsonObject) -> list[Event]:
        error = object_of(event, "error")
        family = text_of(error, "type") or ""
        code = brief(text_of(error, "code") or family or "error", 100)
        message = brief(text_of(error, "message") or "no explanation given")
        where = brief(text_of(error, "param") or "", 200)
        fault: Event | None = fault_of_code(FAULTS, code, message, where)
        if fault is None and not self._ready:
            transient = family == "server_error"
            fault = Failed(FailureKind.TRANSIENT, code, message) if transient else Refused(code, message, where)
        return [self._masked(fault or Warned(code, message))]

    # State

    def _masked(self, event: Event) -> Event:
        if isinstance(event, Refused):
            return Refused(event.code, masked(event.message, self._secrets), masked(event.where, self._secrets))
        if isinstance(event, Failed):
            return Failed(event.kind, event.code, masked(event.message, self._secrets), event.retry_after_s)
        return Warned(event.code, masked(event.message, self._secrets)) if isinstance(event, Warned) else event

    def _delivered_before(self, event: JsonObject, payload: bytes) -> bool:
        """True for the same frame again: same id and same bytes."""
        event_id = text_of(event, "event_id")
        if not event_id:
            return False
        mark = (event_id, hash(payload))
        if mark in self._seen:
            return True
        self._seen.append(mark)
        return False
