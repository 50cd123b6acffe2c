"""Runs a plan: per-target workers, one limit on sessions, retries, and every attempt handed to the writer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import anyio

from captures.capture import Capture, Ending, ErrorInfo
from captures.writer import AttemptRecord, CaptureWriter
from rig.config import Config
from rig.engine.costs import Spending
from rig.engine.keys import Key, KeyPool, RequestRate
from rig.engine.plan import Cell, Target

_LONGEST_WAIT_S = 60.0
_TRIED_AGAIN = frozenset({"transient", "rate_limit", "not_ready"})
"""Kinds of infrastructure error that another try may mend."""
_STOPS_TARGET = frozenset({"quota"})


class Observer(Protocol):
    """Told how a run goes, on the event loop; must not block or raise."""

    def attempt_ended(self, cell: Cell, capture: Capture) -> None:
        """An attempt is over (and queued for writing)."""
        ...

    def waits(self, cell: Cell, error: ErrorInfo, wait_s: float) -> None:
        """The cell is tried again after `wait_s` seconds."""
        ...

    def target_stopped(self, target: str, error: ErrorInfo) -> None:
        """The rest of a target's cells are not run."""
        ...


@dataclass(slots=True)
class TargetOutcome:
    """What became of one target's cells in this run."""

    endings: Counter[Ending] = field(default_factory=Counter)
    """Last ending of each cell that was tried."""
    attempts: int = 0
    finished: int = 0
    unfinished: int = 0
    """Cells without a finished capture, tried or not."""
    stopped: ErrorInfo | None = None


class Attempt(Protocol):
    """`MakesAttempts.make` or `MakesAttempts.preflight`."""

    async def __call__(self, cell: Cell, number: int, key: Key, /) -> AttemptRecord | None:
        """One try; None only from a preflight that passed."""
        ...


class MakesAttempts(Protocol):
    """Attempts on one target: `rig.engine.attempt.Attempts` here, `rig.engine.crew.CrewAttempts` elsewhere."""

    async def make(self, cell: Cell, number: int, key: Key, /) -> AttemptRecord:
        """Attempt `cell` for the `number`-th time."""
        ...

    async def preflight(self, cell: Cell, number: int, key: Key, /) -> AttemptRecord | None:
        """Open and set up a session as for `cell`; None when it became ready."""
        ...

    def unfit(self, cells: Iterable[Cell], /) -> Cell | None:
        """The first cell whose setup cannot be put on the wire."""
        ...


@dataclass(frozen=True, slots=True)
class TargetAccess:
    """How one target is reached, and how often."""

    attempts: MakesAttempts
    keys: KeyPool
    rate: RequestRate


class Runner:
    """Runs the given cells. Create, then `run` once."""

    def __init__(
        self,
        config: Config,
        access: Mapping[str, TargetAccess],
        writer: CaptureWriter,
        observer: Observer,
        earlier_attempts: Mapping[str, int],
        spending: Spending,
        rng: random.Random | None = None,
        processes: int = 1,
    ) -> None:
        """`earlier_attempts` counts the attempts already on disk by cell identity; numbering goes on from there.

        The limit on sessions is per process: `processes` make attempts. Requests of file mode have one of their own of
        the same size, so that neither mode waits for the other.
        """
        self._config = config
        self._access = access
        self._writer = writer
        self._observer = observer
        self._attempts_so_far = Counter(earlier_attempts)
        self._spending = spending
        self._rng = rng or random.Random()
        self._sessions = {streams: anyio.CapacityLimiter(config.max_sessions * processes) for streams in (True, False)}
        """By `Capabilities.streams_audio`."""
        self._streams: dict[str, bool] = {}
        self.outcomes: dict[str, TargetOutcome] = {}

    async def run(self, targets: Sequence[Target], cells: Sequence[Cell]) -> dict[str, TargetOutcome]:
        """Run all cells; targets side by side.

        Raises:
            WriterError: the run folder cannot be written; everything stops.
        """
        async with anyio.create_task_group() as group:
            for target in targets:
                own = [cell for cell in cells if cell.target == target.name]
                self.outcomes[target.name] = TargetOutcome(unfinished=len(own))
                self._streams[target.name] = target.capabilities.streams_audio
                group.start_soon(self._run_target, target, own, name=f"target {target.name}")
        return self.outcomes

    async def _run_target(self, target: Target, cells: list[Cell]) -> None:
        if self._spending.reached:
            self._stop(target.name, _ceiling(self._spending))
            return
        attempts = self._access[target.name].attempts
        unfit = attempts.unfit(cells)
        if unfit is not None or (self._config.preflight and target.capabilities.streams_audio):
            refused = await self._until_settled(unfit or cells[0], attempts.preflight)
            if refused is not None:
                self._count(refused)
                self._stop(target.name, refused.error or ErrorInfo(kind="preflight", code="preflight", message=""))
                return
        most = 1 if target.capabilities.one_at_a_time else target.config.concurrency or self._config.concurrency
        workers = min(most, len(cells))
        todo = iter(cells)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                for number in range(workers):
                    group.start_soon(self._work, todo, scope, name=f"{target.name} worker {number}")

    async def _work(self, todo: Iterator[Cell], scope: anyio.CancelScope) -> None:
        for cell in todo:
            if self._spending.reached:
                self._stop(cell.target, _ceiling(self._spending))
                return
            capture = await self._until_settled(cell, self._access[cell.target].attempts.make)
            assert capture is not None, "an attempt always leaves a capture"
            self._count(capture)
            error = capture.error
            if error is not None and (capture.ending is Ending.CONFIGURATION_ERROR or error.kind in _STOPS_TARGET):
                self._stop(cell.target, error)
                scope.cancel()
                return

    async def _until_settled(self, cell: Cell, make: Attempt) -> Capture | None:
        """Attempt a cell until it is finished or no further try helps; the last capture (None: a preflight passed)."""
        failures = quota_waits = 0
        asked_again = False
        access = self._access[cell.target]
        while True:
            await access.rate.wait_turn()
            # The key first: a target that waits for one must hold no session that another could use.
            async with access.keys.lease() as key, self._sessions[self._streams[cell.target]]:
                number = self._attempts_so_far[cell.identity] + 1
                record = await make(cell, number, key)
            if record is None:
                return None
            self._attempts_so_far[cell.identity] = number
            capture = record.capture
            wait_s: float | None = None
            if capture.ending is Ending.NO_ANSWER and not asked_again:
                asked_again, wait_s = True, 0.0
                capture = capture.model_copy(update={"finished": False})
                record = replace(record, capture=capture)
            elif capture.error is not None and capture.error.kind in _TRIED_AGAIN:
                failures += 1
                if failures < self._config.limits.attempts:
                    wait_s = self._backoff_s(failures, capture.error)
            elif capture.error is not None and capture.error.kind == "quota":
                wait_s = self._quota_wait_s(access.keys, key, capture.error, quota_waits)
                quota_waits += 1
            await self._put(record)
            self._observer.attempt_ended(cell, capture)
            if wait_s is None or self._spending.reached:
                return capture
            if capture.error is not None:
                self._observer.waits(cell, capture.error, wait_s)
            await anyio.sleep(wait_s)

    def _quota_wait_s(self, keys: KeyPool, key: Key, error: ErrorInfo, waits: int) -> float | None:
        """0 where another key has quota; what the peer asks for, once, where that is bearable; else None."""
        if keys.others_than(key):
            keys.mark_used_up(key)
            return 0.0
        asked_s = error.retry_after_s
        if asked_s is not None and asked_s <= self._config.limits.quota_wait_s and waits == 0:
            return asked_s
        return None

    def _count(self, capture: Capture) -> None:
        outcome = self.outcomes[capture.target]
        outcome.endings[capture.ending] += 1
        outcome.finished += capture.finished
        outcome.unfinished -= capture.finished

    def _stop(self, target: str, error: ErrorInfo) -> None:
        outcome = self.outcomes[target]
        if outcome.stopped is None:
            outcome.stopped = error
            self._observer.target_stopped(target, error)

    async def _put(self, record: AttemptRecord) -> None:
        self.outcomes[record.capture.target].attempts += 1
        self._spending.add(record.capture)
        await self._writer.put(record)

    def _backoff_s(self, failures: int, error: ErrorInfo) -> float:
        """Doubling, with full jitter above half, never shorter than the peer asked for (bounded)."""
        longest: float = self._config.limits.backoff_s * 2.0 ** (failures - 1)
        wait_s = longest * self._rng.uniform(0.5, 1.0)
        return min(max(wait_s, error.retry_after_s or 0.0), _LONGEST_WAIT_S)


def _ceiling(spending: Spending) -> ErrorInfo:
    message = f"the spend ceiling is reached: about {spending.spent:.2f} USD so far; raise --max-cost to go on"
    return ErrorInfo(kind="spend_ceiling", code="max_cost", message=message)
