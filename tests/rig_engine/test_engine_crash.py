"""kill -9 at any moment, cuts inside a write, a machine that stops or sleeps: nothing measured is lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from anyio.from_thread import start_blocking_portal

from adapters.server import Reply, ReplyCall
from captures.capture import Ending
from captures.clock import MonotonicClock
from captures.run_folder import RunFolder
from rig.agents.emulator import base_url, serve

KILLS = 14
SEED = 20261201


class Talker:
    """Calls a tool after a moment, and counts whom it was asked by."""

    def __init__(self, wait_s: float = 0.05) -> None:
        self.asked: Counter[str] = Counter()
        self._wait_s = wait_s

    async def reply(self, setup: Any, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        self.asked[f"{setup.instructions}|{text}|{hash(pcm)}"] += 1
        await anyio.sleep(self._wait_s)
        return Reply(calls=(ReplyCall(setup.tools[0].name, {}),)) if setup.tools else Reply(text="Yes.")

    def after_result(self, call: ReplyCall | None) -> Reply:
        return Reply(text="Done.")


def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """A run of its own process group, so that nothing of it outlives a kill."""
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "rig", "run", "config.yaml", "--out", "run", *words],
            cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip


def write(folder: Path, address: str, **more: Any) -> None:
    config = {
        "version": 1, "bank": "demo", "conditions": ["text_twin", "audio"], "pace": 0, "second_turn": False,
        "concurrency": 4, "preflight": False,
        "targets": [{"name": "one", "adapter": "rig_socket", "base_url": address}],
    }  # fmt: skip
    (folder / "config.yaml").write_text(yaml.safe_dump(config | more))


def whole_lines(folder: Path) -> list[bytes]:
    path = folder / "run" / "captures.jsonl"
    content = path.read_bytes() if path.exists() else b""
    return content[: content.rfind(b"\n") + 1].splitlines()


def test_killed_at_many_moments_nothing_is_lost_or_asked_again(tmp_path: Path, capsys: Any) -> None:
    moments = random.Random(SEED)
    talker = Talker()
    kills = torn = 0
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve("rig_socket", talker)) as port:
        write(tmp_path, base_url("rig_socket", "127.0.0.1", port))
        before: list[bytes] = []
        for _ in range(KILLS):
            process = start(tmp_path)
            until = time.monotonic() + 30
            grown = moments.randrange(1, 9)  # die once so many more lines are there, and a little later
            while process.poll() is None and len(whole_lines(tmp_path)) < len(before) + grown:
                assert time.monotonic() < until
                time.sleep(0.002)
            time.sleep(moments.uniform(0, 0.03))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
            process.wait(10)
            now = whole_lines(tmp_path)
            torn += not (tmp_path / "run" / "captures.jsonl").read_bytes().endswith(b"\n")
            assert now[: len(before)] == before  # what was on disk stays as it was
            before = now
        last = start(tmp_path, "--json")
        assert last.wait(120) == 0, (tmp_path / "log").read_text(errors="replace")[-2000:]
    captures = [json.loads(line) for line in whole_lines(tmp_path)]
    finished = Counter(capture["identity"] for capture in captures if capture["finished"])
    assert set(finished.values()) == {1}
    assert len(finished) == 124
    for capture in captures:
        assert (tmp_path / "run" / capture["cassette"]).is_file()
    assert not list((tmp_path / "run").rglob("*.tmp"))
    # What was answered and whose line was not yet on disk may be asked again: at most what was under way at each kill.
    asked = sum(talker.asked.values())
    assert 124 <= asked <= 124 + kills * 12
    assert kills >= 10
    with capsys.disabled():
        print(f"\n{kills} kills, {torn} torn lines, 124 cells finished once each, {asked - 124} asked again")


def test_a_line_cut_at_any_byte_loses_its_own_cell_alone(tmp_path: Path) -> None:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve("rig_socket", Talker())) as port:
        write(tmp_path, base_url("rig_socket", "127.0.0.1", port), items=["demo-clinic-01"])
        process = start(tmp_path)
        assert process.wait(60) == 0
    whole = (tmp_path / "run" / "captures.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    begins = len(whole) - len(lines[-1])
    cut = tmp_path / "cut"
    shutil.copytree(tmp_path / "run", cut)
    for length in range(begins, len(whole)):
        (cut / "captures.jsonl").write_bytes(whole[:length])
        folder = RunFolder.open(cut)
        with folder.lock():
            told = folder.mend()
        kept = folder.read_captures()
        # A line that lacks its newline alone is whole.
        assert len(kept) == len(lines) - (length < len(whole) - 1)
        assert (cut / "captures.jsonl").read_bytes() in (b"".join(lines[:-1]), whole)
        assert bool(told) == (length > begins)


def test_a_process_that_stood_still_has_void_times_and_its_actions_count(tmp_path: Path) -> None:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve("rig_socket", Talker())) as port:
        address = base_url("rig_socket", "127.0.0.1", port)
        write(tmp_path, address, items=["demo-clinic-01"], conditions=["audio"], pace=1.0)
        process = start(tmp_path)
        # It stands still while clips of four seconds are being played.
        until = time.monotonic() + 30
        while not (tmp_path / "run" / "run.json").exists():
            assert time.monotonic() < until
            time.sleep(0.02)
        time.sleep(2.0)
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(process.pid, signal.SIGCONT)
        assert process.wait(60) == 0
    captures = [json.loads(line) for line in whole_lines(tmp_path)]
    assert [capture["ending"] for capture in captures] == ["called"] * 3
    assert all(capture["pacing"]["lateness_max_ns"] > 500_000_000 for capture in captures)
    report = subprocess.run(
        [sys.executable, "-m", "rig", "report", "run", "--json"], cwd=tmp_path, capture_output=True, text=True
    )
    latency = json.loads(report.stdout)["targets"]["one"]["latency"]["commit_to_tool_call"]
    assert (latency["n"], latency["void"]) == (0, 3)


def test_a_machine_that_slept_during_a_call_has_measured_nothing_and_tries_again(
    rig: Any, banks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    banks.write_bank(tmp_path / "bank", {"clear": banks.wav(banks.tone(0.6))})
    readings = iter([0, 90_000_000_000])
    monkeypatch.setattr(MonotonicClock, "slept_ns", lambda self: next(readings, 90_000_000_000))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve("rig_socket", Talker())) as port:
        target = {"name": "one", "adapter": "rig_socket", "base_url": base_url("rig_socket", "127.0.0.1", port)}
        done = rig.run(rig.config("", preflight=False, limits={"backoff_s": 0}) | {"targets": [target]})
    first, second = done.captures
    assert (first.ending, first.finished) == (Ending.INFRASTRUCTURE_ERROR, False)
    assert first.error is not None
    assert first.error.message == "the machine slept for 90.0 s during the call"
    assert (second.ending, second.finished, second.attempt) == (Ending.CALLED, True, 2)


def test_the_clock_of_this_machine_tells_its_sleep() -> None:
    clock = MonotonicClock()
    assert clock.slept_ns() > -1_000_000  # two readings, one after the other
    assert abs(clock.slept_ns() - clock.slept_ns()) < 20_000_000


def test_a_full_disk_ends_the_run_in_one_line_and_the_rest_is_asked_later(tmp_path: Path) -> None:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve("rig_socket", Talker())) as port:
        write(tmp_path, base_url("rig_socket", "127.0.0.1", port), conditions=["text_twin"])
        # Files of at most 24 KiB stand for a disk that has no more room: a dozen lines.
        limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (24576, 24576)); "
        command = [sys.executable, "-c", limited + "sys.argv[0] = 'rig'; from rig.cli.main import run_cli; run_cli()"]
        done = subprocess.run(
            [*command, "run", "config.yaml", "--out", "run"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 2
        assert "could not be written" in done.stderr
        assert "Traceback" not in done.stderr
        before = whole_lines(tmp_path)
        assert before
        again = start(tmp_path)
        assert again.wait(60) == 0
    after = whole_lines(tmp_path)
    assert after[: len(before)] == before
    finished = Counter(json.loads(line)["identity"] for line in after if json.loads(line)["finished"])
    assert (len(finished), set(finished.values())) == (32, {1})


def test_a_folder_that_cannot_be_written_is_said_before_any_call(tmp_path: Path) -> None:
    talker = Talker()
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve("rig_socket", talker)) as port:
        write(tmp_path, base_url("rig_socket", "127.0.0.1", port), conditions=["text_twin"])
        (tmp_path / "file").write_text("")
        for out in ("file/run", "/proc/run"):
            done = subprocess.run(
                [sys.executable, "-m", "rig", "run", "config.yaml", "--out", out],
                cwd=tmp_path, capture_output=True, text=True,
            )  # fmt: skip
            assert done.returncode == 2
            assert f"{out}: cannot be made a run folder" in done.stderr
            assert "Traceback" not in done.stderr
    assert not talker.asked
