"""Attempts made in another process than the run's own: what such a process is given, and what it gives back.

A worker has an event loop of its own and knows nothing of limits, retries or the run folder: those stay with the run.
It finds keys in its own environment, by name; none travels.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from captures.capture import Capture
from captures.clock import MonotonicClock
from captures.frames import Direction, LoggedFrame
from captures.writer import AttemptRecord
from rig.config import parse_config
from rig.engine.attempt import Attempts
from rig.engine.keys import Key
from rig.engine.plan import Cell
from rig.engine.prepare import checked_targets, target_settings
from turn_control.ticker import Ticker


@dataclass(frozen=True, slots=True)
class Work:
    """All that a worker needs to know of a run."""

    config: Mapping[str, Any]
    """As written: `${NAME}` is filled in where it is worked."""
    cells: Mapping[str, Cell]
    """By identity."""
    addresses: Mapping[str, str]
    """Target name → where its embedded agent listens."""


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt to make."""

    identity: str
    number: int
    key_env: str | None
    """Environment name of the key to use."""
    preflight: bool


class WorkError(RuntimeError):
    """A worker cannot do what it is asked to; one line."""


class CellWorker:
    """Makes attempts on the running event loop."""

    def __init__(self, work: Work, environ: Mapping[str, str]) -> None:
        """Raises ConfigError when a name of the config is not set here."""
        resolved = parse_config(json.dumps(work.config), "config", Path(), environ)
        targets, problems = checked_targets(resolved)
        if problems:
            raise WorkError(problems[0])
        self._cells = work.cells
        self._environ = environ
        clock = MonotonicClock()
        ticker = Ticker(clock)
        self._attempts = {
            target.name: Attempts(
                resolved.config,
                target,
                target_settings(resolved, target.config, work.addresses.get(target.name)),
                clock,
                ticker,
            )
            for target in targets
        }

    async def do(self, job: Job) -> AttemptRecord | None:
        """The record of one attempt; None from a preflight that passed."""
        cell = self._cells.get(job.identity)
        if cell is None:
            raise WorkError(f"no cell {job.identity} in this worker's plan")
        key = None if job.key_env is None else self._environ.get(job.key_env)
        if job.key_env is not None and key is None:
            raise WorkError(f"environment variable {job.key_env} is not set where the attempt is made")
        attempts = self._attempts[cell.target]
        make = attempts.preflight if job.preflight else attempts.make
        return await make(cell, job.number, Key(job.key_env, key))


def pack(record: AttemptRecord | None) -> bytes:
    """For another process of ours. Frames go as columns: a thousand small objects would hold the interpreter."""
    if record is None:
        return pickle.dumps(None)
    frames = record.frames
    columns = (
        [frame.t_ns for frame in frames],
        bytes((frame.direction is Direction.SENT) | frame.binary << 1 for frame in frames),
        [frame.payload for frame in frames],
    )
    return pickle.dumps((record.capture, columns, record.reply_pcm), protocol=5)


def unpack(packed: bytes) -> AttemptRecord | None:
    """What `pack` was given. Only for bytes of our own processes."""
    found = pickle.loads(packed)
    if found is None:
        return None
    capture, (times, kinds, payloads), pcm = found
    assert isinstance(capture, Capture)
    frames = tuple(
        LoggedFrame(t_ns, Direction.SENT if kind & 1 else Direction.RECEIVED, payload, bool(kind & 2))
        for t_ns, kind, payload in zip(times, kinds, payloads, strict=True)
    )
    return AttemptRecord(capture, frames, pcm)
