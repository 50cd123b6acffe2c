"""Notes about one turn for its record, in plain words; bounded, and each only once."""

from __future__ import annotations

_SHOWN_CHARS = 500


class Notes:
    """The warnings of one turn."""

    def __init__(self, limit: int) -> None:
        """At most `limit` notes are kept."""
        self._limit = limit
        self._kept: list[str] = []

    def add(self, message: str) -> None:
        """Keep `message`, cut at 500 characters, unless it is there already."""
        shown = message[:_SHOWN_CHARS]
        if shown not in self._kept and len(self._kept) < self._limit:
            self._kept.append(shown)

    def kept(self) -> tuple[str, ...]:
        """All notes in order."""
        return tuple(self._kept)
