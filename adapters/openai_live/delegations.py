"""Work that the speech model handed to its Responses backend: the calls in it, and whether it is still open.

Its events are ordinary Responses streaming events, one level down in `response.event`
(`openai.types.live.response_event`). Their text is the backend's and is not spoken, so it is no part of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from adapters.foreign_json import JsonObject, bounded, brief, int_of, object_of, text_of
from adapters.openai_family.calls import MAX_CALLS, Calls
from adapters.openai_family.faults import FaultCodes, fault_of_code
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    Delegated,
    Event,
    Failed,
    FailureKind,
    ToolCall,
    ToolCallStarted,
    Unrecognised,
    Usage,
    Warned,
)

FAULTS: Final = FaultCodes(
    quota=FaultCodes().quota | {"credit_balance_exhausted"}, quota_words=("quota", "billing", "credit_balance")
)
_MAX_DELEGATIONS: Final = 64
_ENDS: Final = frozenset({"response.completed", "response.failed", "response.incomplete"})
_INCOMPLETE: Final[Mapping[str | None, AnswerEnd]] = {
    "max_output_tokens": AnswerEnd.LENGTH,
    "content_filter": AnswerEnd.CONTENT_FILTER,
}


class Delegations:
    """State of a session's delegated work."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[int, Calls]] = {}
        """Delegation id → its number in order of appearance, and its calls."""
        self._open: set[str] = set()
        self._unanswered: set[str] = set()
        """Calls without a result of ours."""
        self._owes_request = False
        self._usage: list[object] = []

    def created(self, delegation: JsonObject) -> list[Event]:
        """`session.delegation.created`."""
        work_id = text_of(delegation, "id")
        if work_id is None:
            return [Unrecognised("delegation without an id")]
        if text_of(delegation, "target") == "client":
            return [Warned("client_delegation", "work was handed to the application, which does none here")]
        return self._opened(work_id)

    def event(self, message: JsonObject) -> list[Event]:
        """`response.event`; without a delegation's id it belongs to the only one there can be."""
        work_id = text_of(message, "delegation_id") or ""
        event = object_of(message, "event")
        kind = text_of(event, "type")
        if kind is None:
            return [Unrecognised("response.event without an event")]
        events = self._opened(work_id) if kind == "response.created" else []
        calls = self._calls_of(work_id)
        if calls is None:
            return [*events, Unrecognised(f"more than {_MAX_DELEGATIONS} delegations")]
        events += self._called(calls, kind, event)
        if kind in _ENDS:
            events += self._ended(work_id, calls, kind, object_of(event, "response"))
        elif kind == "error":
            events.append(_fault(event, event))
        return events

    def result_given(self, call_id: str) -> bool:
        """A call was answered. True when the request to go on is due now."""
        self._unanswered.discard(call_id)
        self._owes_request = True
        return self.take_request()

    def take_request(self) -> bool:
        """True once, when all calls are answered and the backend is at rest."""
        if not self._owes_request or self._unanswered or self._open:
            return False
        self._owes_request = False
        return True

    def _opened(self, work_id: str) -> list[Event]:
        if work_id in self._open or self._calls_of(work_id) is None:
            return []
        self._open.add(work_id)
        return [Delegated(work_id, True)]

    def _calls_of(self, work_id: str) -> tuple[int, Calls] | None:
        if work_id not in self._calls:
            if len(self._calls) >= _MAX_DELEGATIONS:
                return None
            self._calls[work_id] = (len(self._calls), Calls())
        return self._calls[work_id]

    def _called(self, numbered: tuple[int, Calls], kind: str, event: JsonObject) -> list[Event]:
        number, calls = numbered
        item, index = object_of(event, "item"), int_of(event, "output_index")
        found: list[Event] = []
        if kind == "response.output_item.added" and text_of(item, "type") == "function_call":
            found = calls.announced(item, index)
        elif kind == "response.output_item.done" and text_of(item, "type") == "function_call":
            found = calls.item_done(item, index)
        elif kind == "response.function_call_arguments.delta":
            delta = text_of(event, "delta")
            found = [Unrecognised("arguments without a delta")] if delta is None else calls.fragment(event, delta)
        elif kind == "response.function_call_arguments.done":
            found = calls.arguments_done(event)
        elif kind == "response.completed":
            found = calls.answer_done(True)
        self._unanswered.update(one.call_id for one in found if isinstance(one, ToolCall))
        # Calls of an earlier delegation come before those of a later one.
        return [
            replace(one, output_index=one.output_index + number * MAX_CALLS)
            if isinstance(one, ToolCallStarted | ToolCall)
            else one
            for one in found
        ]

    def _ended(self, work_id: str, numbered: tuple[int, Calls], kind: str, response: JsonObject) -> list[Event]:
        numbered[1].new_answer()
        self._open.discard(work_id)
        events: list[Event] = [Delegated(work_id, False)]
        if usage := object_of(response, "usage"):
            self._usage = [*self._usage, bounded(usage)][-_MAX_DELEGATIONS:]
            events.append(Usage({"delegated": list(self._usage)}))
        if kind == "response.failed":
            events.append(_fault(object_of(response, "error"), response))
        elif kind == "response.incomplete":
            reason = text_of(object_of(response, "incomplete_details"), "reason")
            events.append(AnswerEnded(_INCOMPLETE.get(reason, AnswerEnd.INCOMPLETE), brief(reason or "", 200)))
        return events


def _fault(error: JsonObject, source: JsonObject) -> Event:
    """A backend that failed decided nothing: that is a failure, whatever the speech model says about it."""
    code = brief(text_of(error, "code") or text_of(source, "status") or "failed", 100)
    message = brief(text_of(error, "message") or "the delegated response failed")
    return fault_of_code(FAULTS, code, message) or Failed(FailureKind.TRANSIENT, code, message)
