"""What an agent's messages mean by a template: its rules over one message, as events. Never raises on any message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from jmespath.parser import ParsedResult

from adapters.foreign_json import JsonObject, bounded, brief, read_arguments
from adapters.rig_socket.faults import fault_of_error
from adapters.rig_socket.wire import ErrorKind
from adapters.template_socket.expressions import expression, literals, search
from adapters.template_socket.sound import Format, from_base64, named_format
from adapters.template_socket.template import FIELDS, Rule, Template
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Event,
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
    TurnCommitted,
    Unrecognised,
    Usage,
    Warned,
)

_MAX_EACH: Final = 64
_MAX_CALLS: Final = 128
_RAW_CALL_BYTES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Match:
    """One rule that a message met."""

    number: int
    """Of the rule in the template."""
    rule: Rule
    events: Sequence[Event]


class Reader:
    """Reads the messages of one session."""

    def __init__(self, template: Template) -> None:
        file = template.file
        self._rules = [
            (rule, expression(rule.when), None if rule.each is None else expression(rule.each), _fields_of(rule))
            for rule in file.events
        ]
        self.output = Format(file.audio_out.encoding, file.audio_out.rate_hz)
        """How speech comes; changed by what the agent states."""
        self._input = Format(file.audio_in.encoding, file.audio_in.rate_hz)
        self._marks_of_calls = frozenset(
            mark.encode() for rule, when, _, _ in self._rules if rule.event == "tool_call" for mark in literals(when)
        )
        self._begins = any(rule.event == "answer_started" for rule in file.events)
        self._begun = False
        self.ready = False
        self.calls: dict[str, tuple[str | None, Mapping[str, Any] | None]] = {}
        """Name and arguments by call id."""
        self._makers: Mapping[str, Callable[[Rule, Mapping[str, Any]], Sequence[Event]]] = {
            "ready": self._on_ready,
            "audio": self._on_audio,
            "text": lambda _, got: _words(TextDelta, got),
            "transcript": lambda _, got: _words(TranscriptDelta, got),
            "heard": self._on_heard,
            "tool_call": self._on_call,
            "speech_started": lambda _, got: [SpeechStarted(_whole(got.get("audio_ms")))],
            "speech_stopped": lambda _, got: [SpeechStopped(_whole(got.get("audio_ms")))],
            "turn_committed": lambda _, got: [TurnCommitted()],
            "answer_started": self._on_started,
            "answer_ended": self._on_ended,
            "interrupted": lambda _, got: [Interrupted()],
            "usage": self._on_usage,
            "error": self._on_error,
            "ignore": lambda _, got: [],
        }

    def new_turn(self) -> None:
        """The caller speaks again, or a call has its result: no answer has begun."""
        self._begun = False

    def read(self, message: JsonObject) -> list[Match]:
        """Every rule that the message meets, in the template's order; empty when it meets none."""
        matches = []
        for number, (rule, when, each, fields) in enumerate(self._rules):
            if not search(when, message):
                continue
            found = [message] if each is None else search(each, message)
            parts = found if isinstance(found, list) else [] if found is None else [found]
            events: list[Event] = []
            for part in parts[:_MAX_EACH]:
                got = {name: search(parsed, part) for name, parsed in fields.items()}
                events += self._makers[rule.event](rule, got)
            if len(parts) > _MAX_EACH:
                events.append(Warned("too_many", f"one message held {len(parts)} parts; {_MAX_EACH} were read"))
            matches.append(Match(number, rule, events))
        return matches

    def unreadable(self, payload: bytes) -> list[Event]:
        """A message that is no JSON object: an unreadable call where it holds the word by which calls are known."""
        if any(mark and mark in payload for mark in self._marks_of_calls):
            raw = payload[:_RAW_CALL_BYTES].decode("utf-8", "backslashreplace")
            events = self._call(None, None, raw, None)
            return [*events, Warned("unreadable", "a call is not a JSON object; it counts as an unreadable call")]
        start = brief(payload[:80].decode("utf-8", "backslashreplace"), 200)
        summary = f"a message is not a JSON object: {start}"
        return [Unrecognised(summary, unreadable=True), Warned("unreadable", summary)]

    def _on_ready(self, rule: Rule, got: Mapping[str, Any]) -> Sequence[Event]:
        for name, ours in (("input_format", self._input), ("output_format", self.output)):
            stated = got.get(name)
            if stated is None:
                continue
            theirs = named_format(stated) if isinstance(stated, str) else None
            if theirs is None or (name == "input_format" and theirs != ours):
                wanted = f"{ours.encoding} at {ours.rate_hz} Hz" if name == "input_format" else "pcm_RATE or ulaw_8000"
                text = f"the agent states {brief(str(stated), 60)}, the template takes {wanted}"
                return [Refused("other_audio_format", text, f"{name}; change the agent's or the template's")]
            if name == "output_format":
                self.output = theirs
        self.ready = True
        session_id = got.get("session_id")
        echoed = bounded(got["echo"]) if got.get("echo") is not None else {}
        echoed = echoed if isinstance(echoed, dict) else {"echo": echoed}
        return [SessionReady(brief(session_id, 200) if isinstance(session_id, str) else None, echoed)]

    def _on_audio(self, rule: Rule, got: Mapping[str, Any]) -> Sequence[Event]:
        coded = from_base64(got["audio"]) if isinstance(got["audio"], str) else None
        if coded is None:
            return [Warned("unreadable", "audio that is not base64 is left out")]
        return self.speech(coded)

    def speech(self, coded: bytes) -> Sequence[Event]:
        """A piece of the agent's speech as it came."""
        return [AudioDelta(self.output.decode(coded), self.output.rate_hz)] if coded else []

    def _on_heard(self, rule: Rule, got: Mapping[str, Any]) -> Sequence[Event]:
        if not isinstance(got["text"], str):
            return _no_words("heard")
        return [InputTranscript(got["text"], final=bool(got.get("final", True)))]

    def _on_call(self, rule: Rule, got: Mapping[str, Any]) -> Sequence[Event]:
        given = got.get("call_id")
        call_id = str(given) if isinstance(given, str | int) and given != "" else None
        if call_id is not None and call_id in self.calls:
            return [Warned("repeated_call", brief(f"call {call_id} came again; only the first counts"))]
        name = got["name"] if isinstance(got["name"], str) and got["name"] else None
        stated = got.get("arguments")
        text = stated if isinstance(stated, str) else "" if stated is None else _as_json(stated)
        return self._call(call_id, name, text, None if text is None else read_arguments(text))

    def _call(
        self, call_id: str | None, name: str | None, text: str | None, arguments: JsonObject | None
    ) -> list[Event]:
        index = len(self.calls)
        if index >= _MAX_CALLS:
            return [Warned("too_many_calls", f"more than {_MAX_CALLS} calls came; the others are left out")]
        call_id = call_id if call_id is not None else f"unnamed-{index}"
        self.calls[call_id] = (name, arguments)
        return [ToolCallStarted(call_id, name, index), ToolCall(call_id, name, text or "", arguments, index)]

    def _on_started(self, rule: Rule, got: Mapping[str, Any]) -> Sequence[Event]:
        self._begun = True
        return []

    def _on_ended(self, rule: Rule, got: Mapping[str, Any]) -> Sequence[Event]:
        if self._begins and not self._begun:
            return []
        self._begun = False
        reason = got.get("reason")
        if reason is None or reason in list(AnswerEnd):
            return [AnswerEnded(AnswerEnd(reason or AnswerEnd.COMPLETED))]
        return [AnswerEnded(AnswerEnd.INCOMPLETE, brief(str(reason), 200))]

    def _on_usage(self, rule: Rule, got: Mapping[str, Any]) -> Sequence[Event]:
        counts = bounded(got["counts"])
        return [Usage(counts)] if isinstance(counts, dict) else []

    def _on_error(self, rule: Rule, got: Mapping[str, Any]) -> Sequence[Event]:
        code, message = got.get("code"), got.get("message")
        said = brief(message) if isinstance(message, str) and message else "the agent gave no explanation"
        named = brief(str(code), 100) if isinstance(code, str | int) and code != "" else "error"
        return [fault_of_error(ErrorKind(rule.kind or "transient"), named, said, "", None)]


def _fields_of(rule: Rule) -> dict[str, ParsedResult]:
    needed, more = FIELDS[rule.event]
    named = {name: getattr(rule, name) for name in (*needed, *more) if name != "kind"}
    return {name: expression(text) for name, text in named.items() if text is not None}


def _as_json(value: Any) -> str | None:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError, RecursionError):
        return None


def _words(event: type[TextDelta] | type[TranscriptDelta], got: Mapping[str, Any]) -> Sequence[Event]:
    text = got["text"]
    if not isinstance(text, str):
        return _no_words("text")
    return [event(text)] if text else []


def _no_words(what: str) -> Sequence[Event]:
    return [Warned("unreadable", f"{what} that is not a string is left out")]


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
