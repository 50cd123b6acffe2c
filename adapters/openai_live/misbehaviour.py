"""The Realtime family's misshapen calls (`openai_family.misbehaviour`), one level down in `response.event`.

Calls listed at the end alone are not offered: the vendor says that its nested snapshots hold no output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from adapters.foreign_json import JsonObject, decode, object_of, text_of
from adapters.misbehaviour import AnswerFault
from adapters.openai_family.misbehaviour import call_in_deltas, cut_arguments, interleaved_calls
from adapters.openai_family.wire import encode
from captures.frames import OutFrame

_OUTER: Final = "rig_outer"


def _nested(fault: AnswerFault) -> AnswerFault:
    def applied(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
        return map(_wrapped, fault(map(_unwrapped, frames)))

    return applied


def _unwrapped(frame: OutFrame) -> OutFrame:
    outer = decode(frame.payload) or {}
    if text_of(outer, "type") != "response.event":
        return frame
    event = object_of(outer, "event")
    return encode({**event, _OUTER: {key: value for key, value in outer.items() if key != "event"}})


def _wrapped(frame: OutFrame) -> OutFrame:
    event: JsonObject = decode(frame.payload) or {}
    if _OUTER not in event:
        return frame
    outer = event.pop(_OUTER)
    return encode({**outer, "event": event})


ANSWER_FAULTS: Final[Mapping[str, AnswerFault]] = {
    "call-in-deltas": _nested(call_in_deltas),
    "cut-arguments": _nested(cut_arguments),
    "interleaved-calls": _nested(interleaved_calls),
}
"""Names: see `rig.agents.faults`."""
