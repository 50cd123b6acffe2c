"""Workers side by side, seen from the run: each attempt goes to the one with the least to do.

Limits, retries, keys and the one writer stay with the run; so cells are shared out one by one, and a worker that is
quick takes more of them. A worker that is lost gives its unfinished attempts back, and others make them.
"""

from __future__ import annotations

import pickle
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from captures.writer import AttemptRecord
from rig.agents.children import ChildError, child
from rig.engine.attempt import Attempts
from rig.engine.keys import Key
from rig.engine.plan import Cell
from rig.engine.work import Job, Work, WorkError, unpack
from rig.engine.worker_process import TOKEN_ENV, framed, receive


class WorkerLostError(Exception):
    """A worker ended, or cannot be reached, before its attempt was over."""


class Worker(Protocol):
    """Another process that makes attempts."""

    async def do(self, job: Job) -> AttemptRecord | None:
        """One attempt. Raises WorkerLostError, and WorkError when the worker refuses."""
        ...


@dataclass(slots=True)
class _Member:
    worker: Worker
    busy: int = 0
    lost: bool = False


@dataclass(slots=True)
class Crew:
    """All workers of a run."""

    members: list[_Member] = field(default_factory=list)
    lost: int = 0
    """Workers that were lost."""

    @classmethod
    def of(cls, workers: Iterable[Worker]) -> Crew:
        """A crew of these."""
        return cls([_Member(worker) for worker in workers])

    async def do(self, job: Job) -> AttemptRecord | None:
        """One attempt, made by whoever has the least to do; again by another when that one is lost.

        Raises ChildError once no worker is left.
        """
        while True:
            able = [member for member in self.members if not member.lost]
            if not able:
                raise ChildError(f"all {len(self.members)} workers are gone; run again to go on")
            chosen = min(able, key=lambda member: member.busy)
            chosen.busy += 1
            try:
                return await chosen.worker.do(job)
            except WorkerLostError:
                self.lost += not chosen.lost
                chosen.lost = True
            except WorkError as error:
                raise ChildError(f"a worker cannot go on: {error}") from None
            finally:
                chosen.busy -= 1


class CrewAttempts:
    """Attempts on one target, made by a crew. Meets what `rig.engine.runner` asks of `Attempts`."""

    def __init__(self, crew: Crew, local: Attempts) -> None:
        """`local` knows the target's dialect; nothing is attempted with it."""
        self._crew = crew
        self._local = local

    async def make(self, cell: Cell, number: int, key: Key) -> AttemptRecord:
        """See `Attempts.make`. Raises ChildError when no worker is left."""
        record = await self._crew.do(Job(cell.identity, number, key.env, preflight=False))
        assert record is not None, "an attempt always leaves a record"
        return record

    async def preflight(self, cell: Cell, number: int, key: Key) -> AttemptRecord | None:
        """See `Attempts.preflight`."""
        return await self._crew.do(Job(cell.identity, number, key.env, preflight=True))

    def unfit(self, cells: Iterable[Cell]) -> Cell | None:
        """See `Attempts.unfit`."""
        return self._local.unfit(cells)


class _Process:
    """A worker process, over its connection."""

    def __init__(self, stream: ByteStream, incoming: BufferedByteReceiveStream) -> None:
        self._stream = stream
        self._incoming = incoming
        self._sending = anyio.Lock()
        self._count = 0
        self._waiting: dict[int, anyio.Event] = {}
        self._answers: dict[int, bytes | str] = {}
        self._gone = False

    async def do(self, job: Job) -> AttemptRecord | None:
        """See `Worker.do`."""
        self._count += 1
        number, answered = self._count, anyio.Event()
        self._waiting[number] = answered
        try:
            if self._gone:
                raise WorkerLostError
            async with self._sending:
                await self._stream.send(framed(pickle.dumps((number, job))))
            await answered.wait()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise WorkerLostError from None
        finally:
            self._waiting.pop(number, None)
        answer = self._answers.pop(number, None)
        if answer is None:
            raise WorkerLostError
        if isinstance(answer, str):
            raise WorkError(answer)
        return await anyio.to_thread.run_sync(unpack, answer)

    async def listen(self) -> None:
        """Take answers until the connection ends."""
        try:
            while True:
                number, answer = pickle.loads(await receive(self._incoming))
                if number in self._waiting:
                    self._answers[number] = answer
                    self._waiting[number].set()
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._gone = True
            for waiting in tuple(self._waiting.values()):
                waiting.set()


@asynccontextmanager
async def processes(count: int, work: Work, logs: Path | None = None) -> AsyncIterator[Crew]:
    """A crew of `count` processes on this machine while the context lasts. Raises ChildError."""
    packed = await anyio.to_thread.run_sync(pickle.dumps, work)
    members: list[Worker] = []
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        started = await _started(stack, count, logs)
        for port, token in started:
            stream = await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
            incoming = BufferedByteReceiveStream(stream)
            await stream.send(framed(token.encode()) + framed(packed))
            _, refused = pickle.loads(await receive(incoming))
            if refused is not None:
                raise ChildError(f"a worker cannot start: {refused}")
            member = _Process(stream, incoming)
            tasks.start_soon(member.listen)
            members.append(member)
        yield Crew.of(members)


async def _started(stack: AsyncExitStack, count: int, logs: Path | None) -> Sequence[tuple[int, str]]:
    found = []
    for number in range(1, count + 1):
        token = secrets.token_urlsafe(32)
        log = None if logs is None else logs / f"worker-{number}.log"
        ready: Mapping[str, object] = await stack.enter_async_context(
            child("rig.engine.worker_process", [], {TOKEN_ENV: token}, log)
        )
        found.append((int(str(ready["port"])), token))
    return found
