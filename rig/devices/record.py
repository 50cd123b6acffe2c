"""Measured latencies of device pairs, kept in this user's state folder: one file for each machine."""

from __future__ import annotations

import platform
from pathlib import Path

import platformdirs
from pydantic import BaseModel, ConfigDict, ValidationError

from adapters.dialect import DeviceLatency
from captures.durable import write_file

_MAX_BYTES = 1_000_000


class MeasuredPair(BaseModel):
    """One loop: played on `output`, heard on `input`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    output: str
    input: str
    rate_hz: int
    median_s: float
    uncertainty_s: float
    found: int
    played: int
    made: str
    """UTC, ISO 8601."""
    drift_ppm: float | None = None
    """How much faster the input's clock runs than ours, parts per million; None where it was not measured."""


class MeasuredPairs(BaseModel):
    """All that were measured, the newest of each pair."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pairs: tuple[MeasuredPair, ...] = ()


def default_path() -> Path:
    """Where they are kept."""
    return platformdirs.user_state_path("voice-agent-rig", appauthor=False) / f"devices-{platform.node()}.json"


def load(path: Path | None = None) -> MeasuredPairs:
    """What is kept; empty where there is nothing, or nothing that can be read."""
    try:
        with (path or default_path()).open("rb") as file:
            return MeasuredPairs.model_validate_json(file.read(_MAX_BYTES))
    except (OSError, ValidationError):
        return MeasuredPairs()


def save(found: MeasuredPair, path: Path | None = None) -> Path:
    """Keep it in place of the pair's last one. Raises OSError."""
    path = path or default_path()
    key = (found.output, found.input, found.rate_hz)
    others = tuple(one for one in load(path).pairs if (one.output, one.input, one.rate_hz) != key)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, MeasuredPairs(pairs=(*others, found)).model_dump_json(indent=1).encode() + b"\n")
    return path


def latency_of(output: str, loop_input: str, rate_hz: int, path: Path | None = None) -> DeviceLatency | None:
    """What was last measured of a pair; None where nothing was."""
    for one in load(path).pairs:
        if (one.output, one.input, one.rate_hz) == (output, loop_input, rate_hz):
            return DeviceLatency(one.median_s, one.uncertainty_s, one.made)
    return None
