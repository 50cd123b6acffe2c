"""Many sessions, each against one fault known beforehand; what is left behind is counted when all are over."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import socket
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
from hostile import hostile

from adapters.session import Session
from captures.clock import MonotonicClock
from captures.run_folder import RunFolder
from captures.scrub import Scrubber
from captures.writer import CaptureWriter
from rig.config import parse_config
from rig.engine.attempt import Attempts
from rig.engine.keys import Key
from rig.engine.prepare import prepare
from transports.websocket import WebSocketTransport
from turn_control.ticker import Ticker

DIALECTS = ("openai_realtime", "rig_socket", "gemini_live", "xai_realtime", "qwen_omni_realtime", "openai_live")
SETUP_S, TURN_S, HEAVY_TURN_S = 6.0, 6.0, 60.0
LONGEST_S = 120.0
"""Of one attempt: far beyond set-up, turn and close together, also on a busy machine. Past it, it counts as hung."""
INFRA = "infrastructure_error"
EXPECTED: dict[str, tuple[str, frozenset[str]]] = {
    "none": ("called", frozenset()),
    "dns": (INFRA, frozenset({"dns"})),
    "refused": (INFRA, frozenset({"refused"})),
    "tls": (INFRA, frozenset({"tls"})),
    "http-503": (INFRA, frozenset({"http_503"})),
    "not-websocket": (INFRA, frozenset({"not_websocket"})),
    "cut-handshake": (INFRA, frozenset({"network"})),
    "half-open-handshake": (INFRA, frozenset({"not_ready"})),
    "slow-loris": (INFRA, frozenset({"not_ready"})),
    "no-ack": (INFRA, frozenset({"not_ready"})),
    "cut": (INFRA, frozenset({"closed"})),
    "cut-mid-frame": (INFRA, frozenset({"closed"})),
    "close-1011": (INFRA, frozenset({"close_1011"})),
    "silent": ("no_answer", frozenset()),
    "drip": ("no_answer", frozenset()),
    "bad-frame": (INFRA, frozenset({"protocol_error"})),
    "bad-json": (INFRA, frozenset({"unreadable"})),
    "bad-utf8": (INFRA, frozenset({"unreadable", "not_utf8"})),
    "bad-json-and-answer": ("called", frozenset()),
    "unknown-and-answer": ("called", frozenset()),
}
"""Fault → the ending it must have, and the codes its error may have."""
HEAVY: dict[str, tuple[str, frozenset[str]]] = {
    "flood": (INFRA, frozenset({"flood"})),
    "frame-60-mib": ("called", frozenset()),
    "frame-70-mib": (INFRA, frozenset({"message_too_big"})),
}
"""They fill the machine, so one runs at a time: a neighbour's deadline must not depend on them."""


@dataclass
class Figures:
    """What a campaign came to."""

    sessions: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    as_expected: int = 0
    surprises: list[str] = field(default_factory=list)
    hangs: int = 0
    lines: int = 0
    """Captures on disk."""
    slowest_s: float = 0.0
    wall_s: float = 0.0
    tasks_left: int = 0
    descriptors_left: int = 0
    sessions_left: int = 0
    """Session and transport objects that something still holds."""
    rss_mib: list[float] = field(default_factory=list)
    """Resident memory after each batch."""


def campaign(folder: Path, bank: Path, *, sessions: int, heavy: int, seed: int, at_once: int, batch: int) -> Figures:
    """Run it; `heavy` sessions come on top of `sessions`, one after another."""
    return asyncio.run(_campaign(folder, bank, sessions, heavy, seed, at_once, batch))


async def _campaign(folder: Path, bank: Path, sessions: int, heavy: int, seed: int, at_once: int, batch: int) -> Any:
    rng, figures, started = random.Random(seed), Figures(), time.monotonic()
    light = [(rng.choice(DIALECTS), rng.choice(list(EXPECTED))) for _ in range(sessions)]
    large = [(rng.choice(DIALECTS), list(HEAVY)[n % len(HEAVY)]) for n in range(heavy)]
    run = RunFolder.create(folder, {"format": 1})
    tasks_before, descriptors_before = len(asyncio.all_tasks()), None
    async with hostile() as port, CaptureWriter(run, Scrubber([]), queue_limit=at_once) as writer:
        calls = _Calls(bank, port, writer, figures)
        await calls.one("rig_socket", "none", 0)  # what is made once, on first use, is no leak
        gc.collect()
        descriptors_before = _descriptors()
        numbered = list(enumerate(light, start=1))
        for start in range(0, len(numbered), batch):
            places = anyio.CapacityLimiter(at_once)
            async with anyio.create_task_group() as group:
                for number, (dialect, fault) in numbered[start : start + batch]:
                    group.start_soon(calls.within, places, dialect, fault, number)
            gc.collect()
            figures.rss_mib.append(_rss_mib())
        for number, (dialect, fault) in enumerate(large, start=sessions + 1):
            await calls.one(dialect, fault, number)
        await anyio.wait_all_tasks_blocked()
    # The server's ends are closed with it: one listener fewer, and all that its clients left open.
    gc.collect()
    figures.tasks_left = len(asyncio.all_tasks()) - tasks_before
    figures.descriptors_left = max(0, _descriptors() - descriptors_before)
    figures.sessions_left = sum(isinstance(one, Session | WebSocketTransport) for one in gc.get_objects())
    figures.lines = len(run.read_captures())
    figures.wall_s = time.monotonic() - started
    return figures


class _Calls:
    """Attempts at one cell per dialect."""

    def __init__(self, bank: Path, port: int, writer: CaptureWriter, figures: Figures) -> None:
        self._port, self._writer, self._figures = port, writer, figures
        self._dead_port = _dead_port()
        clock = MonotonicClock()
        self._clock, self._ticker = clock, Ticker(clock)
        config = {
            "version": 1,
            "bank": str(bank),
            "conditions": ["audio"],
            "pace": 0,
            "limits": {"setup_s": SETUP_S, "turn_s": TURN_S},
            "targets": [
                {
                    "name": name,
                    "adapter": name,
                    "model": "m",
                    "base_url": f"ws://127.0.0.1:{port}/",
                    **({"settings": {"delegate_model": "d"}} if name == "openai_live" else {}),
                    **({"turn_control": {"mode": "server_vad"}} if name == "openai_live" else {}),
                }
                for name in DIALECTS
            ],
        }
        self._prepared = prepare(parse_config(json.dumps(config), "config.yaml", bank.parent, {}))

    async def within(self, places: anyio.CapacityLimiter, dialect: str, fault: str, number: int) -> None:
        async with places:
            await self.one(dialect, fault, number)

    async def one(self, dialect: str, fault: str, number: int) -> None:
        """One attempt, and whether it ended as its fault must."""
        figures, started = self._figures, time.monotonic()
        target = next(one for one in self._prepared.targets if one.name == dialect)
        settings = replace(self._prepared.settings(target.config, None), base_url=self._address(dialect, fault))
        config = self._prepared.resolved.config
        if fault in HEAVY:
            config = config.model_copy(update={"limits": config.limits.model_copy(update={"turn_s": HEAVY_TURN_S})})
        attempts = Attempts(config, target, settings, self._clock, self._ticker)
        cell = self._prepared.plan.of(dialect)[0]
        figures.sessions += 1
        figures.faults[fault] += 1
        with anyio.move_on_after(LONGEST_S) as scope:
            record = await attempts.make(replace(cell, identity=f"{cell.identity[:20]}{number:06}"), 1, Key(None, None))
        figures.slowest_s = max(figures.slowest_s, time.monotonic() - started)
        if scope.cancelled_caught:
            figures.hangs += 1
            return
        await self._writer.put(record)
        capture = record.capture
        code = capture.error.code if capture.error else None
        figures.endings[str(capture.ending)] += 1
        ending, codes = (EXPECTED | HEAVY)[fault]
        if capture.ending == ending and (code in codes if codes else code is None):
            figures.as_expected += 1
        else:
            told = capture.error.message if capture.error else capture.ending_detail
            figures.surprises.append(f"session {number}, {dialect}, {fault}: {capture.ending}, {code}: {told}")

    def _address(self, dialect: str, fault: str) -> str:
        path = f"{dialect}/{fault}"
        match fault:
            case "dns":
                return f"ws://no-such-host.invalid/{path}"
            case "refused":
                return f"ws://127.0.0.1:{self._dead_port}/{path}"
            case "tls":
                return f"wss://127.0.0.1:{self._port}/{path}"
            case _:
                return f"ws://127.0.0.1:{self._port}/{path}"


def _dead_port() -> int:
    """A port where nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _descriptors() -> int:
    folder = Path("/proc/self/fd" if Path("/proc/self/fd").is_dir() else "/dev/fd")
    return len(os.listdir(folder))


def _rss_mib() -> float:
    status = Path("/proc/self/status")
    if not status.is_file():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024
