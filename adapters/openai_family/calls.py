"""Puts an answer's tool calls together from fragments, whichever of the vendor's events carry them.

A call is given once, at the first event after which its arguments are whole and its name is known. Argument events
count as much as the closing ones: either kind may be missing. Fragments belong to their item id, not to the call seen
last. The vendor ends the argument events of a cut answer as well, so unreadable arguments wait for the item's own end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import orjson

from adapters.foreign_json import JsonObject, int_of, read_arguments, text_of, too_deep
from captures.events import Event, ToolCall, ToolCallArguments, ToolCallStarted, Warned

MAX_CALLS: Final = 128
"""Calls of one session that are followed; more are reported once and left out."""
MAX_ARGUMENTS: Final = 1 << 20
"""Characters of one call's arguments that are kept; what is cut there is unreadable."""


@dataclass(slots=True)
class _Draft:
    output_index: int
    shown_id: str
    item_id: str | None
    call_id: str | None
    name: str | None = None
    fragments: list[str] = field(default_factory=list)
    length: int = 0
    whole: str | None = None
    ended: bool = False
    """The item itself was said to be complete."""
    given: bool = False

    @property
    def arguments_json(self) -> str:
        return self.whole or "".join(self.fragments)


class Calls:
    """The calls of a session, one answer after the other."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []
        self._given: set[str] = set()
        self._count = 0

    def new_answer(self) -> None:
        """Calls of the answer before are over."""
        self._drafts.clear()

    def announced(self, item: JsonObject, output_index: int | None) -> list[Event]:
        """`response.output_item.added` with a call."""
        _, events = self._draft(item, text_of(item, "id"), output_index)
        return events

    def fragment(self, event: JsonObject, delta: str) -> list[Event]:
        """`response.function_call_arguments.delta`."""
        draft, events = self._draft(event, text_of(event, "item_id"), int_of(event, "output_index"))
        if draft is None or draft.given:
            return events
        room = MAX_ARGUMENTS - draft.length
        draft.fragments.append(delta[:room])
        draft.length += min(len(delta), room)
        return [*events, ToolCallArguments(draft.shown_id, delta)]

    def arguments_done(self, event: JsonObject) -> list[Event]:
        """`response.function_call_arguments.done`; also sent when the answer was cut."""
        draft, events = self._draft(event, text_of(event, "item_id"), int_of(event, "output_index"))
        if draft is None:
            return events
        draft.whole = _arguments_text(event, draft.whole)
        if draft.name is not None and read_arguments(draft.arguments_json) is not None:
            events += self._give(draft)
        return events

    def item_done(self, item: JsonObject, output_index: int | None, answer_completed: bool = False) -> list[Event]:
        """`response.output_item.done` with a call, or a call listed by `response.done`."""
        draft, events = self._draft(item, text_of(item, "id"), output_index)
        if draft is None:
            return events
        draft.whole = _arguments_text(item, draft.whole)
        draft.ended |= answer_completed or text_of(item, "status") in (None, "completed")
        if draft.ended and draft.name is not None:
            events += self._give(draft)
        return events

    def answer_done(self, completed: bool) -> list[Event]:
        """The answer is over: what was still open is given, unless it was cut."""
        events: list[Event] = []
        for draft in self._drafts:
            if completed or draft.ended:
                events += self._give(draft)
        return events

    def _draft(self, source: JsonObject, item_id: str | None, index: int | None) -> tuple[_Draft | None, list[Event]]:
        """The call that an event speaks of, completed by what the event knows, and its announcement if it is new."""
        call_id, name = text_of(source, "call_id") or None, text_of(source, "name") or None
        draft = self._find(item_id, call_id, index)
        events: list[Event] = []
        if draft is None:
            self._count += 1
            if self._count > MAX_CALLS:
                warning = Warned("too_many_calls", f"more than {MAX_CALLS} tool calls: the rest is left out")
                return None, [warning] if self._count == MAX_CALLS + 1 else []
            place = len(self._drafts) if index is None else index
            draft = _Draft(place, call_id or item_id or f"call_at_{place}", item_id, call_id, name)
            draft.given = draft.shown_id in self._given
            self._drafts.append(draft)
            if not draft.given:
                events.append(ToolCallStarted(draft.shown_id, name, place))
        draft.item_id = draft.item_id or item_id
        draft.call_id = draft.call_id or call_id
        draft.name = draft.name or name
        return draft, events

    def _find(self, item_id: str | None, call_id: str | None, index: int | None) -> _Draft | None:
        for draft in self._drafts:
            if item_id is not None and draft.item_id == item_id:
                return draft
        for draft in self._drafts:
            if call_id is not None and draft.call_id == call_id:
                return draft
        if item_id is None and call_id is None:
            return next((draft for draft in self._drafts if draft.output_index == index), None)
        return None

    def _give(self, draft: _Draft) -> list[Event]:
        if draft.given:
            return []
        draft.given = True
        self._given.add(draft.shown_id)
        text = draft.arguments_json
        call = ToolCall(draft.shown_id, draft.name, text, read_arguments(text), draft.output_index)
        if draft.name is None:
            return [Warned("unnamed_call", f"no event named the tool call {draft.shown_id}"), call]
        return [call]


def _arguments_text(source: JsonObject, known: str | None) -> str | None:
    """Arguments that an event states as a whole; some servers send them as an object."""
    arguments = source.get("arguments")
    if isinstance(arguments, dict) and not too_deep(arguments):
        return orjson.dumps(arguments).decode()
    if isinstance(arguments, str) and (arguments or known is None):
        return arguments[:MAX_ARGUMENTS]
    return known
