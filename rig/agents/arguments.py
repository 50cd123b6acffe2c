"""Fills the arguments that a tool requires from the caller's words. Optional ones are left out. Pure text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from adapters.dialect import ToolSpec
from rig.agents.lexical import SpokenNumber, spoken_numbers, stem, stems, tokens

MAX_STRING_CHARS = 200
_MAX_WORDS = 10
_HOUR = r"(?:\d{1,2}(?::\d\d)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_PART_OF_DAY = r"(?:tonight|tomorrow|this (?:morning|afternoon|evening)|in the (?:morning|afternoon|evening))"
_WHEN = {
    # An hour alone could be any number: it needs "at" before it, or a part of the day after it.
    "time": re.compile(
        rf"\b(?:noon|midnight|{_HOUR}(?: (?:fifteen|thirty|forty[ -]five))?"
        rf"(?: ?(?:[ap]\.?m\b\.?|o'?clock)(?: {_PART_OF_DAY})?| {_PART_OF_DAY})|(?<=\bat ){_HOUR})(?!\w)"
    ),
    "day": re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:today|tomorrow|tonight)\b"),
    "week": re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"),
}


def required_arguments(tool: ToolSpec, words: str) -> dict[str, Any]:
    """Name → value for every required argument, typed as its schema asks."""
    properties = tool.parameters.get("properties")
    required = tool.parameters.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, Sequence):
        return {}
    return {str(name): _value(str(name), properties.get(name, {}), words) for name in required if name in properties}


def _value(name: str, schema: Any, words: str) -> Any:
    schema = schema if isinstance(schema, Mapping) else {}
    about = f"{name} {schema.get('description', '')}"
    options = schema.get("enum")
    if isinstance(options, Sequence) and not isinstance(options, str) and options:
        return _nearest_option(options, words)
    kind = schema.get("type", "string")
    if kind in ("integer", "number"):
        number = _nearest_number(words, about)
        return int(number.value) if number.value.is_integer() else number.value
    if kind == "boolean":
        return True
    if kind == "array":
        return [_value(name, schema.get("items", {}), words)]
    if kind == "object":
        inner = schema.get("properties")
        return (
            {key: _value(str(key), value, words) for key, value in inner.items()} if isinstance(inner, Mapping) else {}
        )
    return _string(name, about, words)


def _nearest_option(options: Sequence[Any], words: str) -> Any:
    said = stems(words)
    spoken = {str(int(number.value)) for number in spoken_numbers(words)}
    return max(options, key=lambda option: len(stems(str(option)) & said) + (str(option) in spoken))


def _nearest_number(words: str, about: str) -> SpokenNumber:
    """The number that stands nearest to a word of the argument's own name or description; 0 when none was said."""
    numbers = spoken_numbers(words)
    if not numbers:
        return SpokenNumber(0.0, 0, 0)
    wanted = stems(about)
    places = [at for at, word in enumerate(tokens(words)) if stem(word) in wanted]

    def distance(number: SpokenNumber) -> tuple[int, int]:
        gaps = [number.start - at if at < number.start else at - number.stop + 1 for at in places]
        return min((gap for gap in gaps if gap > 0), default=len(words)), number.start

    return min(numbers, key=distance)


def _string(name: str, about: str, words: str) -> str:
    """A question of our own where one is asked for; a day or time where one is meant; else the words that follow the
    argument's name; else all of them."""
    wanted = set(tokens(about))
    if "question" in wanted:
        return "Could you tell me a little more?"
    for kind, pattern in _WHEN.items():
        if kind in wanted and (found := pattern.search(words.lower())):
            return found.group().strip()
    named = stems(name)
    sentence = re.split(r"[.!?](?:\s|$)", words)
    for part in sentence:
        pieces = part.split()
        for at, word in enumerate(pieces):
            rest = pieces[at + 1 :]
            while rest and rest[0].lower().strip(",") in ("is", "number", "of", "the", "to", "as"):
                rest = rest[1:]
            if rest and stems(word) & named:
                return " ".join(rest[:_MAX_WORDS]).strip(" ,;:")[:MAX_STRING_CHARS]
    return words.strip()[:MAX_STRING_CHARS]
