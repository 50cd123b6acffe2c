"""API keys of one target: a pool by environment name, with a limit of sessions per key and keys that run out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio


class NoKeyLeftError(Exception):
    """Every key of the pool has used up its quota."""


@dataclass(slots=True)
class Key:
    """One key; its value never appears in a text or representation."""

    env: str | None
    """The environment name that holds it; None for a target without a key."""
    value: str | None = field(repr=False)
    sessions: int = 0
    used_up: bool = False


class KeyPool:
    """Hands out the least used key that has quota and room."""

    def __init__(self, keys: Mapping[str, str], sessions_per_key: int | None = None) -> None:
        """`keys`: environment name → value, in order of preference; empty for a target without a key."""
        self._keys = [Key(env, value) for env, value in keys.items()] or [Key(None, None)]
        self._limit = sessions_per_key
        self._changed = anyio.Event()

    def others_than(self, key: Key) -> int:
        """How many keys beside `key` still have quota, whether or not it has."""
        return sum(not other.used_up for other in self._keys if other is not key)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Key]:
        """A key for one session; waits while all keys with quota are at their limit.

        Raises:
            NoKeyLeftError: none has quota any more.
        """
        while (key := self._free()) is None:
            if all(key.used_up for key in self._keys):
                raise NoKeyLeftError
            await self._changed.wait()
        key.sessions += 1
        try:
            yield key
        finally:
            key.sessions -= 1
            self._wake()

    def mark_used_up(self, key: Key) -> None:
        """No more sessions with this key in this run."""
        key.used_up = True
        self._wake()

    def _free(self) -> Key | None:
        open_keys = [key for key in self._keys if not key.used_up and (not self._limit or key.sessions < self._limit)]
        return min(open_keys, key=lambda key: key.sessions, default=None)

    def _wake(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


class RequestRate:
    """Spaces sessions of one target evenly, so that no minute holds more than it may."""

    def __init__(self, per_minute: float | None) -> None:
        self._gap_s = 60.0 / per_minute if per_minute else 0.0
        self._next_s = 0.0

    async def wait_turn(self) -> None:
        """Wait until the next session may be opened."""
        if self._gap_s:
            now_s = anyio.current_time()
            start_s = max(now_s, self._next_s)
            self._next_s = start_s + self._gap_s
            await anyio.sleep_until(start_s)
