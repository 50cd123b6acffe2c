"""Reading JSON that a peer wrote: nothing in it is trusted, nothing in it raises. Not here: what a message means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

MAX_TEXT: Final = 1_000
"""Longest foreign explanation that is passed on, characters."""
MAX_DEPTH: Final = 64
"""Deepest nesting of foreign JSON that is passed on as data."""
_LONGEST_KEPT: Final = 2_000
"""Bytes of one recorded value, as JSON."""
_DEEPEST_KEPT: Final = 8

JsonObject = dict[str, Any]


def decode(payload: bytes | str) -> JsonObject | None:
    """The JSON object in a payload; None when it holds anything else."""
    try:
        value = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def text_of(message: Mapping[str, Any], key: str) -> str | None:
    """The string under `key`, or None."""
    value = message.get(key)
    return value if isinstance(value, str) else None


def int_of(message: Mapping[str, Any], key: str) -> int | None:
    """The whole number under `key`, or None; booleans are no numbers."""
    value = message.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def object_of(message: Mapping[str, Any], key: str) -> JsonObject:
    """The object under `key`, or an empty one."""
    value = message.get(key)
    return value if isinstance(value, dict) else {}


def list_of(message: Mapping[str, Any], key: str) -> list[Any]:
    """The list under `key`, or an empty one."""
    value = message.get(key)
    return value if isinstance(value, list) else []


def objects_of(message: Mapping[str, Any], key: str) -> list[JsonObject]:
    """The objects in the list under `key`; what else stands there is left out."""
    return [one for one in list_of(message, key) if isinstance(one, dict)]


def too_deep(value: Any, limit: int = MAX_DEPTH) -> bool:
    """True when JSON data nests deeper than `limit`."""
    layer = [value]
    for _ in range(limit + 1):
        layer = [inner for outer in layer for inner in _inside(outer)]
        if not layer:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def read_arguments(arguments_json: str) -> JsonObject | None:
    """A call's arguments as an object; None when unreadable. Blank means no arguments."""
    if not arguments_json.strip():
        return {}
    value = decode(arguments_json)
    return None if value is None or too_deep(value) else value


def brief(text: str, limit: int = MAX_TEXT) -> str:
    """Foreign text on one line, cut to `limit` characters, control characters escaped."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)


def masked(text: str, secrets: Iterable[str]) -> str:
    """`text` with each of `secrets` masked, since a peer may have echoed what it was sent."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def bounded(value: Any) -> Any:
    """Foreign JSON data for the record, replaced by a short text when it is large or deep."""
    if too_deep(value, _DEEPEST_KEPT):
        return "nested too deeply"
    encoded = orjson.dumps(value)
    return value if len(encoded) <= _LONGEST_KEPT else brief(encoded.decode(), 200)
