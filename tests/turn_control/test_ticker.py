"""The one ticker: order, never early, lag, and what a faulty stream does to the others."""

from __future__ import annotations

import asyncio
import random

import pytest

from captures.clock import LoopClock
from turn_control.ticker import Ticker


def unexpected(error: Exception) -> None:
    raise error


def test_streams_run_at_their_times_whatever_the_order_they_came_in(virtual):
    async def main() -> list[tuple[str, int]]:
        clock, ran = LoopClock(), []
        ticker = Ticker(clock, shortest_wait_s=1e-6)

        def at(name: str, due_ns: int) -> None:
            ticker.add(due_ns, lambda: ran.append((name, clock.now_ns())), unexpected)

        at("third", 30_000_500)
        at("first", 1_000_000)
        at("second", 1_000_700)
        await asyncio.sleep(0.05)
        return ran

    ran = virtual(main)
    assert [name for name, _ in ran] == ["first", "second", "third"]
    for (_, t_ns), due_ns in zip(ran, (1_000_000, 1_000_700, 30_000_500), strict=True):
        assert 0 <= t_ns - due_ns <= 2_000


@pytest.mark.parametrize("early_s", [0.0004, 0.001])
def test_a_loop_that_wakes_early_makes_no_callback_early(virtual, early_s):
    class RunningAhead:
        """A clock that lags behind the loop's own time, as if the loop woke early."""

        def now_ns(self) -> int:
            return LoopClock().now_ns() - (round(early_s * 1e9) if asyncio.get_running_loop().time() < 0.0101 else 0)

    async def main() -> int:
        clock, ran = RunningAhead(), []
        ticker = Ticker(clock)
        ticker.add(10_000_000, lambda: ran.append(clock.now_ns()), unexpected)
        await asyncio.sleep(0.02)
        return ran[0]

    assert virtual(main) >= 10_000_000


def test_nothing_is_armed_when_nothing_is_scheduled(virtual):
    async def main() -> None:
        ticker = Ticker(LoopClock())
        ticks = iter([20_000_000, 30_000_000, None])
        ticker.add(10_000_000, lambda: next(ticks), unexpected)
        ticker.add(50_000_000, lambda: None, unexpected).cancel()
        await asyncio.sleep(0.1)
        assert ticker._timer is None
        assert ticker._heap == []
        ticker.add(200_000_000, lambda: None, unexpected).cancel()
        assert ticker._timer is None

    virtual(main)


def test_lag_is_measured_while_waiting_and_the_largest_are_given(virtual, advance):
    async def main() -> None:
        clock = LoopClock()
        ticker = Ticker(clock)
        waiting = ticker.add(60_000_000_000, lambda: None, unexpected)
        for k in range(100):
            await asyncio.sleep(0.1)
            advance(0.010 + k * 0.001)
        found = ticker.lags_between(0, clock.now_ns())
        assert len(found) == 32
        assert [lag.t_ns for lag in found] == sorted(lag.t_ns for lag in found)
        assert all(0.060e9 <= lag.lag_ns <= 0.110e9 for lag in found)
        assert 0.103e9 <= max(lag.lag_ns for lag in found) <= 0.109e9
        assert ticker.lags_between(0, 50_000_000) == ()
        waiting.cancel()

    virtual(main)


def test_our_own_long_callback_shows_as_lag(virtual, advance):
    async def main() -> None:
        clock = LoopClock()
        ticker = Ticker(clock)
        ticker.add(10_000_000, lambda: advance(0.050), unexpected)
        waiting = ticker.add(1_000_000_000, lambda: None, unexpected)
        await asyncio.sleep(0.2)
        (lag,) = ticker.lags_between(0, clock.now_ns())
        assert 0.040e9 <= lag.lag_ns <= 0.050e9
        waiting.cancel()

    virtual(main)


def test_a_stream_that_fails_is_told_and_the_others_go_on(virtual):
    async def main() -> tuple[list[Exception], int]:
        clock, failures, ticks = LoopClock(), [], []
        ticker = Ticker(clock)

        def broken() -> int:
            raise OSError("gone")

        def steady() -> int:
            ticks.append(clock.now_ns())
            return ticks[-1] + 10_000_000

        ticker.add(5_000_000, broken, failures.append)
        running = ticker.add(5_000_000, steady, unexpected)
        await asyncio.sleep(0.1)
        running.cancel()
        return failures, len(ticks)

    failures, ticks = virtual(main)
    assert [str(error) for error in failures] == ["gone"]
    assert ticks >= 9


def test_phases_lie_within_a_step_and_follow_the_seed():
    ticker = Ticker(LoopClock(), random.Random(1))
    phases = [ticker.phase_ns(20_000_000) for _ in range(200)]
    assert min(phases) >= 0
    assert max(phases) < 20_000_000
    assert max(phases) - min(phases) > 15_000_000
    again = Ticker(LoopClock(), random.Random(1))
    assert phases == [again.phase_ns(20_000_000) for _ in range(200)]
    assert ticker.phase_ns(0) == 0
