"""When two argument values count as equal. Pure.

Numbers are compared as numbers whatever their spelling, strings by their words. It knows nothing of tools or golds.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

RELATIVE_TOLERANCE = 1e-6
MAX_DEPTH = 64
"""Values nested deeper than this never match: what an agent sends must not exhaust the stack."""

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where a value first differs from the expected one, and how."""

    path: str
    """Position below the parameter, e.g. `[1]`, `[0][2]` or `.street`; empty at the top."""
    message: str


def fold(text: str) -> str:
    """`text` as its words alone: NFKD, accents and case folded; punctuation (Unicode P, so `_` too) and white space
    become single spaces. Symbols such as + stay.
    """
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    kept = (
        " " if unicodedata.category(character).startswith("P") else character
        for character in decomposed
        if not unicodedata.combining(character)
    )
    return " ".join("".join(kept).split())


def mismatch(value: object, expected: object, depth: int = 0) -> Mismatch | None:
    """The first difference between `value` and `expected`, None where they match.

    Booleans match only booleans; numbers, whole or not, within `RELATIVE_TOLERANCE`; strings folded; lists in order and
    objects by key, by the same rules.
    """
    if depth > MAX_DEPTH:
        return Mismatch("", "is nested too deeply")
    if isinstance(value, list | tuple) and isinstance(expected, list | tuple):
        if len(value) != len(expected):
            return Mismatch("", f"has {len(value)} elements, expected {len(expected)}")
        return _first(
            (f"[{index}]", mismatch(mine, theirs, depth + 1))
            for index, (mine, theirs) in enumerate(zip(value, expected, strict=True))
        )
    if isinstance(value, dict) and isinstance(expected, dict):
        for name in expected:
            if name not in value:
                return Mismatch(f".{name}", "is missing")
        for name in value:
            if name not in expected:
                return Mismatch(f".{shown(name)}", "is not expected")
        return _first((f".{name}", mismatch(value[name], expected[name], depth + 1)) for name in expected)
    if _scalars_match(value, expected):
        return None
    return Mismatch("", f"is {shown(value)}, expected {shown(expected)}")


def values_match(value: object, expected: object) -> bool:
    """True where `mismatch` finds none."""
    return mismatch(value, expected) is None


def shown(value: object) -> str:
    """`value` for a message: its Python form, cut at 60 characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits; nesting without end
        text = f"an unprintable {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _first(parts: Iterable[tuple[str, Mismatch | None]]) -> Mismatch | None:
    for place, found in parts:
        if found is not None:
            return Mismatch(place + found.path, found.message)
    return None


def _scalars_match(value: object, expected: object) -> bool:
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    if isinstance(value, int | float) and isinstance(expected, int | float):
        try:
            return math.isclose(value, expected, rel_tol=RELATIVE_TOLERANCE)
        except OverflowError:  # an integer beyond the floats
            return value == expected
    if isinstance(value, str) and isinstance(expected, str):
        return fold(value) == fold(expected)
    return value is None and expected is None
