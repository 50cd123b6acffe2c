"""Calls over real (virtual) sound devices, end to end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.device


def rig(cables: dict[str, str], *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rig", *words], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        env=os.environ | cables,
    )  # fmt: skip


@contextmanager
def agent(repo_dir: Path, cables: dict[str, str], webhook: str) -> Iterator[None]:
    """The example at the two cables."""
    command = [sys.executable, str(repo_dir / "examples" / "device_agent.py"), "send_ambulance"]
    environment = os.environ | cables | {"TOOL_WEBHOOK": webhook}
    with subprocess.Popen(
        [*command, "to_agent_monitor", "from_agent"], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            while process.stdout.readline().strip() != "listening":
                assert process.poll() is None
            yield
        finally:
            process.terminate()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def config_of(repo_dir: Path, **settings: Any) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((repo_dir / "configs" / "device.yaml").read_text())
    config["targets"][0]["settings"] |= settings
    return config


def captures(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "captures.jsonl").read_text().splitlines()]


def test_devices_are_listed(cables: dict[str, str], tmp_path: Path) -> None:
    done = rig(cables, "device", "list", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = [one["name"] for one in json.loads(done.stdout)]
    assert {"to_agent", "to_agent_monitor", "from_agent", "from_agent_monitor"} <= set(names)
    assert done.stderr == ""


def test_a_call_is_played_heard_and_timed(repo_dir: Path, cables: dict[str, str], tmp_path: Path) -> None:
    loop = ["--output", "to_agent", "--input", "to_agent_monitor"]
    done = rig(cables, "device", "latency", *loop, "--chirps", "3", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    assert (measured["found"] >= 2, measured["played"]) == (True, 3)
    assert 0 < measured["median_s"] < 1.9
    assert measured["uncertainty_s"] >= 0.005

    port = free_port()
    settings = {"tool_calls": {"webhook": {"listen": f"127.0.0.1:{port}"}}, "greeting": "none"}
    (tmp_path / "config.yaml").write_text(json.dumps(config_of(repo_dir, **settings)))
    with agent(repo_dir, cables, f"http://127.0.0.1:{port}/tools"):
        done = rig(cables, "run", "config.yaml", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = captures(tmp_path / "run")
    finished = [capture for capture in made if capture["finished"]]
    assert len(finished) == 3
    for capture in finished:
        assert [call["name"] for call in capture["calls"]] == ["send_ambulance"]
        assert capture["ending"] == "called"
        assert capture["marks"]["first_call_complete"] > capture["marks"]["caller_speech_end"]
        assert capture["marks"]["first_audible"] > capture["marks"]["caller_speech_end"]
        assert capture["echoed"]["device_latency_s"] == measured["median_s"]
        assert capture["echoed"]["device_uncertainty_s"] == measured["uncertainty_s"]
    # One at a time: two callers would be heard in each other.
    spans = sorted((capture["marks"]["connect_start"], capture["marks"]["answer_end"]) for capture in finished)
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    assert f"{measured['median_s'] * 1000:.1f} ms ± {measured['uncertainty_s'] * 1000:.1f} of its devices" in " ".join(
        done.stdout.split()
    )
    replayed = rig(cables, "replay", "run", cwd=tmp_path)
    assert "3 equal, 0 different" in replayed.stdout + replayed.stderr


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"output": "no_such_cable"}, "output device 'no_such_cable' is not there; there are:"),
        ({"input": "_agent"}, "input device '_agent' is not the name of one; there are:"),
    ],
)
def test_a_device_that_is_not_there_stops_the_target_before_any_call(
    repo_dir: Path, cables: dict[str, str], tmp_path: Path, settings: dict[str, Any], told: str
) -> None:
    port = free_port()
    hook = {"tool_calls": {"webhook": {"listen": f"127.0.0.1:{port}"}}}
    (tmp_path / "config.yaml").write_text(json.dumps(config_of(repo_dir, **hook, **settings)))
    done = rig(cables, "run", "config.yaml", "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_one_pair_holds_one_call(repo_dir: Path, tmp_path: Path) -> None:
    config = config_of(repo_dir)
    first = config["targets"][0]
    config["targets"] = [first | {"concurrency": 2}, first | {"name": "another"}]
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    done = rig({}, "run", "config.yaml", "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert "targets[0] (my-softphone): devices hold one call at a time; leave concurrency out" in done.stderr
    assert "targets[1] (another): uses a device of my-softphone; run one after the other, with --target" in done.stderr
    assert not (tmp_path / "run" / "captures.jsonl").exists()


def test_a_loop_that_is_none_is_no_measurement(cables: dict[str, str], tmp_path: Path) -> None:
    apart = ["--output", "to_agent", "--input", "from_agent_monitor", "--chirps", "3", "--no-save"]
    done = rig(cables, "device", "latency", *apart, cwd=tmp_path)
    assert done.returncode == 2
    assert "0 of 3 chirps played on 'to_agent' were heard on 'from_agent_monitor'" in done.stderr
