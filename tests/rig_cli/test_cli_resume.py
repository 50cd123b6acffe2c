"""Ctrl-C, and going on: what was measured stays, the rest runs once, and the report is that of an unbroken run."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ITEMS = [f"i{number:02}" for number in range(1, 7)]


@pytest.fixture(autouse=True)
def bank(tmp_path: Path, banks: Any) -> Path:
    made: Path = banks.write_bank(
        tmp_path / "bank", {"clear": banks.wav(banks.tone(0.1))}, items=tuple(banks.BOOKING | {"id": i} for i in ITEMS)
    )
    return made


@pytest.fixture
def answers(ga: Any) -> list[Any]:
    """Six answers, right but for the fifth, which says something instead."""
    right, silent = [*ga.COMMITTED, *ga.called()], [*ga.COMMITTED, *ga.spoken([b"\1\0" * 2400])]
    return [right] * 4 + [silent, right]


def captures(run: Path) -> list[Any]:
    return [json.loads(line) for line in (run / "captures.jsonl").read_text().splitlines()]


def summary(done: Any) -> Any:
    """What a report says of the agent, without the times of this particular run."""
    found = json.loads(done.stdout)["targets"]["agent"]
    return {name: found[name] for name in ("credit", "endings", "both_right", "attempts", "retried")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_on(cli: Any, serve: Any, realtime: Any, answers: list[Any], ga: Any, number: int) -> None:
    server = serve(*answers)
    config = cli.config(preflight=False, targets=[realtime(server.ws_url)])
    whole = cli("run", config, "--out", "whole", "--json")
    assert whole.returncode == 0, whole.stderr

    started: list[Any] = []

    def ctrl_c() -> None:
        started[0].send_signal(number)

    server.play(*answers[:3], [*ga.COMMITTED, ("call", ctrl_c), ("silent",)])
    started.append(cli.start("run", config, "--out", "cut", "--json"))
    out, err = started[0].communicate(timeout=60)
    assert started[0].returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "interrupted; what was measured is in cut. Run again with --out cut to go on"
    before = captures(cli.folder / "cut")
    assert [line["item_id"] for line in before if line["finished"]] == ITEMS[:3]

    server.play(*answers[3:])
    resumed = cli("run", config, "--out", "cut", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert "cut: 3 cells are done already; 3 to go" in resumed.stderr
    assert len(server.connections) == 3
    after = captures(cli.folder / "cut")
    assert after[: len(before)] == before
    assert [line["item_id"] for line in after if line["finished"]] == ITEMS
    assert summary(resumed) == summary(whole)


def test_a_bad_target_does_not_stop_a_good_one(cli: Any, serve: Any, realtime: Any, answers: list[Any]) -> None:
    good, bad = serve(*answers), serve([("refuse", 404, "no such model")])
    targets = [realtime(bad.ws_url, name="bad"), realtime(good.ws_url)]
    done = cli("run", cli.config(preflight=False, targets=targets), "--out", "run", "--json")
    assert done.returncode == 2
    assert [line["item_id"] for line in captures(cli.folder / "run") if line["target"] == "agent"] == ITEMS
    endings = {name: target["endings"] for name, target in json.loads(done.stdout)["targets"].items()}
    assert (endings["agent"]["called"], endings["agent"]["declined"]) == (5, 1)
    assert sum(endings["bad"].values()) == endings["bad"]["configuration_error"] == 1
    assert "rig: bad: 6 cells not measured: " in done.stderr
    assert "rig: agent:" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_process(
    cli: Any, serve: Any, realtime: Any, ended_children: Callable[..., None], number: int
) -> None:
    """However it is ended: the embedded agents' processes see that their parent is gone."""
    server = serve([("silent",)])
    embedded = {"name": "embedded", "adapter": "rig_socket", "embedded_agent": "local-acoustic"}
    config = cli.config(preflight=False, targets=[embedded, realtime(server.ws_url)], items=["i01"])
    process = cli.start("run", config, "--out", "run", "-v")
    assert any(line.startswith("embedded i01") for line in process.stderr)
    ended_children(process, number)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}[signal.Signals(number)]
