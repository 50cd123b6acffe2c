"""Runs on a Dask cluster of two workers on loopback, and run folders kept in a store."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from captures.run_folder import RunFolderError
from rig.engine.store import Store

CONFIG = """
version: 1
bank: demo
items: [demo-emergency-01]
conditions: [audio, text_twin]
targets:
  - {name: live, adapter: openai_realtime, model: m, embedded_agent: local-acoustic}
"""


class Cluster:
    """A scheduler and its worker processes."""

    def __init__(self, address: str, workers: list[subprocess.Popen[bytes]]) -> None:
        self.address = address
        self.workers = workers


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    described = tmp_path / "scheduler.json"
    with ExitStack() as stack, (tmp_path / "dask.log").open("wb") as log:

        def start(*arguments: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
            process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(described))
        deadline_s = time.monotonic() + 60
        while not described.exists() or not described.read_bytes():
            assert time.monotonic() < deadline_s, (tmp_path / "dask.log").read_text()
            time.sleep(0.05)
        address = json.loads(described.read_bytes())["address"]
        workers = [
            start("worker", address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--name", str(number))
            for number in range(2)
        ]
        while (tmp_path / "dask.log").read_text(errors="replace").count("Registered to:") < 2:
            assert time.monotonic() < deadline_s, (tmp_path / "dask.log").read_text()
            time.sleep(0.05)
        yield Cluster(address, workers)


def _rig(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    (folder / "config.yaml").write_text(CONFIG)
    command = [sys.executable, "-P", "-m", "rig", "run", "config.yaml", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_lost_workers_cells_run_again_and_the_folder_is_merged_in_the_store(cluster: Cluster, tmp_path: Path) -> None:
    store = f"file://{tmp_path}/kept/run"
    with _rig(tmp_path, "--out", "run", "--on", cluster.address, "--store", store) as run:
        deadline_s = time.monotonic() + 90
        lines = tmp_path / "run" / "captures.jsonl"
        while not lines.exists() or not lines.read_bytes():  # the twin is there: audio is being played
            assert time.monotonic() < deadline_s
            assert run.poll() is None, run.communicate()
            time.sleep(0.02)
        psutil.Process(cluster.workers[0].pid).kill()
        _, told = run.communicate(timeout=120)
    assert run.returncode == 0, told
    assert "1 of 2 workers were lost" in " ".join(told.split())
    rows = _rows(tmp_path / "kept" / "run" / "captures.jsonl")
    done = [row["identity"] for row in rows if row["finished"]]
    planned = json.loads((tmp_path / "kept" / "run" / "run.json").read_text())["planned"]
    assert len(done) == len(set(done)) == sum(sum(cells.values()) for cells in planned.values())
    for row in rows:
        assert (tmp_path / "kept" / "run" / str(row["cassette"])).is_file()


def test_without_a_cluster_it_says_so(tmp_path: Path) -> None:
    with _rig(tmp_path, "--out", "run", "--on", "tcp://127.0.0.1:1") as run:
        _, told = run.communicate(timeout=120)
    assert run.returncode == 2
    assert "no Dask scheduler at tcp://127.0.0.1:1" in told
    assert "Traceback" not in told


def test_embedded_agents_are_not_reachable_from_elsewhere(tmp_path: Path) -> None:
    with _rig(tmp_path, "--out", "run", "--on", "tcp://cluster.example:8786") as run:
        _, told = run.communicate(timeout=60)
    assert run.returncode == 2
    assert "live): an embedded_agent listens on this machine alone" in " ".join(told.split())


def test_a_store_gives_back_what_was_pushed_and_takes_only_what_is_new(tmp_path: Path) -> None:
    folder, again = tmp_path / "run", tmp_path / "again"
    (folder / "wire").mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    (folder / "wire" / "a.jsonl.zst").write_bytes(b"a")
    (folder / "wire" / "b.jsonl.zst.tmp").write_bytes(b"half")
    (folder / ".lock").write_text("me")
    (folder / "captures.jsonl").write_text("1\n")
    store = Store("memory://bucket/run")
    assert store.push(folder) == 3
    (folder / "captures.jsonl").write_text("1\n2\n")
    assert store.push(folder) == 2  # what grew, and run.json, which is rewritten in place
    assert Store("memory://bucket/run").fetch(again) == 3
    found = {path.relative_to(again).as_posix(): path.read_bytes() for path in again.rglob("*") if path.is_file()}
    assert found == {"run.json": b"{}", "captures.jsonl": b"1\n2\n", "wire/a.jsonl.zst": b"a"}
    assert Store("memory://bucket/nothing").fetch(again) == 0


def test_a_store_that_is_none_is_named() -> None:
    with pytest.raises(RunFolderError, match="nosuchstore://x: this store cannot be used"):
        Store("nosuchstore://x")
