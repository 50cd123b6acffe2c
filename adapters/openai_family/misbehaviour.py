"""Calls as look-alikes of the vendor are known to send them, made from the events of a correct answer.

Facts: calls complete in the argument deltas alone, or listed by `response.done` alone (livekit/agents and pipecat
issues about Realtime look-alikes); events of several calls mixed; arguments cut by the token limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Final

import orjson

from adapters.foreign_json import JsonObject, decode, list_of, object_of, text_of
from adapters.misbehaviour import AnswerFault, without_end
from captures.frames import OutFrame

_DELTA: Final = "response.function_call_arguments.delta"
_DONE: Final = "response.function_call_arguments.done"
_ADDED: Final = "response.output_item.added"


def call_in_deltas(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """Calls are announced and their arguments come in pieces; no event states them as a whole."""
    for frame in frames:
        event = decode(frame.payload) or {}
        kind = text_of(event, "type")
        if kind == "response.done":
            yield _encoded(_with_output(event, [item for item in _output(event) if not _is_call(item)]))
        elif kind in (_ADDED, _DELTA) or not _is_about_call(event):
            yield frame


def call_in_done(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """Calls are listed in the output of `response.done`, and nowhere before."""
    return (frame for frame in frames if not _is_about_call(decode(frame.payload) or {}))


def cut_arguments(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """The arguments of every call stop half-way, in all events that carry them."""
    held: list[JsonObject] = []
    for frame in frames:
        event = decode(frame.payload) or {}
        kind = text_of(event, "type")
        if kind == _DELTA:
            held.append(event)
        elif kind == _DONE:
            arguments = without_end(text_of(event, "arguments") or "")
            left = len(arguments)
            for piece in held:
                delta = (text_of(piece, "delta") or "")[:left]
                left -= len(delta)
                if delta:
                    yield _encoded({**piece, "delta": delta})
            held.clear()
            yield _encoded({**event, "arguments": arguments})
        elif kind == "response.done":
            yield _encoded(_with_output(event, [_cut(item) for item in _output(event)]))
        elif _is_about_call(event):
            yield _encoded({**event, "item": _cut(object_of(event, "item"))})
        else:
            yield frame


def interleaved_calls(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """The events of all calls of an answer take turns, each call's own in order."""
    calls: dict[str, list[OutFrame]] = {}
    for frame in frames:
        event = decode(frame.payload) or {}
        if _is_about_call(event):
            item_id = text_of(event, "item_id") or text_of(object_of(event, "item"), "id") or ""
            calls.setdefault(item_id, []).append(frame)
            continue
        for turn in zip_longest(*calls.values()):
            yield from (each for each in turn if each is not None)
        calls.clear()
        yield frame


ANSWER_FAULTS: Final[Mapping[str, AnswerFault]] = {
    "call-in-deltas": call_in_deltas,
    "call-in-done": call_in_done,
    "cut-arguments": cut_arguments,
    "interleaved-calls": interleaved_calls,
}
"""Names: see `rig.agents.faults`."""


def _is_call(item: JsonObject) -> bool:
    return text_of(item, "type") == "function_call"


def _is_about_call(event: JsonObject) -> bool:
    return text_of(event, "type") in (_DELTA, _DONE) or _is_call(object_of(event, "item"))


def _output(event: JsonObject) -> list[JsonObject]:
    return list_of(object_of(event, "response"), "output")


def _with_output(event: JsonObject, output: list[JsonObject]) -> JsonObject:
    return {**event, "response": {**object_of(event, "response"), "output": output}}


def _cut(item: JsonObject) -> JsonObject:
    arguments = text_of(item, "arguments")
    return {**item, "arguments": without_end(arguments)} if _is_call(item) and arguments else item


def _encoded(event: JsonObject) -> OutFrame:
    return OutFrame(orjson.dumps(event))
