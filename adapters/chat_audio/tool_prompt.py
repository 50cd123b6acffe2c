"""Tools for models without a tool template: the menu as text in the instructions, the answer read as JSON. Pure.

The reader is strict: an answer that is not exactly one object of the protocol is a wrong call, never "no call". A fence
around the whole answer is the only thing that is overlooked, since it changes nothing about its meaning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from adapters.dialect import ToolSpec
from adapters.foreign_json import JsonObject, decode, object_of, text_of, too_deep

_OPENING: Final = (
    "You act through tools. Answer with exactly one JSON object and nothing else.\n"
    'To use a tool: {"tool": "<name>", "arguments": {…}}\n'
    'To use none and only speak: {"tool": null, "say": "<your words>"}\n'
    "Tools, one JSON object per line:"
)
"""Version 1; another wording needs a new `wire_version`."""
_RESULT: Final = "Result of the tool "
_FENCE: Final = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Said:
    """An answer of the protocol."""

    tool: str | None
    arguments: JsonObject
    say: str


def with_tools(instructions: str, tools: Sequence[ToolSpec]) -> str:
    """Instructions that offer `tools`."""
    lines = [
        orjson.dumps({"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}).decode()
        for tool in tools
    ]
    return "\n".join([*([instructions, ""] if instructions else []), _OPENING, *lines])


def tools_in(instructions: str) -> tuple[str, tuple[ToolSpec, ...]]:
    """Instructions without their menu, and the menu; the reverse of `with_tools`."""
    before, found, menu = instructions.partition(_OPENING)
    if not found:
        return instructions, ()
    stated = [decode(line) for line in menu.removeprefix("\n").split("\n")]
    tools = tuple(
        ToolSpec(text_of(tool, "name") or "", text_of(tool, "description") or "", object_of(tool, "parameters"))
        for tool in stated
        if tool is not None
    )
    return before.removesuffix("\n\n"), tools


def read(text: str) -> Said | None:
    """The answer that a text holds; None for anything but one whole object of the protocol."""
    stripped = text.strip()
    fenced = _FENCE.fullmatch(stripped)
    try:
        # Not orjson: it keeps the last of two equal keys without a word.
        value = json.loads(fenced[1] if fenced else stripped, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or too_deep(value) or "tool" not in value:
        return None
    tool, arguments, say = value["tool"], value.get("arguments", {}), value.get("say", "")
    if not isinstance(say, str) or not value.keys() <= {"tool", "arguments", "say"}:
        return None
    if tool is None:
        return Said(None, {}, say) if not arguments else None
    if not isinstance(tool, str) or not tool or not isinstance(arguments, dict):
        return None
    return Said(tool, arguments, say)


def call_text(name: str, arguments: JsonObject, say: str = "") -> str:
    """A call as the protocol has it."""
    return orjson.dumps({"tool": name, "arguments": arguments} | ({"say": say} if say else {})).decode()


def say_text(say: str) -> str:
    """An answer without a call as the protocol has it."""
    return orjson.dumps({"tool": None, "say": say}).decode()


def result_text(tool: str, output: str) -> str:
    """The result of a call, as the caller's side tells it: there is no role for tools."""
    return f"{_RESULT}{tool}: {output}"


def result_in(text: str) -> str | None:
    """The result that such a text tells; None for any other."""
    return text.removeprefix(_RESULT).partition(": ")[2] if text.startswith(_RESULT) else None


def _unique(pairs: list[tuple[str, Any]]) -> JsonObject:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key twice")
    return made


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
