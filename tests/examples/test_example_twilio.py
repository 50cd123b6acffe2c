"""The phone agent of the examples behind the rig as Twilio, end to end with real audio."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
import zstandard

TOKEN = "planted-webhook-token-1"
AUTH = "planted-twilio-auth-1"


@contextmanager
def agent(repo_dir: Path, webhook: str) -> Iterator[str]:
    """The example on a free port."""
    command = [sys.executable, str(repo_dir / "examples" / "twilio_agent.py"), "0", "send_ambulance"]
    environment = os.environ | {"TOOL_WEBHOOK": webhook, "TOOL_TOKEN": TOKEN}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def rig(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"HOOK_TOKEN": TOKEN, "TWILIO_AUTH_TOKEN": AUTH}
    return subprocess.run(
        [sys.executable, "-m", "rig", *words], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        env=environment,
    )  # fmt: skip


def config_of(repo_dir: Path, port: str, **settings: Any) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((repo_dir / "configs" / "twilio-media.yaml").read_text())
    (target,) = config["targets"]
    target["base_url"] = f"ws://127.0.0.1:{port}/media"
    target["settings"] |= settings
    return config


def captures(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "captures.jsonl").read_text().splitlines()]


def test_the_agents_call_reaches_the_webhook_and_is_timed(repo_dir: Path, tmp_path: Path) -> None:
    port = free_port()
    hook = {"webhook": {"listen": f"127.0.0.1:{port}", "token": "${HOOK_TOKEN}"}}
    with agent(repo_dir, f"http://127.0.0.1:{port}/tools") as agent_port:
        config = config_of(repo_dir, agent_port, tool_calls=hook, auth_token="${TWILIO_AUTH_TOKEN}")
        (tmp_path / "config.yaml").write_text(json.dumps(config))
        done = rig("run", "config.yaml", "--out", "run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = captures(tmp_path / "run")
    assert len(made) == 3
    for capture in made:
        assert capture["ending"] == "called"
        assert [call["name"] for call in capture["calls"]] == ["send_ambulance"]
        marks = capture["marks"]
        # The agent calls after 0.7 s without speech, and speaks once the webhook has answered.
        assert marks["caller_speech_end"] < marks["first_call_complete"] < marks["first_audible"]
        assert capture["echoed"]["greeting_s"] == pytest.approx(0.5)
        assert capture["reply_audio"]["received_s"] == pytest.approx(1.0)
    report = json.loads(done.stdout)["targets"]["my-phone-agent"]
    assert report["latency"]["speech_end_to_tool_call"]["n"] + report["latency"]["speech_end_to_tool_call"]["void"] == 3

    done = rig("replay", "run", cwd=tmp_path)
    assert "3 captures replayed, 3 equal" in done.stderr + done.stdout

    everything = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    for path in (tmp_path / "run").rglob("*.zst"):
        with zstandard.open(path) as cassette:
            everything += cassette.read()
    assert b"rig.tool_request" in everything
    for secret in (TOKEN, AUTH):
        assert secret.encode() not in everything
        assert secret not in done.stdout + done.stderr


def test_without_a_view_of_tools_times_count_and_actions_do_not(repo_dir: Path, tmp_path: Path) -> None:
    with agent(repo_dir, "") as agent_port:
        config = config_of(repo_dir, agent_port, tool_calls={"none": True}, tools=[])
        (tmp_path / "config.yaml").write_text(json.dumps(config))
        done = rig("run", "config.yaml", "--out", "run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for capture in captures(tmp_path / "run"):
        assert capture["tools_seen"] is False
        assert (capture["ending"], capture["calls"]) == ("answered", [])
    target = json.loads(done.stdout)["targets"]["my-phone-agent"]
    assert target["credit"]["cue_bearing"] is None
    assert target["credit"]["neutral"] is None
    assert target["endings"]["answered"] == 3
    heard = target["latency"]["speech_end_to_first_audible"]
    assert heard["n"] + heard["void"] == 3
    assert target["latency"]["speech_end_to_tool_call"] is None
    done = rig("report", "run", cwd=tmp_path)
    assert "swered" in done.stdout


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"tools": ["send_ambulance"]}, "settings.tools lacks tools of 1 of 1 items"),
        ({"tool_calls": {"webhook": {"listen": "0.0.0.0:8790"}}}, "others can reach 0.0.0.0:8790; add token"),
    ],
)
def test_what_is_wrong_is_said_before_any_call(
    repo_dir: Path, tmp_path: Path, settings: dict[str, Any], told: str
) -> None:
    (tmp_path / "config.yaml").write_text(json.dumps(config_of(repo_dir, "1", **settings)))
    done = rig("run", "config.yaml", "--out", "run", cwd=tmp_path)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "run").exists()


def test_a_webhook_that_cannot_listen_is_one_line(repo_dir: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        config = config_of(repo_dir, "1", tool_calls={"webhook": {"listen": listen}})
        (tmp_path / "config.yaml").write_text(json.dumps(config))
        done = rig("run", "config.yaml", "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert f"webhook {listen}: cannot listen" in done.stderr
    assert "Traceback" not in done.stderr


def test_pieces_of_another_length_are_refused(repo_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(json.dumps(config_of(repo_dir, "1") | {"chunk_ms": 100}))
    done = rig("run", "config.yaml", "--out", "run", cwd=tmp_path)
    assert (done.returncode, "twilio_media sends pieces of 20 ms; set chunk_ms: 20" in done.stderr) == (2, True)


def test_the_example_is_short_and_needs_nothing_of_ours(repo_dir: Path) -> None:
    source = (repo_dir / "examples" / "twilio_agent.py").read_text()
    assert len(source.splitlines()) < 80
    assert not re.search(r"^\s*(from|import) (captures|transports|adapters|turn_control|rig)\b", source, re.MULTILINE)
