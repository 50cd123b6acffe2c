"""The tool calls of one answer, gathered by call id from their fragments. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from captures.capture import ObservedCall
from captures.events import ToolCall, ToolCallArguments, ToolCallStarted
from turn_control.limits import Limits
from turn_control.notes import Notes


class _Draft:
    def __init__(self, call_id: str, output_index: int) -> None:
        self.call_id = call_id
        self.output_index = output_index
        self.name: str | None = None
        self.named_ns: int | None = None
        self.fragments: list[str] = []
        self.chars = 0
        self.arguments: Mapping[str, Any] | None = None
        self.complete_ns: int | None = None

    def rename(self, name: str | None, t_ns: int) -> None:
        if name is not None and self.name is None:
            self.name, self.named_ns = name, t_ns

    def observed(self) -> ObservedCall:
        return ObservedCall(
            call_id=self.call_id,
            name=self.name,
            arguments_json="".join(self.fragments),
            arguments=None if self.arguments is None else dict(self.arguments),
            output_index=self.output_index,
            complete=self.complete_ns is not None,
            named_ns=self.named_ns,
            complete_ns=self.complete_ns,
        )


class CallBook:
    """Calls of one answer. What lies past a limit is dropped and noted."""

    def __init__(self, limits: Limits, notes: Notes) -> None:
        self._limits = limits
        self._notes = notes
        self._drafts: dict[str, _Draft] = {}
        self.last_complete_ns: int | None = None

    def __bool__(self) -> bool:
        return bool(self._drafts)

    def feed(self, t_ns: int, event: ToolCallStarted | ToolCallArguments | ToolCall) -> None:
        """Take one event of a call. A fragment of a call never announced is kept as a call without a name."""
        index = event.output_index if isinstance(event, ToolCallStarted | ToolCall) else len(self._drafts)
        draft = self._draft(event.call_id, index)
        if draft is None or draft.complete_ns is not None:
            return
        if isinstance(event, ToolCallArguments):
            if draft.chars <= self._limits.max_text_chars:
                draft.fragments.append(event.delta[: self._limits.max_text_chars + 1 - draft.chars])
                draft.chars += len(event.delta)
            return
        draft.output_index = event.output_index
        draft.rename(event.name, t_ns)
        if isinstance(event, ToolCall):
            draft.complete_ns = self.last_complete_ns = t_ns
            draft.fragments, draft.arguments = [event.arguments_json], event.arguments
            if len(event.arguments_json) > self._limits.max_text_chars:
                draft.fragments, draft.arguments = [event.arguments_json[: self._limits.max_text_chars]], None
                self._notes.add(f"arguments of call {event.call_id} cut at {self._limits.max_text_chars} characters")

    def calls(self) -> tuple[ObservedCall, ...]:
        """All calls, the lowest output index first; equal ones in order of arrival."""
        drafts = sorted(self._drafts.values(), key=lambda draft: draft.output_index)
        return tuple(draft.observed() for draft in drafts)

    def _draft(self, call_id: str, output_index: int) -> _Draft | None:
        draft = self._drafts.get(call_id)
        if draft is None:
            if len(self._drafts) >= self._limits.max_calls:
                self._notes.add(f"more than {self._limits.max_calls} calls: the others are not kept")
                return None
            draft = self._drafts[call_id] = _Draft(call_id, output_index)
        return draft
