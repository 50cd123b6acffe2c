"""Answers put on the wire wrongly, for tests of clients: what a server half may offer beside its correct ones.

A fault that needs a dialect's own messages is a function over the frames of one answer, offered under a name that is
the same for all dialects. Faults that any dialect can have need nothing from it (`rig.agents.faults`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, runtime_checkable

from captures.frames import OutFrame

AnswerFault = Callable[[Iterable[OutFrame]], Iterator[OutFrame]]
"""The frames of one answer, in order, made wrong; lazy, since a cancelled answer ends early."""


@runtime_checkable
class Misbehaves(Protocol):
    """A server half with faults of its own."""

    answer_faults: Mapping[str, AnswerFault]


def without_end(arguments_json: str) -> str:
    """The first half of a call's arguments: never a JSON object."""
    return arguments_json[: len(arguments_json) // 2]
