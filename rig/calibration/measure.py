"""Plays turns with the stamping peer, many at once, through the same session, turn control and playback as a run."""

from __future__ import annotations

import asyncio
import os
import platform
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path

import anyio

from adapters.dialect import EncodedClip, Setup, TargetSettings, TurnControlSettings, TurnMode
from adapters.registry import dialect
from adapters.session import Session, SessionError
from captures.capture import Ending, Mark, Pacing
from captures.clock import MonotonicClock
from captures.frames import LoggedFrame
from captures.latency import VOID_LIMIT_S
from captures.playback import play
from rig.agents.children import child
from rig.calibration.errors import TurnErrors, summed_up, turn_errors
from rig.calibration.peer import RATE_HZ
from rig.calibration.record import Calibration, Level
from transports.websocket import WebSocketTransport
from turn_control.pacing import percentile_ns
from turn_control.quiet_gc import no_full_collections
from turn_control.ticker import Ticker
from turn_control.turn import SpokenTurn, TurnRecord, play_turn

CHUNK_MS = 20
_SETUP_LIMIT_S = 20.0
_FEW_SESSIONS = 10
_SHORT_S, _LONG_S = 0.4, 3.0
_FEWEST_ROUNDS = 3


@dataclass
class _Played:
    """What the turns of a level left, without their audio."""

    turns: list[TurnErrors] = field(default_factory=list)
    lateness_p99_ns: list[int] = field(default_factory=list)
    failed: int = 0


async def calibrate(
    levels: Sequence[int], turns: int, on_level: Callable[[Level], None], log_folder: Path | None = None
) -> Calibration:
    """Measure at each number of sessions in `levels`, at least `turns` turns each. Raises ChildError."""
    found = []
    for sessions in levels:
        log = None if log_folder is None else log_folder / "calibration-peer.log"
        async with child("rig.calibration.peer", [], {}, log) as ready:
            level = await _level(int(ready["port"]), sessions, turns)
        on_level(level)
        found.append(level)
    return Calibration(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        rig_version=_rig_version(),
        python=platform.python_version(),
        system=platform.system(),
        machine=platform.machine(),
        cpus=os.cpu_count(),
        event_loop=_loop_name(),
        levels=tuple(found),
    )


async def _level(port: int, sessions: int, turns: int) -> Level:
    rounds = max(-(-turns // sessions), _FEWEST_ROUNDS)
    # Few sessions make few turns: theirs are short, so that a level takes a minute or two.
    clip = _clip(_SHORT_S if sessions < _FEW_SESSIONS else _LONG_S)
    clock, rng, played = MonotonicClock(), random.Random(1), _Played()
    ticker = Ticker(clock)
    wall_s, cpu_s = time.monotonic(), time.process_time()

    async def one(start_s: float) -> None:
        await anyio.sleep(start_s)
        for _ in range(rounds):
            await _turn(port, clip, clock, ticker, played)

    spread_s = len(clip.frames) * CHUNK_MS / 1000
    with no_full_collections():
        async with anyio.create_task_group() as group:
            for _ in range(sessions):
                group.start_soon(one, rng.uniform(0, spread_s))
    share = (time.process_time() - cpu_s) / (time.monotonic() - wall_s)
    return Level(
        sessions=sessions,
        turns=sessions * rounds,
        void=sum(turn.void for turn in played.turns),
        failed=played.failed,
        lateness_p99_ms=percentile_ns(sorted(played.lateness_p99_ns), 0.99) / 1e6,
        cpu_share=share,
        marks=summed_up(played.turns),
    )


async def _turn(port: int, clip: EncodedClip, clock: MonotonicClock, ticker: Ticker, played: _Played) -> None:
    target = TargetSettings(model="calibration", base_url=f"ws://127.0.0.1:{port}/v1/realtime")
    session = Session(dialect("openai_realtime").client(target), WebSocketTransport(clock), clock)
    try:
        await session.open(Setup("", (), RATE_HZ, TurnControlSettings(TurnMode.MANUAL)), _SETUP_LIMIT_S)
        record = await play_turn(session, SpokenTurn(clip), ticker=ticker, clock=clock)
    except SessionError:
        played.failed += 1
        return
    finally:
        await session.close()
    log = tuple(session.log)
    # In a thread, as a run does it: laying a reply out in time would hold the loop.
    await anyio.to_thread.run_sync(_judge, record, log, played)


def _judge(record: TurnRecord, log: Sequence[LoggedFrame], played: _Played) -> None:
    marks = dict(record.marks)
    if record.reply_rate_hz is not None:
        heard = play(record.reply_pieces, record.reply_rate_hz)
        if heard.first_audible_ns is not None:
            marks[Mark.FIRST_AUDIBLE] = heard.first_audible_ns
    played.failed += record.ending is not Ending.CALLED
    played.lateness_p99_ns.append(record.pacing.lateness_p99_ns)
    played.turns.append(turn_errors(marks, log, void=_void(record.pacing)))


def _void(pacing: Pacing) -> bool:
    lags = chain(
        (pacing.lateness_p99_ns, pacing.last_chunk_ns, pacing.commit_ns or 0), (lag.lag_ns for lag in pacing.loop_lags)
    )
    return max(lags) > VOID_LIMIT_S * 1e9


def _clip(seconds: float) -> EncodedClip:
    client = dialect("openai_realtime").client(TargetSettings(model="calibration"))
    return client.encode_clip(bytes(2 * round(RATE_HZ * seconds)), RATE_HZ, CHUNK_MS)


def _loop_name() -> str:
    return type(asyncio.get_running_loop()).__module__.split(".")[0]


def _rig_version() -> str | None:
    try:
        return version("voice-agent-rig")
    except PackageNotFoundError:
        return None
