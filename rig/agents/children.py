"""Our own child processes: started without the working directory on their path, ended with certainty.

A child says `{"ready": true, …}` on its standard output, ends when its standard input closes, and writes to a log.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from rig.agents import brain_wire
from rig.agents.brain_client import BrainClient

_READY_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 5.0
_MAX_READY_BYTES = 4096
_LOG_TAIL_CHARS = 400
_LEXICONS = (("rig.bank", "demo/lexicon.txt"), ("rig.agents", "lexicon.txt"))


class ChildError(RuntimeError):
    """A child process did not start; one line that says which and why."""


@asynccontextmanager
async def child(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path | None = None
) -> AsyncIterator[dict[str, Any]]:
    """Run `python -P -m module` while the context lasts; gives what it announced.

    `environment` is added to ours. Standard error goes to the end of `log`, or to ours. Raises ChildError.
    """
    # One thread is all that such a child may take from the cores that pace audio.
    own = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **environment}
    command = [sys.executable, "-P", "-m", module, *arguments]
    async with process(command, own, log, name=module) as ready:
        yield ready


@asynccontextmanager
async def process(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path | None = None,
    *,
    name: str,
    folder: Path | None = None,
) -> AsyncIterator[dict[str, Any]]:
    """Run any `command` that keeps our manners while the context lasts; see `child`. `name` is for messages."""
    with _opened(log) as stderr:
        started = await anyio.open_process(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, **environment},
            cwd=folder,
            # Ctrl-C in a terminal is ours to handle; the child ends when we close its standard input.
            start_new_session=True,
        )
        try:
            yield await _ready(started, name, log)
        finally:
            with anyio.CancelScope(shield=True):
                await _end(started)


@asynccontextmanager
async def brain(log: Path | None = None, lexicon: Path | None = None) -> AsyncIterator[BrainClient]:
    """The brain process while the context lasts. Raises ChildError."""
    token = secrets.token_urlsafe(32)
    found = lexicon or _shipped_lexicon()
    arguments = ["--lexicon", str(found)] if found is not None else []
    async with child("rig.agents.brain", arguments, {brain_wire.TOKEN_ENV: token}, log) as ready:
        yield BrainClient(int(ready["port"]), token)


def _shipped_lexicon() -> Path | None:
    for package, name in _LEXICONS:
        path = Path(str(files(package).joinpath(name)))
        if path.is_file():
            return path
    return None


def _opened(log: Path | None) -> IO[bytes]:
    if log is None:
        return os.fdopen(os.dup(2), "wb")
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("ab")


async def _ready(process: Process, module: str, log: Path | None) -> dict[str, Any]:
    """The announcement. Raises ChildError when it does not come, with the last line of the log."""
    assert process.stdout is not None
    line = b""
    with anyio.move_on_after(_READY_TIMEOUT_S) as limit:
        try:
            line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", _MAX_READY_BYTES)
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound):
            await process.wait()
    try:
        announced = json.loads(line)
        if announced["ready"] is True:
            return dict(announced)
    except (ValueError, KeyError, TypeError):
        pass  # said below, with what the child wrote
    why = f"not ready within {_READY_TIMEOUT_S:g} s" if limit.cancelled_caught else f"ended with {process.returncode}"
    raise ChildError(f"{module} did not start: {why}{_last_line(log)}")


def _last_line(log: Path | None) -> str:
    if log is None:
        return ""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f": {lines[-1][:_LOG_TAIL_CHARS]} (log: {log})" if lines else f" (log: {log})"


async def _end(process: Process) -> None:
    """Ask by closing standard input and by signal, then kill; returns when the process is gone."""
    if process.stdin is not None:
        await process.stdin.aclose()
    if process.returncode is None:
        with anyio.move_on_after(_END_TIMEOUT_S):
            await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
    if process.stdout is not None:
        await process.stdout.aclose()
