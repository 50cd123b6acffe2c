"""The one source of time. Every stamp in a capture is read from a `Clock`: timing cases run on a virtual one."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """A monotonic clock in nanoseconds; its origin is arbitrary but fixed for the life of the process."""

    def now_ns(self) -> int:
        """Nanoseconds since the clock's origin; never goes back."""
        ...


class MonotonicClock:
    """The machine's monotonic clock (`time.monotonic_ns`): the clock of every real run."""

    def now_ns(self) -> int:
        return time.monotonic_ns()


class LoopClock:
    """The time of the running event loop. On a loop with virtual time, stamps and timers then agree exactly.

    Real runs use `MonotonicClock`: some loops cache their time once per iteration, which would hide lag.
    """

    def now_ns(self) -> int:
        return round(asyncio.get_running_loop().time() * 1e9)
