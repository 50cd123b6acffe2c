"""What every child process of ours does: say that it is ready, and end when its parent does or a signal asks for it."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal


def announce(ready: Mapping[str, Any]) -> None:
    """One JSON line on standard output, `{"ready": true, …}`."""
    print(json.dumps({"ready": True, **ready}), flush=True)


def be_nice() -> None:
    """Leave the cores to whoever paces audio, where the system lets us."""
    if hasattr(os, "nice"):
        os.nice(5)


async def until_stopped() -> None:
    """Returns when standard input closes (the parent is gone), or on SIGTERM or SIGINT."""
    stopped = anyio.Event()
    async with BlockingPortal() as portal, anyio.create_task_group() as tasks:
        # A daemon thread: a read of standard input cannot be cancelled and must not hold up the end of the process.
        threading.Thread(target=_wait_for_parent, args=(portal, stopped), daemon=True).start()
        tasks.start_soon(_wait_for_signal, stopped)
        await stopped.wait()
        tasks.cancel_scope.cancel()


def _wait_for_parent(portal: BlockingPortal, stopped: anyio.Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    try:
        portal.call(stopped.set)
    except RuntimeError:
        return  # stopped by a signal in the meantime: the loop is closed


async def _wait_for_signal(stopped: anyio.Event) -> None:
    if sys.platform == "win32":
        return
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            stopped.set()
            return
