"""A whole run: from a prepared plan to a run folder. Resumes a folder that has a part of it already."""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Set
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from adapters import registry
from adapters.dialect import Hosted, UsesDevices
from adapters.tool_requests import SeesToolsElsewhere
from captures.capture import Capture
from captures.clock import MonotonicClock
from captures.run_folder import RunFolder, RunFolderError
from captures.scrub import Scrubber
from captures.writer import CaptureWriter
from rig.agents.fleet import fleet
from rig.calibration.record import last
from rig.engine.attempt import Attempts
from rig.engine.costs import Spending
from rig.engine.crew import Crew, CrewAttempts, processes
from rig.engine.identity_parts import identity_parts, stale
from rig.engine.keys import KeyPool, RequestRate
from rig.engine.plan import Cell, Target
from rig.engine.prepare import Prepared, bank_location
from rig.engine.runner import Observer, Runner, TargetAccess, TargetOutcome
from rig.engine.work import Work
from rig.python_agents.hosting import hosts, spec_of
from rig.scoring.digest import bank_digest
from rig.tool_channels.running import channels
from turn_control.quiet_gc import no_full_collections
from turn_control.ticker import Ticker

RUN_FORMAT = 1
_VERSIONS_OF = ("voice-agent-rig", "picows", "openai", "uvloop", "numpy", "pocketsphinx", "aiohttp")


@dataclass(frozen=True, slots=True)
class Places:
    """Where attempts are made."""

    workers: int = 1
    """Processes of this machine; 1: this one."""
    cluster: str | None = None
    """Address of a Dask scheduler instead."""


HERE = Places()


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to."""

    folder: Path
    outcomes: Mapping[str, TargetOutcome]
    already_finished: int
    """Cells that were on disk before."""
    foreign: int
    """Finished captures in the folder that this config no longer asks for."""
    notes: tuple[str, ...]
    """What was mended in the folder, one line each."""
    spending: Spending

    @property
    def complete(self) -> bool:
        """True when every planned cell has a finished capture."""
        return all(outcome.unfinished == 0 for outcome in self.outcomes.values())


@dataclass(frozen=True, slots=True)
class Remaining:
    """What a folder still lacks of a plan."""

    cells: tuple[Cell, ...]
    finished: int
    foreign: int
    """Finished cells that the plan does not ask for."""
    stale: tuple[Capture, ...]
    """Of cells that the plan would now make otherwise."""
    attempts: Mapping[str, int]
    """Attempts on disk by cell identity."""
    captures: tuple[Capture, ...]
    """All attempts on disk."""


def open_folder(prepared: Prepared, path: Path, scrubber: Scrubber) -> RunFolder:
    """The run folder at `path`: opened if it is one already, created if it is absent or empty.

    Raises:
        RunFolderError: the path holds something else, or cannot be written.
    """
    try:
        if (path / "run.json").is_file():
            return RunFolder.open(path)
        if path.exists() and any(path.iterdir()):
            raise RunFolderError(f"{path}: is not empty and not a run folder; choose another --out")
        return RunFolder.create(path, run_description(prepared), scrubber)
    except OSError as error:
        raise RunFolderError(
            f"{path}: cannot be used as a run folder ({error.strerror}); choose another --out"
        ) from None


def remaining(prepared: Prepared, folder: RunFolder) -> Remaining:
    """The cells without a finished capture, in the plan's order."""
    captures: list[Capture] = folder.read_captures()
    done = {capture.identity for capture in captures if capture.finished}
    planned = {cell.identity for cell in prepared.plan.cells}
    return Remaining(
        cells=tuple(cell for cell in prepared.plan.cells if cell.identity not in done),
        finished=len(planned & done),
        foreign=len(done - planned),
        stale=tuple(stale(prepared.plan.cells, captures)),
        attempts=Counter(capture.identity for capture in captures),
        captures=tuple(captures),
    )


async def run(
    prepared: Prepared, folder: RunFolder, observer: Observer, scrubber: Scrubber, places: Places = HERE
) -> RunResult:
    """Run what the folder still lacks, with attempts made in `places`.

    Raises:
        WriterError: the folder cannot be written.
        ChildError: an embedded agent or a worker did not start, or all workers are gone.
    """
    config = prepared.resolved.config
    clock = MonotonicClock()
    ticker = Ticker(clock)
    outcomes: Mapping[str, TargetOutcome] = {}
    async with CaptureWriter(folder, scrubber, queue_limit=config.max_sessions * places.workers) as writer:
        # Only now: entering the writer locked and mended the folder.
        left = remaining(prepared, folder)
        folder.rewrite(_joined(folder.run_json, run_description(prepared), resumed=bool(left.captures)), scrubber)
        names = {cell.target for cell in left.cells}
        targets = [target for target in prepared.targets if target.name in names]
        async with (
            embedded_agents(prepared, names, folder.logs_path) as addresses,
            channels(tool_calls(prepared, names), prepared.resolved.folder, clock) as seen,
            _crew(prepared, left.cells, addresses, places, folder.logs_path) as crew,
        ):
            access = {}
            for target in targets:
                settings = prepared.settings(target.config, addresses.get(target.name))
                channel = seen.of.get(target.name)
                here = Attempts(config, target, replace(settings, tool_channel=channel), clock, ticker)
                access[target.name] = TargetAccess(
                    # Its tool calls come to this process.
                    here if crew is None or channel is not None else CrewAttempts(crew, here),
                    KeyPool(prepared.resolved.keys[target.name], target.config.sessions_per_key),
                    RequestRate(target.config.requests_per_minute),
                )
            spending = Spending(prepared.prices, config.max_cost, left.captures)
            processes_used = 1 if crew is None else len(crew.members)
            runner = Runner(config, access, writer, observer, left.attempts, spending, processes=processes_used)
            with no_full_collections():
                outcomes = await runner.run(targets, left.cells)
    lost = []
    if crew is not None and crew.lost:
        lost = [f"{crew.lost} of {len(crew.members)} workers were lost; others made their attempts"]
    return RunResult(
        folder.path, outcomes, left.finished, left.foreign, (*writer.notes, *lost, *seen.notes()), spending
    )


def _joined(before: Mapping[str, Any], now: Mapping[str, Any], *, resumed: bool) -> dict[str, Any]:
    """`run.json` of a folder that is gone on with: targets and plans join, the rest is as it is now.

    The first start stays; each later one adds its own time and clock anchor.
    """
    merged = {**before, **now}
    for key in ("targets", "planned"):
        merged[key] = {**before.get(key, {}), **now[key]}
    parts = before.get("identity_parts", {})
    merged["identity_parts"] = now["identity_parts"] | {
        key: {**parts.get(key, {}), **now["identity_parts"][key]} for key in ("targets", "cells")
    }
    kept = ("created", "clock_anchor")
    merged |= {key: before[key] for key in kept if key in before}
    if resumed:
        merged["resumed"] = [*before.get("resumed", []), {key: now[key] for key in kept}]
    return merged


@asynccontextmanager
async def _crew(
    prepared: Prepared, cells: Iterable[Cell], addresses: Mapping[str, str], places: Places, logs: Path
) -> AsyncIterator[Crew | None]:
    """Workers for `cells`; None where this process makes the attempts itself."""
    if places == HERE:
        yield None
        return
    work = Work(prepared.resolved.public, {cell.identity: cell for cell in cells}, addresses)
    if places.cluster is not None:
        from rig.engine.on_dask import on_dask

        async with on_dask(places.cluster, work) as crew:
            yield crew
    else:
        async with processes(places.workers, work, logs) as crew:
            yield crew


@asynccontextmanager
async def embedded_agents(prepared: Prepared, names: Set[str], logs: Path) -> AsyncIterator[Mapping[str, str]]:
    """Target name → address of the embedded or hosted agent that serves it; starts only what is asked for."""
    wanted = {
        target.name: (target.config.adapter, target.config.embedded_agent, target.config.faults)
        for target in prepared.targets
        if target.config.embedded_agent and target.name in names
    }
    specs = {
        target.name: spec_of(target.config.settings, prepared.resolved.folder)
        for target in prepared.targets
        if isinstance(registry.dialect(target.config.adapter), Hosted) and target.name in names
    }
    async with hosts(specs, logs) as hosted:
        if not wanted:
            yield hosted
            return
        async with fleet(sorted(set(wanted.values())), log_folder=logs) as addresses:
            yield {**hosted, **{name: addresses[spec] for name, spec in wanted.items()}}


def tool_calls(prepared: Prepared, names: Set[str]) -> Mapping[str, Any]:
    """Target name → where its tool calls are seen, of the targets whose connections do not carry them."""
    return {
        target.name: target.config.settings["tool_calls"]
        for target in prepared.targets
        if isinstance(registry.dialect(target.config.adapter), SeesToolsElsewhere) and target.name in names
    }


def run_description(prepared: Prepared) -> dict[str, Any]:
    """What `run.json` says: how the run was made, without any secret value."""
    planned: dict[str, dict[str, int]] = {target.name: {} for target in prepared.targets}
    for cell in prepared.plan.cells:
        planned[cell.target][cell.condition] = planned[cell.target].get(cell.condition, 0) + 1
    config = prepared.resolved.config
    calibration = last()
    return {
        "format": RUN_FORMAT,
        "rig_version": _version("voice-agent-rig"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "clock_anchor": {"monotonic_ns": time.monotonic_ns(), "utc": datetime.now(UTC).isoformat()},
        "config": prepared.resolved.public,
        "secret_names": list(prepared.resolved.secret_names),
        "chunk_ms": config.chunk_ms,
        "pace": config.pace,
        "void_limit_s": config.limits.void_ms / 1000,
        "targets": {
            target.name: {
                "role": target.config.role,
                "adapter": target.config.adapter,
                "model": target.config.model,
                "family": target.config.family,
                "embedded_agent": target.config.embedded_agent,
                "faults": list(target.config.faults),
                "turn_control": target.turn_control.mode,
                "wire_version": target.wire_version,
                "declared": target.shown["settings"].get("declared"),
                "device": _device(prepared, target),
                "capabilities": {
                    "text_twin": target.capabilities.text_twin,
                    "probe": target.capabilities.probe,
                    "streams_audio": target.capabilities.streams_audio,
                    "sees_tools": target.capabilities.sees_tools,
                    "deterministic_turns": target.capabilities.deterministic_turns,
                    "input_rate_hz": target.input_rate_hz,
                },
            }
            for target in prepared.targets
        },
        "bank": {
            "name": prepared.bank.name,
            "version": prepared.bank.version,
            "path": str(bank_location(prepared.resolved)),
            "items": sorted({cell.item_id for cell in prepared.plan.cells}),
            "digest": bank_digest(prepared.bank),
            "clips": {
                f"{item}/{variant}": clip.sha256 for (item, variant), clip in sorted(prepared.bank.clips.items())
            },
            "reply_clips": {
                f"{item}/{variant}": clip.sha256 for (item, variant), clip in sorted(prepared.bank.reply_clips.items())
            },
        },
        "planned": planned,
        "identity_parts": identity_parts(config, prepared.targets, prepared.plan.cells),
        "not_planned": [
            {"target": left.target, "condition": left.condition, "cells": left.cells, "reason": left.reason}
            for left in prepared.plan.not_planned
        ],
        "input_errors": list(prepared.input_errors),
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in _VERSIONS_OF},
        "calibration": None if calibration is None else calibration.model_dump(mode="json"),
        "host": {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()},
    }


def _device(prepared: Prepared, target: Target) -> dict[str, Any] | None:
    """The latency of a target's sound devices; None where it has none."""
    if not isinstance(registry.dialect(target.config.adapter), UsesDevices):
        return None
    found = prepared.settings(target.config, None).device_latency
    pair = {key: target.config.settings.get(key) for key in ("output", "input", "loop_input")}
    return {**pair, "latency": None if found is None else asdict(found)}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
