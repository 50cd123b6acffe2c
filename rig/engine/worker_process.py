"""A worker as a process of this machine: one event loop, reached over loopback with a one-time token.

Messages are an 8-byte length and a pickle; both ends are our own processes, and nothing is unpickled before the token
was right. First comes the token, then the work, then jobs; each answer carries its job's number.
"""

from __future__ import annotations

import argparse
import hmac
import importlib.util
import os
import pickle
import struct
import sys
from typing import Any

import anyio
from anyio.abc import ByteStream, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream

from rig.agents import parent
from rig.config import ConfigError
from rig.engine.work import CellWorker, Job, WorkError, pack
from turn_control.quiet_gc import no_full_collections

TOKEN_ENV = "RIG_WORKER_TOKEN"
LENGTH = struct.Struct("!Q")
MAX_MESSAGE_BYTES = 4 << 30
_SWITCH_INTERVAL_S = 0.001


async def receive(stream: BufferedByteReceiveStream) -> bytes:
    """One message. Raises anyio.EndOfStream or anyio.IncompleteRead when the other end is gone."""
    (size,) = LENGTH.unpack(await stream.receive_exactly(LENGTH.size))
    if size > MAX_MESSAGE_BYTES:
        raise WorkError(f"a message of {size:,} bytes")
    return await stream.receive_exactly(size)


def framed(message: bytes) -> bytes:
    """One message with its length."""
    return LENGTH.pack(len(message)) + message


class _Server:
    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._sending = anyio.Lock()

    async def serve(self, stream: ByteStream) -> None:
        """One run's connection; ends when it closes."""
        incoming = BufferedByteReceiveStream(stream)
        async with stream:
            try:
                (size,) = LENGTH.unpack(await incoming.receive_exactly(LENGTH.size))
                offered = await incoming.receive_exactly(min(size, 1024))
                if not hmac.compare_digest(offered, self._token):
                    return
                try:
                    worker = CellWorker(pickle.loads(await receive(incoming)), os.environ)
                except (ConfigError, WorkError) as error:
                    await stream.send(framed(pickle.dumps((None, str(error)))))
                    return
                await stream.send(framed(pickle.dumps((None, None))))
                async with anyio.create_task_group() as tasks:
                    await self._jobs(incoming, stream, worker, tasks)
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
                return

    async def _jobs(
        self, incoming: BufferedByteReceiveStream, stream: ByteStream, worker: CellWorker, tasks: TaskGroup
    ) -> None:
        try:
            while True:
                number, job = pickle.loads(await receive(incoming))
                tasks.start_soon(self._do, worker, number, job, stream)
        except (anyio.EndOfStream, anyio.IncompleteRead):
            tasks.cancel_scope.cancel()

    async def _do(self, worker: CellWorker, number: int, job: Job, stream: ByteStream) -> None:
        answer: tuple[int, Any]
        try:
            # Packed in a thread: what takes milliseconds must not hold the loop that paces audio.
            answer = (number, await anyio.to_thread.run_sync(pack, await worker.do(job)))
        except WorkError as error:
            answer = (number, str(error))
        async with self._sending:
            await stream.send(framed(pickle.dumps(answer, protocol=5)))


async def _run(token: str) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, _Server(token).serve)
        parent.announce({"port": listener.extra(anyio.abc.SocketAttribute.local_port)})
        await parent.until_stopped()
        tasks.cancel_scope.cancel()


def main() -> None:
    """Entry of the process; the token comes in the environment."""
    argparse.ArgumentParser(prog="rig.engine.worker_process", description=__doc__).parse_args()
    token = os.environ.pop(TOKEN_ENV, "")
    if not token:
        sys.exit(f"{TOKEN_ENV} is not set")
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    uvloop = not os.environ.get("RIG_NO_UVLOOP") and importlib.util.find_spec("uvloop") is not None
    with no_full_collections():
        anyio.run(_run, token, backend_options={"use_uvloop": uvloop})


if __name__ == "__main__":
    main()
