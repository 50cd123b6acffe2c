"""Client half of the rig socket: the rig's side of docs/bring-your-own-agent.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import Field

from adapters.dialect import Capabilities, EncodedClip, SettingsError, Setup, TargetSettings, TurnMode
from adapters.foreign_json import JsonObject, brief, decode, int_of, masked, object_of, read_arguments, text_of
from adapters.rig_socket import wire
from adapters.rig_socket.faults import fault_of_close, fault_of_connect, fault_of_error
from adapters.rig_socket.wire import ErrorKind, FromAgent, FromRig
from adapters.target_settings import (
    HeaderText,
    StrictSettings,
    bearer_headers,
    read_address,
    read_settings,
    secret_values,
)
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Event,
    Failed,
    InputTranscript,
    Interrupted,
    Refused,
    SessionReady,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    ToolCall,
    ToolCallStarted,
    TranscriptDelta,
    Unrecognised,
    Usage,
    Warned,
)
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint, TransportError

_CAPABILITIES: Final = Capabilities(
    text_twin=True,
    probe=True,
    turn_modes=wire.TURN_MODES,
    input_rates_hz=wire.INPUT_RATES_HZ,
    output_rate_hz=wire.OUTPUT_RATE_HZ,
)


_LONGEST_WAIT_S: Final = 86_400


class RigSocketSettings(StrictSettings):
    """`settings:` of a target."""

    input_rate_hz: Literal[8000, 16000, 24000, 48000] = 24000
    """Rate of the caller audio that the agent is sent."""
    waits_for_tool_result: bool = False
    """True for an agent that cannot send `turn.end` before its call is answered."""
    takes_setup: bool = True
    """False for an agent with a prompt and tools of its own: it is sent neither."""
    tools: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(default=(), strict=False)
    """Names of the agent's own tools, where `takes_setup` is false."""
    text_turns: bool = True
    """False for an agent that does not answer `turn.text`."""
    end_silence_s: Annotated[float, Field(ge=0.3, le=10, strict=False)] | None = None
    """For an agent that never sends `turn.end`: so much silence behind its answer ends it."""
    continuous_audio: bool = False
    """True for a full-duplex agent: silence goes on at its pace behind the clip (turn control server_vad)."""
    headers: dict[HeaderText, HeaderText] = Field(default_factory=dict, repr=False)
    """More headers of the handshake; values are secret."""


_CALL = re.compile(rb'"type"\s*:\s*"tool\.call"')
_NAME = re.compile(rb'"name"\s*:\s*"([^"\\]{1,200})"')
_BASE64 = re.compile(rb'"(?:[A-Za-z0-9+/]|\\/){160}')
"""The start of a string that holds audio. Not the whole of it: a message may be 64 MiB, and all other calls wait."""
_RAW_CALL_BYTES = 10_000
_OWN: Final = "x_"
"""Types and fields of an agent's own."""
_MOST_NOTED: Final = 20


class RigSocketClient:
    """`ClientDialect` of the rig socket for one session."""

    def __init__(self, target: TargetSettings) -> None:
        """Raises `SettingsError`: unknown or invalid settings, or no address."""
        settings = read_settings(RigSocketSettings, target.extra)
        if settings.takes_setup and settings.tools:
            raise SettingsError("settings.tools: only for an agent with tools of its own (takes_setup: false)")
        if not settings.takes_setup and not settings.tools:
            raise SettingsError("settings.tools: required with takes_setup: false, the names of the agent's own tools")
        if not target.base_url:
            raise SettingsError("base_url: required, the address of the agent, e.g. ws://127.0.0.1:9876")
        parts, label = read_address(target.base_url, ("ws", "wss"), "ws://127.0.0.1:9876")
        headers = bearer_headers(settings.headers, target.api_key)
        self._endpoint = Endpoint(parts._replace(fragment="").geturl(), headers, label)
        self._secrets = secret_values(headers, parts.query)
        first = settings.input_rate_hz
        others = (rate for rate in wire.INPUT_RATES_HZ if rate != first)
        self.capabilities = replace(
            _CAPABILITIES,
            input_rates_hz=(first, *others),
            waits_for_tool_result=settings.waits_for_tool_result,
            takes_setup=settings.takes_setup,
            declared_tools=None if settings.takes_setup else frozenset(settings.tools),
            probe=settings.takes_setup,
            text_twin=settings.text_turns,
            ends_by_silence_s=settings.end_silence_s,
            continuous_audio=settings.continuous_audio,
            turn_modes=frozenset({TurnMode.SERVER_VAD}) if settings.continuous_audio else wire.TURN_MODES,
            deterministic_turns=not settings.continuous_audio,
        )
        self._ready = False
        self._over = False
        """The answer has ended or failed: a close ends nothing more."""
        self._output_rate_hz = wire.OUTPUT_RATE_HZ
        self._given: set[str] = set()
        self._noted_before: set[tuple[str, str]] = set()
        self._readers: Mapping[str, Callable[[JsonObject], Event | Sequence[Event]]] = {
            FromAgent.READY: self._on_ready,
            FromAgent.ERROR: self._on_error,
            FromAgent.SPEECH_STARTED: lambda fields: SpeechStarted(int_of(fields, "audio_ms")),
            FromAgent.SPEECH_STOPPED: lambda fields: SpeechStopped(int_of(fields, "audio_ms")),
            FromAgent.INPUT_TRANSCRIPT: lambda fields: _words(InputTranscript, fields),
            FromAgent.TOOL_CALL: self._on_tool_call,
            FromAgent.TEXT: lambda fields: _words(TextDelta, fields),
            FromAgent.TRANSCRIPT: lambda fields: _words(TranscriptDelta, fields),
            FromAgent.INTERRUPTED: lambda _: Interrupted(),
            FromAgent.USAGE: lambda fields: Usage(object_of(fields, "counts")),
            FromAgent.TURN_END: self._on_turn_end,
        }

    # Verbs

    def endpoint(self) -> Endpoint:
        """The agent's address; a token in its query is in no label."""
        return self._endpoint

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        """`session.setup`; without instructions and tools for an agent that has its own."""
        if not self.capabilities.takes_setup:
            setup = replace(setup, instructions="", tools=())
        return [wire.setup_message(setup)]

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """Binary frames of PCM; chunk k begins at sample `round(k * rate_hz * chunk_ms / 1000)`.

        Raises:
            ValueError: a rate the contract does not have, half a sample, or a chunk length below 1 ms.
        """
        if rate_hz not in wire.INPUT_RATES_HZ or len(pcm) % 2 or chunk_ms < 1:
            raise ValueError(
                f"needs whole 16-bit samples at one of {wire.INPUT_RATES_HZ} Hz and chunks of 1 ms or more"
            )
        samples = len(pcm) // 2
        frames: list[OutFrame] = []
        start = 0
        while start < samples:
            end = min(samples, round((len(frames) + 1) * rate_hz * chunk_ms / 1000))
            frames.append(OutFrame(pcm[2 * start : 2 * end], binary=True))
            start = end
        return EncodedClip(tuple(frames), chunk_ms, rate_hz, samples)

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        """One binary frame of zeros."""
        return OutFrame(bytes(2 * round(rate_hz * duration_ms / 1000)), binary=True)

    def start_turn(self) -> Sequence[OutFrame]:
        """`turn.start`."""
        self._over = False
        return [wire.control(FromRig.TURN_START)]

    def hold(self, frame: OutFrame) -> None:
        """Not in file mode: no frame is held."""

    def commit_turn(self) -> Sequence[OutFrame]:
        """`turn.commit`."""
        return [wire.control(FromRig.TURN_COMMIT)]

    def text(self, text: str) -> Sequence[OutFrame]:
        """`turn.text`: a whole turn; no `turn.start` or `turn.commit` belongs to it."""
        self._over = False
        return [wire.control(FromRig.TURN_TEXT, text=text)]

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """`tool.result`; the agent goes on when all its calls have theirs."""
        self._over = False
        return [wire.control(FromRig.TOOL_RESULT, call_id=call_id, output=output)]

    def cancel(self) -> Sequence[OutFrame]:
        """`turn.cancel`."""
        return [wire.control(FromRig.TURN_CANCEL)]

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        """`reply.truncate`."""
        return [wire.control(FromRig.TRUNCATE, audio_ms=audio_ms)]

    def close(self) -> Sequence[OutFrame]:
        """`session.close`."""
        return [wire.control(FromRig.CLOSE)]

    # Reading

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events of one message of the agent. Nothing is ever owed in return."""
        if frame.binary:
            return [self._on_audio(frame.payload)], ()
        fields = decode(frame.payload)
        if fields is None:
            if _CALL.search(frame.payload):
                return self._on_unreadable_call(frame.payload), ()
            start = brief(frame.payload[:80].decode("utf-8", "backslashreplace"), 200)
            return _unreadable(f"a text frame is not a JSON object: {start}"), ()
        kind = text_of(fields, "type")
        if kind is None:
            return _unreadable(brief(f"a message has no type; its fields: {', '.join(fields)}", 200)), ()
        reader = self._readers.get(kind)
        if reader is None:
            return [Unrecognised(brief(kind, 200)), *self._on_unknown_type(kind, frame.payload)], ()
        events = reader(fields)
        return [*(events if isinstance(events, Sequence) else [events]), *self._on_unknown_fields(kind, fields)], ()

    def connect_failed(self, error: TransportError) -> Event:
        """401, 403, 404 and other 4xx refuse the target; 429, 5xx and network failures may be tried again."""
        return self._without_secrets(fault_of_connect(error))

    def closed(self, closed: ClosedBy) -> Event | None:
        """None after a finished or failed answer and for our own close."""
        if self._over or (not closed.by_peer and closed.code is not None):
            return None
        return self._without_secrets(fault_of_close(closed, self._ready))

    def _on_unknown_type(self, kind: str, payload: bytes) -> Sequence[Event]:
        if _BASE64.search(payload):
            return self._noted("audio_as_text", f"{brief(kind, 60)}: audio belongs in binary frames; it is not heard")
        if kind.startswith(_OWN):
            return ()
        return self._noted("unknown_type", f"{brief(kind, 60)}: not a type of the rig socket; it is ignored")

    def _on_unknown_fields(self, kind: str, fields: JsonObject) -> Sequence[Event]:
        unknown = sorted(name for name in fields.keys() - wire.fields_of(kind) if not name.startswith(_OWN))
        if not unknown:
            return ()
        return self._noted("unknown_field", f"{kind} has no field {brief(', '.join(unknown), 100)}; it is ignored")

    def _noted(self, code: str, text: str) -> Sequence[Event]:
        """Told once."""
        if (code, text) in self._noted_before or len(self._noted_before) >= _MOST_NOTED:
            return ()
        self._noted_before.add((code, text))
        return [Warned(code, text)]

    def _on_audio(self, pcm: bytes) -> Event:
        if not self._ready:
            return Warned("audio_before_ready", "audio before session.ready is dropped: its rate is not known yet")
        return AudioDelta(pcm, self._output_rate_hz)

    def _on_ready(self, fields: JsonObject) -> Event:
        version = fields.get("version")
        if int_of(fields, "version") not in wire.VERSIONS:
            stated = "no version" if version is None else f"version {brief(str(version), 40)}"
            return self._refused(
                "version_mismatch", f"session.ready states {stated}, the rig speaks rig socket version {wire.VERSION}"
            )
        low, high = wire.OUTPUT_RATE_BOUNDS_HZ
        rate_hz = int_of(fields, "output_rate_hz")
        if fields.get("output_rate_hz") is not None and (rate_hz is None or not low <= rate_hz <= high):
            return self._refused(
                "bad_output_rate", f"session.ready: output_rate_hz must be a whole number from {low} to {high}"
            )
        self._output_rate_hz = rate_hz or wire.OUTPUT_RATE_HZ
        self._ready = True
        agent = text_of(fields, "agent")
        echoed: dict[str, Any] = {"output_rate_hz": self._output_rate_hz}
        return SessionReady(None, echoed if agent is None else {"agent": brief(agent, 200), **echoed})

    def _refused(self, code: str, text: str) -> Refused:
        self._over = True
        return Refused(code, text, "session.ready")

    def _on_error(self, fields: JsonObject) -> Event:
        stated = text_of(fields, "kind")
        if stated in list(ErrorKind):
            kind = ErrorKind(stated)
        else:
            # Before the session is ready, trying again would meet the same setup.
            kind = ErrorKind.TRANSIENT if self._ready else ErrorKind.CONFIGURATION
        event = fault_of_error(
            kind,
            brief(text_of(fields, "code") or "error", 100),
            brief(text_of(fields, "message") or "the agent reported an error without a message"),
            brief(text_of(fields, "where") or "", 200),
            _seconds(fields.get("retry_after_s")),
        )
        self._over = self._over or not isinstance(event, Warned)
        return self._without_secrets(event)

    def _on_tool_call(self, fields: JsonObject) -> Sequence[Event]:
        given = fields.get("call_id")
        call_id = str(given) if isinstance(given, str | int) and given != "" else f"unnamed-{len(self._given)}"
        if call_id in self._given:
            return [
                Warned("repeated_call", brief(f"tool.call with call_id {call_id} came again; only the first counts"))
            ]
        output_index = len(self._given)
        self._given.add(call_id)
        name = text_of(fields, "name") or None
        stated = fields.get("arguments")
        # An object counts as its own JSON text; anything else that is no string is an unreadable call, never none.
        arguments_json = stated if isinstance(stated, str) else "" if stated is None else orjson.dumps(stated).decode()
        arguments = read_arguments(arguments_json)
        return [
            ToolCallStarted(call_id, name, output_index),
            ToolCall(call_id, name, arguments_json, arguments, output_index),
        ]

    def _on_unreadable_call(self, payload: bytes) -> Sequence[Event]:
        """A frame that means to be a `tool.call` but is no JSON (NaN, half a surrogate): a wrong call, never none."""
        raw = payload[:_RAW_CALL_BYTES].decode("utf-8", "backslashreplace")
        named = _NAME.search(payload)
        name = named[1].decode("utf-8", "replace") if named else None
        output_index = len(self._given)
        call_id = f"unreadable-{output_index}"
        self._given.add(call_id)
        return [
            ToolCallStarted(call_id, name, output_index),
            ToolCall(call_id, name, raw, None, output_index),
            Warned("unreadable", "a tool.call is not a JSON object; it counts as an unreadable call"),
        ]

    def _on_turn_end(self, fields: JsonObject) -> Event:
        self._over = True
        reason = text_of(fields, "reason") or AnswerEnd.COMPLETED.value
        if reason in list(AnswerEnd):
            return AnswerEnded(AnswerEnd(reason), brief(text_of(fields, "detail") or ""))
        return AnswerEnded(AnswerEnd.INCOMPLETE, brief(reason, 200))

    def _without_secrets(self, fault: Refused | Failed | Warned) -> Event:
        return replace(fault, message=masked(fault.message, self._secrets))


def _words(
    event: type[TextDelta] | type[TranscriptDelta] | type[InputTranscript], fields: JsonObject
) -> Event | Sequence[Event]:
    text = text_of(fields, "text")
    return _unreadable(f"{fields['type']} without a string in text") if text is None else event(text)


def _unreadable(summary: str) -> Sequence[Event]:
    return [Unrecognised(summary, unreadable=True), Warned("unreadable", summary)]


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _LONGEST_WAIT_S else None
