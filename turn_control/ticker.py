"""One ticker for all turns of a process: a heap of due times behind a single timer, and the event loop's lag.

Callbacks are synchronous and are never called early. There is no task and no timer per chunk. While anything is
scheduled the ticker wakes at least every 5 ms, and what it wakes late by is kept as the loop's lag: a reply stamped
meanwhile is stamped that late.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable

from captures.capture import LoopLag
from captures.clock import Clock

_HEARTBEAT_NS = 5_000_000
_LAG_FLOOR_NS = 2_000_000
"""Lags below are the timers' own granularity (1 ms on uvloop and epoll)."""
_LAGS_KEPT = 8192
_LAGS_GIVEN = 32
_BATCH = 64
"""Callbacks in one wake before sockets get their turn: catching up must not delay the stamps of replies."""

Tick = Callable[[], int | None]
"""Called once its time has come; returns the next due time (monotonic ns), or None when done."""


class Scheduled:
    """One stream of due times in the ticker."""

    __slots__ = ("_ticker", "active", "failed", "tick")

    def __init__(self, ticker: Ticker, tick: Tick, failed: Callable[[Exception], None]) -> None:
        self._ticker = ticker
        self.tick = tick
        self.failed = failed
        self.active = True

    def cancel(self) -> None:
        """Never call it again; safe at any time, more than once, and from inside the callback."""
        if self.active:
            self.active = False
            self.tick, self.failed = _nothing, _nothing_failed  # a heap entry must not keep a finished turn alive
            self._ticker.forget_one()


def _nothing() -> None:
    return None


def _nothing_failed(error: Exception) -> None:
    """Stands in for the callback of a cancelled stream, which is never called."""


class Ticker:
    """Runs scheduled callbacks on the running event loop."""

    def __init__(self, clock: Clock, rng: random.Random | None = None, *, shortest_wait_s: float = 0.001) -> None:
        """`rng` draws the phases. `shortest_wait_s` groups wakes that lie closer together than loops can time."""
        self._clock = clock
        self._rng = rng or random.Random()
        self._shortest_wait_ns = round(shortest_wait_s * 1e9)
        self._heap: list[tuple[int, int, Scheduled]] = []
        self._order = itertools.count()
        self._live = 0
        self._timer: asyncio.TimerHandle | None = None
        self._expected_ns = 0
        self._running = False
        self._lags: deque[tuple[int, int]] = deque(maxlen=_LAGS_KEPT)

    def phase_ns(self, step_ns: int) -> int:
        """A random start within one step: streams that start together must not tick together."""
        return self._rng.randrange(step_ns) if step_ns > 0 else 0

    def add(self, due_ns: int, tick: Tick, failed: Callable[[Exception], None]) -> Scheduled:
        """Call `tick` at `due_ns` (clock's nanoseconds) or soon after, and again at each time it returns.

        A `tick` that raises is not called again; `failed` is given the exception.
        """
        scheduled = Scheduled(self, tick, failed)
        self._live += 1
        heapq.heappush(self._heap, (due_ns, next(self._order), scheduled))
        if not self._running and (self._timer is None or due_ns < self._expected_ns):
            now_ns = self._clock.now_ns()
            latest_ns = now_ns + _HEARTBEAT_NS if self._timer is None else self._expected_ns
            self._arm(min(max(due_ns, now_ns), latest_ns), now_ns)
        return scheduled

    def forget_one(self) -> None:
        """One scheduled stream has ended (called by `Scheduled.cancel`)."""
        self._live -= 1
        if self._live == 0:
            self._heap.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def lags_between(self, start_ns: int, end_ns: int) -> tuple[LoopLag, ...]:
        """The largest lags (at most 32, in order of time) whose blocked interval touches `start_ns`…`end_ns`."""
        touching = [(lag, t) for t, lag in self._lags if t >= start_ns and t - lag <= end_ns]
        largest = heapq.nlargest(_LAGS_GIVEN, touching)
        return tuple(LoopLag(t_ns=t, lag_ns=lag) for lag, t in sorted(largest, key=lambda one: one[1]))

    def _arm(self, expected_ns: int, now_ns: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._expected_ns = expected_ns
        wait_ns = max(expected_ns - now_ns, self._shortest_wait_ns) if expected_ns > now_ns else 0
        # Whole microseconds, rounded up: a coarser clock would spin on the rest.
        self._timer = asyncio.get_running_loop().call_later(-(-wait_ns // 1000) / 1e6, self._wake)

    def _wake(self) -> None:
        self._timer = None
        started_ns = self._clock.now_ns()
        lag_ns = started_ns - self._expected_ns
        if lag_ns > _LAG_FLOOR_NS:
            self._lags.append((started_ns, lag_ns))
        self._running = True
        try:
            self._run_due()
        finally:
            self._running = False
        if self._live:
            now_ns = self._clock.now_ns()
            # Counted from the start of this wake, so that our own work shows as lag too.
            due_ns = max(self._heap[0][0], now_ns)
            self._arm(min(due_ns, started_ns + _HEARTBEAT_NS), now_ns)

    def _run_due(self) -> None:
        heap, now_ns = self._heap, self._clock.now_ns
        for _ in range(_BATCH):
            while heap and not heap[0][2].active:
                heapq.heappop(heap)
            if not heap or heap[0][0] > now_ns():
                return
            scheduled = heapq.heappop(heap)[2]
            try:
                due_ns = scheduled.tick()
            except Exception as error:  # noqa: BLE001 - one turn's fault must not stop the others; it is handed on
                failed = scheduled.failed
                scheduled.cancel()
                failed(error)
                continue
            if due_ns is None:
                scheduled.cancel()
            elif scheduled.active:
                heapq.heappush(heap, (due_ns, next(self._order), scheduled))
