"""Secret values that this process has read, so that whatever it prints can be scrubbed of them."""

from __future__ import annotations

from collections.abc import Iterable

_seen: set[str] = set()


def remember(secrets: Iterable[str]) -> None:
    """These values must never be printed."""
    _seen.update(secrets)


def seen() -> frozenset[str]:
    """All values so far."""
    return frozenset(_seen)
