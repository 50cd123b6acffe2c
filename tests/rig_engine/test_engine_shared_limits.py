"""What sessions side by side share: a pool's keys, and the spend ceiling. The runner, with attempts of our making."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import anyio
import pytest
import yaml

from captures.capture import Capture, Ending, ErrorInfo, Mark
from captures.writer import AttemptRecord
from rig.config import Price, parse_config
from rig.engine.costs import Spending
from rig.engine.keys import Key, KeyPool, RequestRate
from rig.engine.plan import Cell
from rig.engine.prepare import prepare
from rig.engine.runner import Runner, TargetAccess, TargetOutcome

QUOTA = ErrorInfo(kind="quota", code="insufficient_quota", message="used up")
STALLED = ErrorInfo(kind="transient", code="server_error", message="stalled")


class Peer:
    """Makes attempts: `fails` says how one with a key ends. All sessions open before the first of them ends."""

    def __init__(self, together: int, fails: Callable[[Key], ErrorInfo | None]) -> None:
        self.keys: list[str | None] = []
        self.preflights = 0
        self._together = together
        self._fails = fails
        self._all_open = anyio.Event()

    async def make(self, cell: Cell, number: int, key: Key) -> AttemptRecord:
        self.keys.append(key.env)
        if len(self.keys) >= self._together:
            self._all_open.set()
        await self._all_open.wait()
        error = self._fails(key)
        return AttemptRecord(
            Capture(
                identity=cell.identity,
                target=cell.target,
                item_id=cell.item_id,
                variant_id=cell.variant_id,
                condition=cell.condition,
                finished=error is None,
                started_ns=0,
                adapter="a",
                wire_version=1,
                parser_version=1,
                ending=Ending.CALLED if error is None else Ending.INFRASTRUCTURE_ERROR,
                error=error,
                marks={Mark.CONNECT_END: 0, Mark.SESSION_READY: 1, Mark.ANSWER_END: 60_000_000_000},
            )
        )

    async def preflight(self, cell: Cell, number: int, key: Key) -> AttemptRecord | None:
        self.preflights += 1
        return None

    def unfit(self, cells: Iterable[Cell]) -> Cell | None:
        return None


class Kept:
    """What was handed to the writer."""

    def __init__(self) -> None:
        self.captures: list[Capture] = []

    async def put(self, record: AttemptRecord) -> None:
        self.captures.append(record.capture)


class Quiet:
    """An `Observer` that needs nothing."""

    def attempt_ended(self, cell: Cell, capture: Capture) -> None: ...

    def waits(self, cell: Cell, error: ErrorInfo, wait_s: float) -> None: ...

    def target_stopped(self, target: str, error: ErrorInfo) -> None: ...


@pytest.fixture
def play(rig: Any, banks: Any) -> Callable[..., tuple[TargetOutcome, list[Capture]]]:
    """Run six cells against a peer."""
    banks.write_bank(rig.folder / "bank")

    def run(peer: Peer, keys: KeyPool, spending: Spending, *, concurrency: int) -> tuple[TargetOutcome, list[Capture]]:
        text = yaml.safe_dump(rig.config("ws://127.0.0.1:1/", repeats=6, concurrency=concurrency, preflight=True))
        prepared = prepare(parse_config(text, "c.yaml", rig.folder, {}))
        kept = Kept()
        access = {"agent": TargetAccess(peer, keys, RequestRate(None))}
        runner = Runner(prepared.resolved.config, access, kept, Quiet(), {}, spending)  # type: ignore[arg-type]
        outcomes = anyio.run(runner.run, prepared.targets, prepared.plan.cells)
        return outcomes["agent"], kept.captures

    return run


def test_two_sessions_that_use_up_the_same_key_leave_the_other_key_to_the_target(play: Any) -> None:
    peer = Peer(4, lambda key: QUOTA if key.env == "A" else None)
    outcome, captures = play(peer, KeyPool({"A": "key-a", "B": "key-b"}), Spending({}, None), concurrency=4)
    assert sorted(peer.keys[:4]) == ["A", "A", "B", "B"]
    assert outcome.stopped is None
    assert (outcome.finished, outcome.unfinished) == (6, 0)
    assert [capture.error for capture in captures].count(QUOTA) == 2


def test_when_all_keys_are_used_up_side_by_side_the_target_stops(play: Any) -> None:
    peer = Peer(4, lambda key: QUOTA)
    outcome, _ = play(peer, KeyPool({"A": "key-a", "B": "key-b"}), Spending({}, None), concurrency=4)
    assert outcome.stopped == QUOTA
    assert outcome.finished == 0


def test_what_failed_is_not_tried_again_beyond_the_spend_ceiling(play: Any) -> None:
    peer = Peer(1, lambda key: STALLED)
    spending = Spending({"agent": Price(per_session_minute=1.0)}, ceiling=1.5)
    outcome, captures = play(peer, KeyPool({}), spending, concurrency=1)
    assert outcome.stopped is not None
    assert outcome.stopped.kind == "spend_ceiling"
    assert len(captures) == 2
    assert spending.spent == pytest.approx(2.0)


def test_a_run_resumed_at_its_ceiling_opens_no_session(play: Any) -> None:
    peer = Peer(1, lambda key: None)
    spending = Spending({"agent": Price(per_session_minute=1.0)}, ceiling=1.0)
    spending.spent = 1.0
    outcome, captures = play(peer, KeyPool({}), spending, concurrency=2)
    assert outcome.stopped is not None
    assert outcome.stopped.kind == "spend_ceiling"
    assert (peer.preflights, peer.keys, captures) == (0, [], [])
    assert outcome.unfinished == 6
