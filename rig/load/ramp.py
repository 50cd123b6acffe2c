"""Holds a number of calls at once for a while, then a larger one. Bounded in time, errors and cost.

Calls are those of a run: the same sessions, pacing and limits, without retries and without a run folder. Only against
loopback, or a host that the config says is the user's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, cycle
from pathlib import Path
from urllib.parse import urlsplit

import anyio

from adapters import registry
from captures.capture import Capture, Condition
from captures.clock import MonotonicClock
from rig.config import ConfigError
from rig.engine.attempt import Attempts
from rig.engine.costs import cost_of
from rig.engine.keys import KeyPool
from rig.engine.plan import Cell, Target
from rig.engine.prepare import Prepared
from rig.engine.run import embedded_agents, tool_calls
from rig.load.figures import LoadLevel, level_of
from rig.tool_channels.running import channels
from transports.transport import is_loopback
from turn_control.quiet_gc import no_full_collections
from turn_control.ticker import Ticker

_FEWEST_CALLS = 10
"""Before so many calls at a level the share of errors is not judged."""
_AFTER_FAILURE_S = 1.0
"""A caller that failed waits so long: a target that refuses is not hammered."""
_SPREAD = 0.25
"""Part of the hold over which a level's first calls are spread."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """When a load ends before its last level."""

    hold_s: float
    error_share: float
    cost: float | None


def check(prepared: Prepared, target: Target) -> list[Cell]:
    """The audio cells that the load calls with. Raises ConfigError where the target must not, or cannot, be loaded."""
    config = target.config
    if not config.embedded_agent and not config.i_own_this:
        client = registry.dialect(config.adapter).client(prepared.settings(config, None))
        host = urlsplit(client.endpoint().label).hostname or ""
        if not is_loopback(host):
            problem = f"targets ({target.name}): a load against {host} needs `i_own_this: true` beside it"
            raise ConfigError("config", [problem])
    cells = [
        cell
        for cell in prepared.plan.of(target.name)
        if cell.condition is Condition.AUDIO and cell.clip is not None and cell.repeat == 0
    ]
    if not cells:
        raise ConfigError("config", [f"targets ({target.name}): no audio cells to call with"])
    return cells


async def load(
    prepared: Prepared,
    target: Target,
    levels: Sequence[int],
    bounds: Bounds,
    on_level: Callable[[LoadLevel], None],
    logs: Path,
) -> list[LoadLevel]:
    """All levels, until one passes a bound.

    Raises:
        ConfigError: see `check`.
        ChildError: an embedded agent or a webhook did not start.
    """
    cells = cycle(check(prepared, target))
    clock = MonotonicClock()
    ticker = Ticker(clock)
    found: list[LoadLevel] = []
    async with (
        embedded_agents(prepared, {target.name}, logs) as addresses,
        channels(tool_calls(prepared, {target.name}), prepared.resolved.folder, clock) as seen,
    ):
        settings = prepared.settings(target.config, addresses.get(target.name))
        settings = replace(settings, tool_channel=seen.of.get(target.name))
        attempts = Attempts(prepared.resolved.config, target, settings, clock, ticker)
        keys = KeyPool(prepared.resolved.keys[target.name], target.config.sessions_per_key)
        caller = _Caller(prepared, target, attempts, keys, cells, bounds)
        for concurrency in levels:
            with no_full_collections():
                level = await caller.hold(concurrency, ticker, clock)
            on_level(level)
            found.append(level)
            if level.stopped is not None:
                break
    return found


class _Caller:
    def __init__(
        self,
        prepared: Prepared,
        target: Target,
        attempts: Attempts,
        keys: KeyPool,
        cells: Iterator[Cell],
        bounds: Bounds,
    ) -> None:
        self._void_limit_s = prepared.resolved.config.limits.void_ms / 1000
        self._price = prepared.prices.get(target.name)
        self._attempts = attempts
        self._keys = keys
        self._cells = cells
        self._bounds = bounds
        self._numbers = count(1)
        self._spent = 0.0
        self._captures: list[Capture] = []
        self._failed = 0
        self._stopped: str | None = None

    async def hold(self, concurrency: int, ticker: Ticker, clock: MonotonicClock) -> LoadLevel:
        """One level. Calls that are under way at its end are let finish; a passed bound ends them."""
        self._captures, self._failed, self._stopped = [], 0, None
        started_ns, wall_s, cpu_s = clock.now_ns(), time.monotonic(), time.process_time()
        async with anyio.create_task_group() as group:
            until = anyio.current_time() + self._bounds.hold_s
            for number in range(concurrency):
                wait_s = self._bounds.hold_s * _SPREAD * number / concurrency
                group.start_soon(self._call_on, wait_s, until, group.cancel_scope)
        seconds = time.monotonic() - wall_s
        lags = ticker.lags_between(started_ns, clock.now_ns())
        return level_of(
            concurrency,
            seconds,
            self._captures,
            void_limit_s=self._void_limit_s,
            loop_lag_ns=max((lag.lag_ns for lag in lags), default=0),
            cpu_share=(time.process_time() - cpu_s) / seconds,
            spent=self._spent if self._price is not None else None,
            stopped=self._stopped,
        )

    async def _call_on(self, wait_s: float, until: float, scope: anyio.CancelScope) -> None:
        """One call after the other."""
        await anyio.sleep(wait_s)
        while anyio.current_time() < until:
            async with self._keys.lease() as key:
                record = await self._attempts.make(next(self._cells), next(self._numbers), key)
            self._note(record.capture)
            if self._stopped is not None:
                scope.cancel()
                return
            if not record.capture.ending.scored:
                await anyio.sleep(_AFTER_FAILURE_S)

    def _note(self, capture: Capture) -> None:
        self._captures.append(capture)
        self._failed += not capture.ending.scored
        if self._price is not None:
            self._spent += cost_of(capture, self._price) or 0.0
        share = self._failed / len(self._captures)
        if len(self._captures) >= _FEWEST_CALLS and share > self._bounds.error_share:
            self._stopped = f"{100 * share:.0f} % of {len(self._captures)} calls failed"
        elif self._bounds.cost is not None and self._spent >= self._bounds.cost:
            self._stopped = f"about {self._spent:.2f} USD are spent"
