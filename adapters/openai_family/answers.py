"""The answers of a session: which one is meant, what it said, and how it ended.

An answer that nobody asked for (a greeting, the tail of a cancelled one) is not the answer to the caller's turn: its
events are dropped, with one warning each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from adapters.foreign_json import JsonObject, bounded, brief, int_of, list_of, object_of, text_of
from adapters.openai_family.calls import Calls
from adapters.openai_family.faults import FaultCodes, fault_of_code
from adapters.openai_family.wire import decode_audio
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Event,
    Failed,
    FailureKind,
    Interrupted,
    TextDelta,
    ToolCall,
    TranscriptDelta,
    Unrecognised,
    Usage,
    Warned,
)

_REMEMBERED: Final = 64
_PARTS: Final = 4_096
"""Parts of one answer that are told apart."""
_INCOMPLETE: Final[Mapping[str | None, AnswerEnd]] = {
    "max_output_tokens": AnswerEnd.LENGTH,
    "content_filter": AnswerEnd.CONTENT_FILTER,
}
_Part = tuple[str | None, int | None]
"""Item id and content index."""


class Answers:
    """State of the answers; `handlers` maps the server's event names to what reads them."""

    def __init__(self, output_rate_hz: int, codes: FaultCodes) -> None:
        self._rate_hz = output_rate_hz
        self._codes = codes
        self.invited = False
        """True when an answer that begins now answers the caller."""
        self.speaking: tuple[str, int] | None = None
        """Item id and content index of the speech received last."""
        self.running = False
        self.running_id: str | None = None
        self.finished = False
        """An answer ended and no other has been asked for."""
        self._calls = Calls()
        self._open_calls: set[str] = set()
        self._owes_request = False
        self._over: deque[str] = deque(maxlen=_REMEMBERED)
        """Answers that ended."""
        self._uninvited: deque[str] = deque(maxlen=_REMEMBERED)
        """Answers to no turn, or to an earlier one."""
        self._warned: deque[tuple[str, str | None]] = deque(maxlen=_REMEMBERED)
        self._streamed: set[_Part] = set()
        """Parts of the running answer whose text came in pieces."""
        answer_events: Mapping[str, Callable[[JsonObject], list[Event]]] = {
            "response.created": lambda event: [],
            "response.output_item.added": self._on_item_added,
            "response.output_item.done": self._on_item_done,
            "response.content_part.added": lambda event: [],
            "response.content_part.done": lambda event: [],
            "response.output_audio.delta": self._on_audio,
            "response.output_audio.done": lambda event: [],
            "response.output_audio_transcript.delta": lambda event: self._on_words(event, TranscriptDelta),
            "response.output_audio_transcript.done": lambda event: self._on_all_words(
                event, "transcript", TranscriptDelta
            ),
            "response.output_text.delta": lambda event: self._on_words(event, TextDelta),
            "response.output_text.done": lambda event: self._on_all_words(event, "text", TextDelta),
            "response.function_call_arguments.delta": self._on_arguments,
            "response.function_call_arguments.done": self._calls.arguments_done,
        }
        self.handlers: Mapping[str, Callable[[JsonObject], list[Event]]] = {
            "response.done": self._on_done,
            "response.cancelled": self._on_cancelled,
            **{name: self._of_this_answer(name, read) for name, read in answer_events.items()},
        }

    def ask(self) -> None:
        """An answer is asked for: one still running belongs to the turn before."""
        if self.running_id is not None:
            self._uninvited.append(self.running_id)
        self._reset()
        self.invited = True
        self.finished = False
        self._owes_request = False
        self._open_calls.clear()

    @property
    def awaited(self) -> bool:
        """An answer was asked for and has not begun."""
        return self.invited and not self.running and not self.finished

    def result_given(self, call_id: str) -> bool:
        """A call was answered. True when the request to go on is due now."""
        self._open_calls.discard(call_id)
        self._owes_request = True
        return self.take_request()

    def take_request(self) -> bool:
        """True once, when all calls are answered and the answer that made them is over."""
        if not self._owes_request or self._open_calls or self.running:
            return False
        self._owes_request = False
        self.finished = False
        return True

    def _reset(self) -> None:
        self.running, self.running_id = False, None
        self._calls.new_answer()
        self._streamed.clear()

    def _of_this_answer(
        self, name: str, read: Callable[[JsonObject], list[Event]]
    ) -> Callable[[JsonObject], list[Event]]:
        def guarded(event: JsonObject) -> list[Event]:
            response_id = text_of(event, "response_id") or text_of(object_of(event, "response"), "id")
            if (refusal := self._refuse(response_id, name)) is not None:
                return refusal
            if not self.running:
                self.running, self.finished = True, False
            self.running_id = response_id or self.running_id
            events = read(event)
            self._open_calls.update(event.call_id for event in events if isinstance(event, ToolCall))
            return events

        return guarded

    def _refuse(self, response_id: str | None, name: str) -> list[Event] | None:
        """Warnings when an event is not of the answer to the caller's turn; None when it is."""
        if response_id in self._over:
            return [] if name == "response.done" else self._warn("after_the_end", response_id)
        if response_id in self._uninvited:
            return self._warn("uninvited_answer", response_id)
        if self.invited or (self.running and response_id == self.running_id):
            return None
        if response_id is not None:
            self._uninvited.append(response_id)
        return self._warn("uninvited_answer", response_id)

    def _warn(self, code: str, response_id: str | None) -> list[Event]:
        """A warning, once for each answer."""
        if (code, response_id) in self._warned:
            return []
        self._warned.append((code, response_id))
        what = "more of an answer that was over" if code == "after_the_end" else "an answer to no turn of the caller"
        return [Warned(code, f"{what}: {brief(response_id or 'no id', 80)}")]

    def _on_item_added(self, event: JsonObject) -> list[Event]:
        item = object_of(event, "item")
        if text_of(item, "type") != "function_call":
            return []
        return self._calls.announced(item, int_of(event, "output_index"))

    def _on_item_done(self, event: JsonObject) -> list[Event]:
        item = object_of(event, "item")
        if text_of(item, "type") != "function_call":
            return []
        return self._calls.item_done(item, int_of(event, "output_index"))

    def _on_arguments(self, event: JsonObject) -> list[Event]:
        delta = text_of(event, "delta")
        if delta is None:
            return [Unrecognised("tool call arguments without a delta")]
        return self._calls.fragment(event, delta)

    def _on_audio(self, event: JsonObject) -> list[Event]:
        delta = text_of(event, "delta")
        pcm = None if delta is None else decode_audio(delta)
        if pcm is None:
            return [Unrecognised("audio that is not base64")]
        item_id = text_of(event, "item_id")
        if item_id is not None:
            self.speaking = (item_id, int_of(event, "content_index") or 0)
        return [AudioDelta(pcm, self._rate_hz, item_id)] if pcm else []

    def _on_words(self, event: JsonObject, piece: type[TextDelta] | type[TranscriptDelta]) -> list[Event]:
        delta = text_of(event, "delta")
        if delta is None:
            return [Unrecognised("text without a delta")]
        if len(self._streamed) < _PARTS:
            self._streamed.add((text_of(event, "item_id"), int_of(event, "content_index")))
        return [piece(delta)] if delta else []

    def _on_all_words(self, event: JsonObject, key: str, piece: type[TextDelta] | type[TranscriptDelta]) -> list[Event]:
        """The whole text, which counts only when no piece of it came before."""
        part = (text_of(event, "item_id"), int_of(event, "content_index"))
        text = text_of(event, key)
        if not text or part in self._streamed or len(self._streamed) >= _PARTS:
            return []
        self._streamed.add(part)
        return [piece(text)]

    def _on_done(self, event: JsonObject) -> list[Event]:
        response = object_of(event, "response")
        response_id = text_of(response, "id") or text_of(event, "response_id")
        if (refusal := self._refuse(response_id, "response.done")) is not None:
            return refusal
        status = text_of(response, "status")
        events = self._listed_output(response, status == "completed")
        events += self._calls.answer_done(status == "completed")
        self._open_calls.update(event.call_id for event in events if isinstance(event, ToolCall))
        usage = object_of(response, "usage") or object_of(event, "usage")
        if usage:
            counts = bounded(usage)
            events.append(Usage(counts if isinstance(counts, dict) else {"unread": counts}))
        events += _endings(self._codes, status, object_of(response, "status_details"))
        if response_id is not None:
            self._over.append(response_id)
        self._reset()
        self.finished = isinstance(events[-1], AnswerEnded)
        return events

    def _on_cancelled(self, event: JsonObject) -> list[Event]:
        """`response.cancelled`, by which some servers end a cancelled answer instead of `response.done`."""
        given = object_of(event, "response")
        response_id = text_of(given, "id") or text_of(event, "response_id") or self.running_id
        response = {"status_details": {}, **given, "id": response_id, "status": "cancelled"}
        return self._on_done({"type": "response.done", "response": response})

    def _listed_output(self, response: JsonObject, completed: bool) -> list[Event]:
        """Calls that the closing event lists, and its words when none came before."""
        events: list[Event] = []
        silent = not self._streamed
        for place, item in enumerate(list_of(response, "output")):
            if not isinstance(item, dict):
                continue
            if text_of(item, "type") == "function_call":
                events += self._calls.item_done(item, place, answer_completed=completed)
            elif silent and text_of(item, "type") == "message":
                for index, part in enumerate(list_of(item, "content")):
                    events += self._listed_part(text_of(item, "id"), index, part)
        return events

    def _listed_part(self, item_id: str | None, index: int, part: object) -> list[Event]:
        if not isinstance(part, dict):
            return []
        event = {"item_id": item_id, "content_index": index, **part}
        return self._on_all_words(event, "transcript", TranscriptDelta) or self._on_all_words(event, "text", TextDelta)


def _endings(codes: FaultCodes, status: str | None, details: JsonObject) -> list[Event]:
    reason = text_of(details, "reason")
    if status == "completed":
        return [AnswerEnded(AnswerEnd.COMPLETED)]
    if status == "cancelled":
        ended = AnswerEnded(AnswerEnd.CANCELLED, brief(reason or "", 200))
        return [Interrupted(), ended] if reason == "turn_detected" else [ended]
    if status == "incomplete":
        return [AnswerEnded(_INCOMPLETE.get(reason, AnswerEnd.INCOMPLETE), brief(reason or "", 200))]
    if status == "failed":
        error = object_of(details, "error")
        code = brief(text_of(error, "code") or text_of(error, "type") or reason or "failed", 100)
        message = brief(text_of(error, "message") or f"the answer failed ({code})")
        return [fault_of_code(codes, code, message) or Failed(FailureKind.TRANSIENT, code, message)]
    return [Failed(FailureKind.PROTOCOL, "response_status", brief(f"response.done with status {status!r}", 200))]
