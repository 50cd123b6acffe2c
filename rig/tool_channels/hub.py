"""Hands requests on to the sessions whose calls they belong to, and counts those that belong to none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, Literal

from adapters.foreign_json import brief
from adapters.tool_requests import ToolRequests, frame_of
from captures.frames import InFrame

MAX_REQUESTS: Final = 1_000
"""Of one call."""


class Delivery(Enum):
    """What became of a request."""

    TAKEN = "taken"
    UNKNOWN = "no open call"
    UNNAMED = "no call named"
    FLOOD = "too many"


class Hub:
    """`ToolChannel` of all targets that share a webhook or a log. Used on the event loop only."""

    def __init__(self, requests: ToolRequests, where: str) -> None:
        """`where`: the webhook's address or the log's path, for people."""
        self.requests = requests
        self.where = where
        self._open: dict[str, Callable[[InFrame], None]] = {}
        self._counts: dict[str, int] = {}
        self._refused: dict[Delivery, int] = {}
        self._first_refused = ""

    def attach(self, call_id: str, on_frame: Callable[[InFrame], None]) -> None:
        """See `ToolChannel.attach`."""
        if call_id in self._open:
            raise ValueError(f"call {call_id} is attached already")
        self._open[call_id] = on_frame
        self._counts[call_id] = 0

    def detach(self, call_id: str) -> None:
        """See `ToolChannel.detach`."""
        self._open.pop(call_id, None)
        self._counts.pop(call_id, None)

    def deliver(
        self, source: Literal["webhook", "log"], request: Mapping[str, Any], answer: Any, t_ns: int
    ) -> Delivery:
        """Hand on a request that had come whole at `t_ns` (monotonic).

        One that names no call goes to the only open one, if there is just one.
        """
        named = self.requests.call_id_of(request)
        call_id = named if named is not None else next(iter(self._open)) if len(self._open) == 1 else None
        if call_id is None:
            return self._refuse(Delivery.UNNAMED if self._open else Delivery.UNKNOWN, request, named)
        on_frame = self._open.get(call_id)
        if on_frame is None:
            return self._refuse(Delivery.UNKNOWN, request, named)
        self._counts[call_id] += 1
        if self._counts[call_id] > MAX_REQUESTS:
            return self._refuse(Delivery.FLOOD, request, named)
        on_frame(frame_of(source, request, answer, t_ns))
        return Delivery.TAKEN

    def _refuse(self, why: Delivery, request: Mapping[str, Any], named: str | None) -> Delivery:
        if not self._first_refused:
            tool = self.requests.name_of(request) or "no tool"
            call = "no call" if named is None else f"call {named}"
            self._first_refused = brief(f"{tool} for {call}: {why.value}", 200)
        self._refused[why] = self._refused.get(why, 0) + 1
        return why

    def notes(self) -> list[str]:
        """What a run should say: requests that belonged to no session."""
        total = sum(self._refused.values())
        if not total:
            return []
        counted = "1 tool request" if total == 1 else f"{total} tool requests"
        return [f"{self.where}: {counted} belonged to no open call; the first: {self._first_refused}"]
