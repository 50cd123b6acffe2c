"""What the emulated agents share: turns heard by level, agents named by what they are, speech in pieces."""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from adapters.dialect import Setup, ToolSpec
from adapters.emulated_speech import at_rate
from adapters.foreign_json import JsonObject, decode, list_of, object_of, text_of
from adapters.openai_family.vad import Edge, LevelDetector
from adapters.server import AnswerWanted, AudioGiven, Intent, Reply, ReplyCall
from captures.frames import OutFrame

TURN_SILENCE_MS: Final = 700
"""Quiet of the caller after which an emulated agent answers."""
_PIECE_MS: Final = 100


class Ears:
    """The caller's audio of one connection, and where its turns end."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._detector = LevelDetector(rate_hz)

    def hear(self, pcm: bytes) -> tuple[list[Edge], list[Intent]]:
        """Edges in the next piece, and what they ask of the agent."""
        edges = list(self._detector.feed(pcm, TURN_SILENCE_MS))
        wanted: list[Intent] = [AudioGiven(pcm, self._rate_hz)]
        wanted += [AnswerWanted() for edge in edges if not edge.speaking]
        return edges, wanted


def agent_name(prompt: str, tools: Sequence[Mapping[str, Any]]) -> str:
    """A name for an emulated agent that has a prompt and tools of its own, which the name itself holds.

    Vendors keep such agents on their side; an emulator has no such side.
    """
    text = orjson.dumps({"prompt": prompt, "tools": [dict(tool) for tool in tools]})
    return binascii.b2a_hex(text).decode()


def agent_called(name: str, rate_hz: int) -> Setup:
    """The agent behind a name; one without tools when it is not of `agent_name`'s making."""
    try:
        given = decode(binascii.a2b_hex(name)) or {}
    except (ValueError, TypeError):
        given = {}
    return Setup(text_of(given, "prompt") or "", tools_in(list_of(given, "tools")), rate_hz)


def tools_in(given: Sequence[Any]) -> tuple[ToolSpec, ...]:
    """Tools as `name`, `description`, `parameters`; what is none is left out."""
    return tuple(
        ToolSpec(name, text_of(tool, "description") or "", object_of(tool, "parameters"))
        for tool in given
        if isinstance(tool, dict) and (name := text_of(tool, "name"))
    )


def speech_pieces(reply: Reply, rate_hz: int) -> Iterator[bytes]:
    """A reply's speech at `rate_hz`, 100 ms at a time."""
    pcm = at_rate(reply.pcm, reply.rate_hz, rate_hz)
    size = 2 * (rate_hz * _PIECE_MS // 1000)
    for start in range(0, len(pcm), size):
        yield pcm[start : start + size]


def message(fields: JsonObject) -> OutFrame:
    """A JSON message as text."""
    return OutFrame(orjson.dumps(fields))


class CallIds:
    """Calls that were made and have no result yet."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._made = 0
        self._open: set[str] = set()

    def numbered(self, calls: Sequence[ReplyCall]) -> Iterator[tuple[str, ReplyCall]]:
        """Each call with a new id."""
        for call in calls:
            self._made += 1
            call_id = f"{self._prefix}{self._made}"
            self._open.add(call_id)
            yield call_id, call

    def answered(self, call_id: str | None) -> bool:
        """Close a call; False when it is not open."""
        if call_id not in self._open or call_id is None:
            return False
        self._open.remove(call_id)
        return True

    @property
    def any_open(self) -> bool:
        """True while a call has no result."""
        return bool(self._open)
