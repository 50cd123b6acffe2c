"""One timer on the running event loop: it rings at or after its time, never before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from captures.clock import Clock


class Alarm:
    """Rings once for each time that it is set to."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._handle: asyncio.TimerHandle | None = None
        self._due_ns: int | None = None

    def set(self, due_ns: int | None) -> None:
        """Ring at `due_ns` (monotonic) instead of whatever was set before; None: not at all."""
        if due_ns == self._due_ns:
            return
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._due_ns = due_ns
        if due_ns is not None:
            self._arm(due_ns)

    def _arm(self, due_ns: int) -> None:
        wait_s = max(due_ns - self._clock.now_ns(), 0) / 1e9
        self._handle = asyncio.get_running_loop().call_later(wait_s, self._wake)

    def _wake(self) -> None:
        due_ns = self._due_ns
        if due_ns is not None and self._clock.now_ns() < due_ns:
            self._arm(due_ns)  # event loops wake up to 1 ms early
            return
        self._handle, self._due_ns = None, None
        self._ring()
