"""The figures of a calibration, and where the last one is kept: this user's state folder, one file per machine user."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, ValidationError

from captures.durable import write_file
from rig.calibration.errors import MarkError

BIAS_LIMIT_MS = 1.0
P99_LIMIT_MS = 5.0
ONSET_LIMIT_MS = 10.0
"""Of the audible onset: one frame of its detector, for bias and p99 alike."""
JUDGED_SESSIONS = 100
"""Up to so many sessions in one process the limits are promised."""
_MAX_BYTES = 100_000


class Level(BaseModel):
    """One number of sessions at once."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sessions: int
    turns: int
    void: int
    failed: int
    """Turns that did not end with the call that the peer makes."""
    lateness_p99_ms: float
    """Of our chunks, all turns."""
    cpu_share: float
    """Processor time of this process over wall time; 1 is one core."""
    marks: dict[str, MarkError]

    def missed(self) -> list[str]:
        """What is worse than promised here, in words; empty where nothing is promised."""
        if self.sessions > JUDGED_SESSIONS:
            return []
        found = [f"{self.failed} of {self.turns} turns failed"] if self.failed else []
        for name, mark in self.marks.items():
            if name == "commit":
                continue
            bias_limit, p99_limit = (
                (ONSET_LIMIT_MS, ONSET_LIMIT_MS) if name == "first_audible" else (BIAS_LIMIT_MS, P99_LIMIT_MS)
            )
            if mark.bias_ms is None:
                found.append(f"{name}: no turn without void timing")
            elif abs(mark.bias_ms) > bias_limit:
                found.append(f"{name}: bias {mark.bias_ms:+.2f} ms, allowed ±{bias_limit:g}")
            if mark.p99_ms is not None and mark.p99_ms > p99_limit:
                found.append(f"{name}: p99 {mark.p99_ms:.2f} ms, allowed {p99_limit:g}")
        return [f"{self.sessions} sessions: {line}" for line in found]


class Calibration(BaseModel):
    """What `rig calibrate` found."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    made: str
    """UTC, ISO 8601."""
    rig_version: str | None
    python: str
    system: str
    machine: str
    cpus: int | None
    event_loop: str
    levels: tuple[Level, ...]

    def missed(self) -> list[str]:
        """What is worse than promised, one line each."""
        return [line for level in self.levels for line in level.missed()]


def default_path() -> Path:
    """Where the last calibration of this user on this machine is kept."""
    return platformdirs.user_state_path("voice-agent-rig", appauthor=False) / f"calibration-{platform.node()}.json"


def save(found: Calibration, path: Path) -> None:
    """Keep it as the last one. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, found.model_dump_json(indent=1).encode() + b"\n")


def last(path: Path | None = None) -> Calibration | None:
    """The last one kept; None where there is none, or none that can be read."""
    try:
        with (path or default_path()).open("rb") as file:
            return Calibration.model_validate_json(file.read(_MAX_BYTES))
    except (OSError, ValidationError):
        return None
