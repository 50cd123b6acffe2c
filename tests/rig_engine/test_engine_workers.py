"""Runs whose attempts are made in worker processes: the same cells, one writer, and a worker that is killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import anyio
import psutil
import pytest

from captures.capture import Capture, Condition, Ending
from captures.frames import Direction, LoggedFrame
from captures.writer import AttemptRecord
from rig.agents.children import ChildError
from rig.engine.crew import Crew, WorkerLostError, processes
from rig.engine.work import Job, Work, WorkError, pack, unpack

CONFIG = """
version: 1
bank: demo
items: [demo-emergency-01]
conditions: [audio, text_twin]
targets:
  - {name: live, adapter: openai_realtime, model: m, embedded_agent: local-acoustic}
  - {name: whole, adapter: chat_audio, model: m, embedded_agent: local-acoustic}
"""


def _start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    (folder / "config.yaml").write_text(CONFIG)
    command = [sys.executable, "-P", "-m", "rig", "run", "config.yaml", "--out", "run", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _workers(run: subprocess.Popen[str]) -> list[psutil.Process]:
    return [
        process
        for process in psutil.Process(run.pid).children(recursive=True)
        if "rig.engine.worker_process" in process.cmdline()
    ]


def _finished(folder: Path) -> list[str]:
    lines = (folder / "run" / "captures.jsonl").read_text().splitlines()
    return sorted(row["identity"] for row in map(json.loads, lines) if row["finished"])


def test_a_killed_workers_cells_are_made_by_the_others(tmp_path: Path) -> None:
    with _start(tmp_path, "--workers", "2") as run:
        deadline_s = time.monotonic() + 60
        while not (tmp_path / "run" / "captures.jsonl").exists() or len(_workers(run)) < 2:
            assert time.monotonic() < deadline_s
            assert run.poll() is None, run.communicate()
            time.sleep(0.05)
        # Twins are written within a moment, audio takes seconds: the kill comes in the middle of calls.
        while not (tmp_path / "run" / "captures.jsonl").read_bytes():
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        _workers(run)[0].kill()
        _, told = run.communicate(timeout=120)
    assert run.returncode == 0, told
    assert "1 of 2 workers were lost; others made their attempts" in " ".join(told.split())
    done = _finished(tmp_path)
    planned = json.loads((tmp_path / "run" / "run.json").read_text())["planned"]
    assert len(done) == len(set(done)) == sum(sum(cells.values()) for cells in planned.values())


class _Lost:
    """A worker that is gone."""

    async def do(self, job: Job) -> AttemptRecord | None:
        raise WorkerLostError


class _Refuses:
    async def do(self, job: Job) -> AttemptRecord | None:
        raise WorkError("environment variable KEY is not set where the attempt is made")


JOB = Job("id", 1, None, preflight=False)


def test_when_all_are_lost_the_run_ends() -> None:
    with pytest.raises(ChildError, match="all 2 workers are gone; run again to go on"):
        anyio.run(Crew.of([_Lost(), _Lost()]).do, JOB)


def test_a_worker_that_refuses_ends_the_run_with_its_reason() -> None:
    with pytest.raises(ChildError, match="environment variable KEY is not set"):
        anyio.run(Crew.of([_Refuses()]).do, JOB)


def test_a_worker_without_the_configs_names_says_which(tmp_path: Path) -> None:
    config = {
        "version": 1,
        "bank": "demo",
        "targets": [{"name": "a", "adapter": "openai_realtime", "model": "m", "api_key_env": "RIG_TEST_UNSET_KEY"}],
    }

    async def main() -> None:
        async with processes(1, Work(config, {}, {}), tmp_path):
            pass

    with pytest.RaisesGroup(pytest.RaisesExc(ChildError, match="RIG_TEST_UNSET_KEY is not set")):
        anyio.run(main)


def test_records_come_back_as_they_were() -> None:
    capture = Capture(
        identity="id",
        target="t",
        item_id="i",
        variant_id=None,
        condition=Condition.TEXT_TWIN,
        finished=True,
        started_ns=5,
        adapter="rig_socket",
        wire_version=1,
        parser_version=1,
        ending=Ending.DECLINED,
    )
    frames = (
        LoggedFrame(1, Direction.SENT, b"a", False),
        LoggedFrame(2, Direction.RECEIVED, b"\x00\xff", True),
        LoggedFrame(3, Direction.SENT, b"b", True),
        LoggedFrame(4, Direction.RECEIVED, b"{}", False),
    )
    record = AttemptRecord(capture, frames, b"\x01\x02")
    assert unpack(pack(record)) == record
    assert unpack(pack(None)) is None
