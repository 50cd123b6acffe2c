"""The one source of time. Every stamp in a capture is read from a `Clock`: timing cases run on a virtual one."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Protocol, runtime_checkable


class Clock(Protocol):
    """A monotonic clock in nanoseconds; its origin is arbitrary but fixed for the life of the process."""

    def now_ns(self) -> int:
        """Nanoseconds since the clock's origin; never goes back."""
        ...


@runtime_checkable
class KnowsSleep(Protocol):
    """A clock that stands still while the machine sleeps, and can tell how long it did."""

    def slept_ns(self) -> int:
        """Nanoseconds that the machine has slept since it was started."""
        ...


class MonotonicClock:
    """The machine's monotonic clock (`time.monotonic_ns`): the clock of every real run."""

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def slept_ns(self) -> int:
        """See `KnowsSleep`; 0 where the system does not tell (Linux does: CLOCK_BOOTTIME goes on in sleep)."""
        if sys.platform != "linux":
            return 0
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()


class LoopClock:
    """The time of the running event loop. On a loop with virtual time, stamps and timers then agree exactly.

    Real runs use `MonotonicClock`: some loops cache their time once per iteration, which would hide lag.
    """

    def now_ns(self) -> int:
        return round(asyncio.get_running_loop().time() * 1e9)
