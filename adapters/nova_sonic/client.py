"""Client half of Amazon Nova Sonic: verbs become events, the model's events become ours. Sans-I/O; one session's state.

Nothing commits a turn: the vendor's endpointing ends it after some 1.5 s of silence, which turn control sends. So
turns are not deterministic. Facts: docs.aws.amazon.com/nova (nova2-userguide, sonic pages).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import orjson

from adapters.chunks import pieces, samples_in
from adapters.dialect import Capabilities, EncodedClip, Setup, TargetSettings, TurnMode
from adapters.foreign_json import JsonObject, bounded, brief, decode, masked, read_arguments, text_of, too_deep
from adapters.nova_sonic import wire
from adapters.nova_sonic.faults import fault_of_close, fault_of_connect, fault_of_name
from adapters.nova_sonic.settings import NovaSettings, endpoint_of, generation_of, setup_events
from adapters.openai_family.wire import decode_audio
from adapters.target_settings import read_settings
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Event,
    Failed,
    InputTranscript,
    Interrupted,
    Refused,
    ToolCall,
    ToolCallStarted,
    TranscriptDelta,
    Unrecognised,
    Usage,
    Warned,
)
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint, TransportError

_BLOCKS_KEPT: Final = 256
_MAX_CALLS: Final = 128
_ENCODINGS: Final = 3
"""How often arguments may be wrapped as JSON text in JSON text (reported of the vendor)."""


class NovaClient:
    """`ClientDialect` of Nova Sonic for one session."""

    def __init__(self, target: TargetSettings) -> None:
        """Raises `SettingsError`: unknown or invalid settings, or an address that is none."""
        self._settings = read_settings(NovaSettings, target.extra)
        self._endpoint = endpoint_of(self._settings, target)
        self._secrets = (target.api_key,) if target.api_key else ()
        self._generation = generation_of(self._settings, target.model)
        self.capabilities = Capabilities(
            text_twin=self._generation == 2,
            probe=True,
            turn_modes=frozenset({TurnMode.SERVER_VAD}),
            input_rates_hz=(wire.INPUT_RATE_HZ,),
            output_rate_hz=self._settings.output_rate_hz,
            deterministic_turns=False,
            confirms_setup=False,
            waits_for_tool_result=True,
            continuous_audio=True,
            late_call_grace_s=self._settings.late_call_grace_s,
        )
        self._opened = False
        self._blocks: dict[str, tuple[str | None, str | None]] = {}
        """Content id → role and generation stage."""
        self._calls: dict[str, int] = {}
        self._sent = 0
        self._begun = False
        self._ended = False
        self._interrupted = False
        self._said = False
        """Words that were really spoken have come."""
        self._planned: list[str] = []
        self._last_text: JsonObject = {}
        self._handlers: Mapping[str, Callable[[JsonObject], list[Event]]] = {
            "completionStart": self._on_completion_start,
            "contentStart": self._on_content_start,
            "textOutput": self._on_text,
            "audioOutput": self._on_audio,
            "toolUse": self._on_tool_use,
            "contentEnd": self._on_content_end,
            "completionEnd": self._on_completion_end,
            "usageEvent": self._on_usage,
        }

    # Verbs

    def endpoint(self) -> Endpoint:
        """Where to connect; see `settings.endpoint_of`."""
        return self._endpoint

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        """Session, prompt with tools, system text, and the caller's audio content, which stays open.

        Raises:
            SettingsError: turn control that the API does not have.
        """
        frames = setup_events(self._settings, self._generation, setup)
        self._opened = True
        return frames

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """`audioInput` events.

        Raises:
            ValueError: another rate than 16 kHz, half a sample, or a chunk length below 1 ms.
        """
        if rate_hz != wire.INPUT_RATE_HZ:
            raise ValueError(f"takes audio at {wire.INPUT_RATE_HZ} Hz, not {rate_hz}")
        frames = tuple(wire.audio_input(piece) for piece in pieces(pcm, rate_hz, chunk_ms))
        return EncodedClip(frames, chunk_ms, rate_hz, len(pcm) // 2)

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        """One `audioInput` of zeros."""
        return wire.audio_input(bytes(2 * samples_in(rate_hz, duration_ms)))

    def start_turn(self) -> Sequence[OutFrame]:
        """Nothing is owed: the audio content is open."""
        return ()

    def hold(self, frame: OutFrame) -> None:
        """Not in file mode: no frame is held."""

    def commit_turn(self) -> Sequence[OutFrame]:
        """Nothing commits a turn here."""
        return ()

    def text(self, text: str) -> Sequence[OutFrame]:
        """The caller's words as text beside the open audio content (second generation only)."""
        return wire.text_block(self._next_name("text"), "USER", text)

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """The result of a call; the model goes on by itself."""
        return wire.tool_result_block(self._next_name("result"), call_id, output)

    def cancel(self) -> Sequence[OutFrame]:
        """Nothing cancels: the model yields when it is spoken over."""
        return ()

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        """Not in this protocol."""
        return ()

    def close(self) -> Sequence[OutFrame]:
        """Ends of the audio content, the prompt and the session."""
        if not self._opened:
            return ()
        prompt_end = wire.event("promptEnd", {"promptName": wire.PROMPT})
        return [wire.content_end(wire.CALLER), prompt_end, wire.event("sessionEnd", {})]

    # Reading

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events of one frame; nothing is owed in return."""
        found = wire.read(frame.payload)
        if found is None:
            start = frame.payload[:80].decode("utf-8", "backslashreplace")
            return [Unrecognised(brief(f"no event: {start}", 200), unreadable=True)], ()
        kind, name, body = found
        if too_deep(body):
            return [Unrecognised("nested too deeply", unreadable=True)], ()
        if kind == "exception":
            return [self._masked(fault_of_name(name, text_of(body, "message") or "", begun=self._begun))], ()
        handler = self._handlers.get(name)
        return (handler(body) if handler else [Unrecognised(brief(name, 200))]), ()

    def connect_failed(self, error: TransportError) -> Event:
        """By the exception's name or HTTP status; a missing SDK or credential refuses the target."""
        return self._masked(fault_of_connect(error))

    def closed(self, closed: ClosedBy) -> Event | None:
        """None after a finished answer and for our own close."""
        if self._ended or (not closed.by_peer and closed.code is not None):
            return None
        return self._masked(fault_of_close(closed))

    # Handlers

    def _on_completion_start(self, body: JsonObject) -> list[Event]:
        return []

    def _on_content_start(self, body: JsonObject) -> list[Event]:
        content_id, role = text_of(body, "contentId"), text_of(body, "role")
        fields = decode(text_of(body, "additionalModelFields") or "") or {}
        if role == "ASSISTANT" and text_of(body, "type") == "AUDIO":
            self._interrupted = self._ended = False
        if content_id is not None:
            if len(self._blocks) >= _BLOCKS_KEPT:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[content_id] = (role, text_of(fields, "generationStage"))
        return []

    def _on_text(self, body: JsonObject) -> list[Event]:
        text = text_of(body, "content")
        if text is None:
            return [Unrecognised("textOutput without content")]
        if body == self._last_text and "contentId" in body:
            return []  # the same event again: nothing numbers them
        self._last_text = body
        if (decode(text) or {}).get("interrupted") is True:
            self._interrupted = True
            return [Interrupted()]
        role, stage = self._blocks.get(text_of(body, "contentId") or "", (None, None))
        if (text_of(body, "role") or role) == "USER":
            return [InputTranscript(text)] if text else []
        if stage == "SPECULATIVE":
            # A plan, which may differ from what is spoken.
            if len(self._planned) < _BLOCKS_KEPT:
                self._planned.append(text)
            return []
        self._begun = True
        apart, self._said = " " if self._said else "", True
        return [TranscriptDelta(apart + text)] if text else []

    def _on_audio(self, body: JsonObject) -> list[Event]:
        content = text_of(body, "content")
        pcm = None if content is None else decode_audio(content)
        if pcm is None:
            return [Unrecognised("audio that is not base64")]
        self._begun = True
        return [AudioDelta(pcm, self._settings.output_rate_hz, text_of(body, "contentId"))] if pcm else []

    def _on_tool_use(self, body: JsonObject) -> list[Event]:
        call_id = text_of(body, "toolUseId") or f"call_{len(self._calls)}"
        if call_id in self._calls:
            return []
        if len(self._calls) >= _MAX_CALLS:
            return [Warned("too_many_calls", f"more than {_MAX_CALLS} tool calls: the rest is left out")]
        self._begun = True
        index = self._calls[call_id] = len(self._calls)
        name = text_of(body, "toolName") or text_of(body, "name")
        as_received, arguments = _arguments(body)
        return [ToolCallStarted(call_id, name, index), ToolCall(call_id, name, as_received, arguments, index)]

    def _on_content_end(self, body: JsonObject) -> list[Event]:
        kind, reason = text_of(body, "type"), text_of(body, "stopReason")
        if reason == "INTERRUPTED":
            already, self._interrupted = self._interrupted, True
            return [] if already else [Interrupted()]
        if kind == "AUDIO" and reason == "END_TURN" and not self._interrupted:
            # After an interruption this ends the speech that was cut, and another answer follows.
            self._ended = True
            return [AnswerEnded(AnswerEnd.COMPLETED)]
        return []

    def _on_completion_end(self, body: JsonObject) -> list[Event]:
        """Late or missing with this vendor; counts where the speech had no end of its own."""
        events: list[Event] = []
        if self._planned and not self._said:
            events.append(Warned("planned_words", "the words that were spoken never came; these are the planned ones"))
            events.append(TranscriptDelta(" ".join(self._planned)))
        self._planned, self._said = [], False
        if text_of(body, "stopReason") == "END_TURN" and not self._ended and not self._interrupted:
            self._ended = True
            events.append(AnswerEnded(AnswerEnd.COMPLETED))
        return events

    def _on_usage(self, body: JsonObject) -> list[Event]:
        """Running totals."""
        shown = ("totalInputTokens", "totalOutputTokens", "totalTokens", "details")
        return [Usage({key: bounded(body[key]) for key in shown if key in body})]

    # State

    def _next_name(self, purpose: str) -> str:
        self._sent += 1
        return f"{purpose}-{self._sent}"

    def _masked(self, event: Refused | Failed) -> Event:
        message = masked(event.message, self._secrets)
        if isinstance(event, Refused):
            return Refused(event.code, message, event.where)
        return Failed(event.kind, event.code, message, event.retry_after_s)


def _arguments(body: JsonObject) -> tuple[str, JsonObject | None]:
    """A call's arguments as received, and read: JSON text in `content`, or an object in `input` (or either in both)."""
    given = body.get("content")
    if given is None or given == "":
        given = body.get("input", given)
    if isinstance(given, dict):
        return orjson.dumps(given).decode(), given
    if given is None:
        return "", {}
    if not isinstance(given, str):
        return orjson.dumps(given).decode(), None
    text = given
    for _ in range(_ENCODINGS):
        arguments = read_arguments(text)
        if arguments is not None:
            return given, arguments
        try:
            inner = orjson.loads(text)
        except orjson.JSONDecodeError:
            break
        if not isinstance(inner, str):
            break
        text = inner
    return given, None
