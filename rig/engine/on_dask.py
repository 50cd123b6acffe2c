"""Workers of a Dask cluster as a crew: one actor per worker process, with an event loop in a thread of its own.

The run itself stays here, with its limits, keys and one writer: so limits of a provider hold over the whole cluster,
and what a lost worker had begun is made by others. Workers need the same version of the rig and the keys in their own
environment; the bank's clips are sent to them.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import pickle
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import anyio

from captures.writer import AttemptRecord
from rig.agents.children import ChildError
from rig.config import ConfigError
from rig.engine.crew import Crew, Worker, WorkerLostError
from rig.engine.work import CellWorker, Job, Work, WorkError, pack, unpack
from turn_control.quiet_gc import no_full_collections

_CONNECT_LIMIT_S = 30.0
_SWITCH_INTERVAL_S = 0.001
_REFUSED = "refused"


class DaskCellWorker:
    """The actor: makes attempts on an event loop of its own, away from Dask's traffic."""

    def __init__(self, packed: bytes) -> None:
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        self._loop: asyncio.AbstractEventLoop = _new_loop()
        self._refused: str | None = None
        self._worker: CellWorker | None = None
        started = threading.Event()
        threading.Thread(target=self._run, args=(packed, started), name="rig-calls", daemon=True).start()
        started.wait()

    def _run(self, packed: bytes, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._worker = CellWorker(pickle.loads(packed), os.environ)
        except (ConfigError, WorkError) as error:
            self._refused = str(error)
        started.set()
        with no_full_collections():
            self._loop.run_forever()

    async def ready(self) -> str | None:
        """Why this worker cannot be used; None when it can."""
        return self._refused

    async def do(self, job: Job) -> tuple[str, bytes | str]:
        """One attempt, packed; or that it was refused, and why."""
        assert self._worker is not None, "a worker that is not ready is given no job"
        made = asyncio.run_coroutine_threadsafe(self._worker.do(job), self._loop)
        try:
            record = await asyncio.wrap_future(made)
        except WorkError as error:
            return _REFUSED, str(error)
        return "made", await asyncio.to_thread(pack, record)


def _new_loop() -> asyncio.AbstractEventLoop:
    if not os.environ.get("RIG_NO_UVLOOP") and importlib.util.find_spec("uvloop") is not None:
        import uvloop

        made: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        return made
    return asyncio.new_event_loop()


class _Remote:
    """One Dask worker, seen from the run."""

    def __init__(self, client: Any, address: str, actor: Any) -> None:
        self._client = client
        self._address = address
        self._actor = actor

    async def do(self, job: Job) -> AttemptRecord | None:
        """See `Worker.do`."""
        try:
            how, answer = await self._actor.do(job)
        except (OSError, ValueError, RuntimeError) as error:
            # What Dask raises for an actor whose worker is gone differs by the moment of its going.
            raise WorkerLostError(f"{self._address}: {error}") from error
        if how == _REFUSED:
            raise WorkError(f"{self._address}: {answer}")
        return await anyio.to_thread.run_sync(unpack, answer)


@asynccontextmanager
async def on_dask(address: str, work: Work) -> AsyncIterator[Crew]:
    """A crew of all workers of the cluster at `address` (tcp://host:port) while the context lasts.

    Raises ChildError: no such cluster, none of its workers fit, or the extra `cluster` is not installed.
    """
    try:
        from distributed import Client

        connect: Any = Client  # untyped
    except ImportError:
        raise ChildError("--on needs Dask: pip install 'voice-agent-rig[cluster]'") from None
    try:
        await _answers(address)
        client: Any = await connect(address, asynchronous=True, set_as_default=True, timeout=_CONNECT_LIMIT_S)
    except (OSError, ValueError) as error:
        raise ChildError(f"no Dask scheduler at {address}: {error}") from None
    try:
        yield Crew.of(await _hired(client, address, work))
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(_CONNECT_LIMIT_S):
            await client.close()


async def _answers(address: str) -> None:
    """Raises OSError or ValueError at once where nothing listens; Dask would try again for the whole limit."""
    parts = urlsplit(address)
    if not parts.hostname or parts.port is None:
        raise ValueError("give it as tcp://host:port")
    if parts.scheme == "tcp":
        with anyio.fail_after(_CONNECT_LIMIT_S):
            await (await anyio.connect_tcp(parts.hostname, parts.port)).aclose()


async def _hired(client: Any, address: str, work: Work) -> list[Worker]:
    addresses = list((await client.scheduler.identity())["workers"])
    if not addresses:
        raise ChildError(f"the Dask cluster at {address} has no workers; start some: dask worker {address}")
    own = version("voice-agent-rig")
    versions = await client.run(_version, workers=addresses, on_error="return")
    other = {where: found for where, found in versions.items() if found != own}
    if other:
        where, found = next(iter(other.items()))
        raise ChildError(f"worker {where} has voice-agent-rig {found}, this is {own}: install the same everywhere")
    packed = await anyio.to_thread.run_sync(pickle.dumps, work)
    sent = await client.scatter(packed, broadcast=True)
    hired: list[Worker] = []
    for worker in addresses:
        actor = await client.submit(DaskCellWorker, sent, actor=True, workers=[worker], pure=False)
        refused = await actor.ready()
        if refused is not None:
            raise ChildError(f"worker {worker} cannot work: {refused}")
        hired.append(_Remote(client, worker, actor))
    return hired


def _version() -> str:
    return version("voice-agent-rig")
