"""Answers as Gemini Live has been seen to give them wrongly, made from the messages of a correct one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import orjson

from adapters.foreign_json import decode, list_of, object_of
from adapters.gemini_live import wire
from adapters.misbehaviour import AnswerFault, without_end
from captures.frames import OutFrame


def spurious_interrupted(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """`interrupted` and `turnComplete` come first, as if of the turn before (langwatch/scenario#360)."""
    yield wire.encode({"serverContent": {"interrupted": True}}, binary=True)
    yield wire.encode({"serverContent": {"turnComplete": True}}, binary=True)
    yield from frames


def cut_arguments(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """The arguments of every call are a string of JSON that stops half-way."""
    for frame in frames:
        message = decode(frame.payload) or {}
        calls = list_of(object_of(message, "toolCall"), "functionCalls")
        if not calls:
            yield frame
            continue
        cut = [call | {"args": without_end(orjson.dumps(call["args"]).decode())} for call in calls]
        yield wire.encode({"toolCall": {"functionCalls": cut}}, binary=frame.binary)


def interleaved_calls(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """Each call is a message of its own, with words of the model between them."""
    for frame in frames:
        message = decode(frame.payload) or {}
        calls = list_of(object_of(message, "toolCall"), "functionCalls")
        if not calls:
            yield frame
        for number, call in enumerate(calls):
            if number:
                yield wire.encode({"serverContent": {"outputTranscription": {"text": "And "}}}, binary=frame.binary)
            yield wire.encode({"toolCall": {"functionCalls": [call]}}, binary=frame.binary)


ANSWER_FAULTS: Final[Mapping[str, AnswerFault]] = MappingProxyType(
    {
        "spurious-interrupted": spurious_interrupted,
        "cut-arguments": cut_arguments,
        "interleaved-calls": interleaved_calls,
    }
)
