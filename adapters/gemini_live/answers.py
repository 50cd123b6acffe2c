"""Reads what the model says and calls, and when its answer is over. The wire names no answer: order alone tells.

An answer ends at `turnComplete`, unless `interactionStatus` says that more is to come (IN_PROGRESS): then at IDLE
(ai.google.dev live-api/thinking, ProfSynapse/nexus#389). A false pair of `interrupted` and `turnComplete`, before any
content of the turn, ends nothing (langwatch/scenario#360).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from adapters.foreign_json import JsonObject, brief, list_of, object_of, text_of, too_deep
from adapters.gemini_live import wire
from adapters.gemini_live.schema import Undo, undone
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Event,
    InputTranscript,
    Interrupted,
    TextDelta,
    ToolCall,
    TranscriptDelta,
    Unrecognised,
    Warned,
)

MAX_CALLS: Final = 128
"""Calls of one session that are followed; more are reported once and left out."""
_NORMAL_ENDS: Final = frozenset({"TURN_COMPLETE_REASON_UNSPECIFIED", "NEED_MORE_INPUT"})
_CUT_ENDS: Final = frozenset({"MALFORMED_FUNCTION_CALL", "MAX_REGENERATION_REACHED", "GENERATED_OTHER"})
"""All other reasons are the vendor's filters."""


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without its result."""

    name: str
    given_id: str | None
    """None when the vendor gave none (Vertex)."""


class Answers:
    """State of one session's answers."""

    def __init__(self) -> None:
        self.open_calls: OrderedDict[str, OpenCall] = OrderedDict()
        """By call id, ours where the vendor gave none."""
        self.finished = False
        """An answer ended and no other is asked for."""
        self._undo: Mapping[str, Undo] = {}
        self._invited = False
        """Content that comes now answers the caller."""
        self._heard = False
        """The model has said or called something in this turn."""
        self._cut = False
        """The caller interrupted this answer."""
        self._cut_before = False
        """An interruption came before any content of this turn; its end is not the turn's."""
        self._in_progress = False
        """A turn of the model is complete and more is to come."""
        self._seen: set[str] = set()
        self._calls = 0
        self._warned: set[str] = set()

    def begin(self, undo: Mapping[str, Undo], *, invited: bool) -> None:
        """The session begins; `undo` turns back arguments, by tool. `invited`: an answer may come without a commit."""
        self._undo = undo
        self._invited = invited

    def new_turn(self, *, invited: bool) -> None:
        """The caller begins to speak, or has said all (`invited`)."""
        self._invited = invited
        self._heard = self._cut = self._cut_before = self._in_progress = self.finished = False
        self._warned.discard("uninvited_answer")

    def ask(self) -> None:
        """The caller's turn is over."""
        self._invited = True

    def result_given(self, call_id: str) -> OpenCall | None:
        """The call whose result is given; None when it is unknown or was withdrawn."""
        call = self.open_calls.pop(call_id, None)
        if call is not None:
            self.finished = False
        return call

    # Reading

    def content(self, part: JsonObject) -> list[Event]:
        """Events of `serverContent`."""
        said = self._said(part)
        heard_caller = text_of(object_of(part, "inputTranscription"), "text")
        events: list[Event] = [InputTranscript(heard_caller, final=False)] if heard_caller else []
        events += self._take(said)
        if part.get("interrupted") is True:
            events += self._interrupted()
        return events + self._ends(part)

    def calls_made(self, part: JsonObject) -> list[Event]:
        """Events of `toolCall`: each call whole, its arguments an object."""
        if not self._invited:
            return self._uninvited()
        events: list[Event] = []
        for call in list_of(part, "functionCalls"):
            if not isinstance(call, dict):
                events.append(Unrecognised("a call that is no object", unreadable=True))
            elif self._calls >= MAX_CALLS:
                events += self._warn("too_many_calls", f"more than {MAX_CALLS} calls: the others are not kept")
            else:
                events += self._call(call)
        return events

    def calls_withdrawn(self, part: JsonObject) -> list[Event]:
        """Events of `toolCallCancellation`: the calls were made, and need no result."""
        ids = [call_id for call_id in list_of(part, "ids") if isinstance(call_id, str)]
        for call_id in ids:
            self.open_calls.pop(call_id, None)
        return [Warned("tool_call_withdrawn", brief(f"the server withdrew calls: {', '.join(ids)}", 200))]

    def _call(self, call: JsonObject) -> list[Event]:
        given_id, name = text_of(call, "id") or None, text_of(call, "name") or None
        if given_id is not None and given_id in self._seen:
            return []
        call_id = given_id or f"call_without_id_{self._calls}"
        self._seen.add(call_id)
        self.open_calls[call_id] = OpenCall(name or "", given_id)
        received = call.get("args")
        received = {} if received is None else received
        deep = too_deep(received)
        shown = '"nested too deeply"' if deep else orjson.dumps(received).decode()
        arguments: JsonObject | None = received if isinstance(received, dict) and not deep else None
        events: list[Event] = []
        if arguments is not None:
            arguments, changes = undone(arguments, self._undo.get(name or ""))
            if changes:
                listed = "; ".join(changes)
                events.append(Warned("arguments_turned_back", brief(f"{name}: {listed} in the tool's own schema", 400)))
        events.append(ToolCall(call_id, name, shown, arguments, self._calls))
        self._calls += 1
        self._heard = True
        return events

    def _said(self, part: JsonObject) -> list[Event]:
        said: list[Event] = []
        for piece in list_of(object_of(part, "modelTurn"), "parts"):
            said += _piece(piece) if isinstance(piece, dict) else [Unrecognised("a part that is no object")]
        words = text_of(object_of(part, "outputTranscription"), "text")
        return [*said, TranscriptDelta(words)] if words else said

    def _take(self, said: Sequence[Event]) -> list[Event]:
        kept: list[Event] = [event for event in said if isinstance(event, Unrecognised)]
        if len(kept) == len(said):
            return kept
        if not self._invited:
            return kept + self._uninvited()
        self._heard = True
        return list(said)

    def _interrupted(self) -> list[Event]:
        if self._heard:
            self._cut = True
            return [Interrupted()]
        self._cut_before = True
        return [Warned("early_interruption", "the server interrupted an answer before this turn had one")]

    def _ends(self, part: JsonObject) -> list[Event]:
        complete, status = part.get("turnComplete") is True, text_of(part, "interactionStatus")
        if complete and not self._heard and (self._cut_before or not self._invited):
            self._cut_before = False
            return [Warned("early_end", "an end of the turn before came in this one; it ended nothing")]
        idle = status in ("IDLE", "REQUIRES_ACTION") and (self._in_progress or self._heard)
        if complete and status == "IN_PROGRESS":
            self._in_progress = True
            return []
        if not (complete or idle) or self.finished:
            return []
        self._in_progress, self.finished = False, True
        return [self._end(text_of(part, "turnCompleteReason"))]

    def _end(self, reason: str | None) -> AnswerEnded:
        if self._cut:
            return AnswerEnded(AnswerEnd.CANCELLED, "interrupted")
        detail = brief(reason or "", 100)
        if reason is None or reason in _NORMAL_ENDS:
            return AnswerEnded(AnswerEnd.COMPLETED, detail if reason == "NEED_MORE_INPUT" else "")
        if reason in _CUT_ENDS:
            return AnswerEnded(AnswerEnd.INCOMPLETE, detail)
        return AnswerEnded(AnswerEnd.CONTENT_FILTER, detail)

    def _uninvited(self) -> list[Event]:
        return self._warn("uninvited_answer", "the model went on with an earlier turn while the caller spoke")

    def _warn(self, code: str, message: str) -> list[Event]:
        """A warning, once (`uninvited_answer`: once a turn)."""
        if code in self._warned:
            return []
        self._warned.add(code)
        return [Warned(code, message)]


def _piece(piece: JsonObject) -> list[Event]:
    """Events of one part of the model's content; its thoughts are no answer."""
    text = text_of(piece, "text")
    if text is not None:
        return [TextDelta(text)] if text and piece.get("thought") is not True else []
    blob: Any = object_of(piece, "inlineData")
    data = text_of(blob, "data")
    rate_hz = wire.rate_of(text_of(blob, "mimeType") or "", wire.OUTPUT_RATE_HZ)
    if data is None or not rate_hz:
        return [Unrecognised(brief(f"part with {', '.join(piece) or 'nothing'}", 200))]
    pcm = wire.decode_audio(data)
    if pcm is None:
        return [Unrecognised("audio that is not base64")]
    return [AudioDelta(pcm, rate_hz)] if pcm else []
