"""`rig conformance` as a user meets it: table, JSON, exit codes, tokens by environment name, targets of a config."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
import yaml

TOKEN = "TESTKEY-not-real-99"
AGENT = """
import asyncio, json
from websockets.asyncio.server import serve
async def agent(socket):
    async for text in socket:
        message = {} if isinstance(text, bytes) else json.loads(text)
        if message.get("type") == "session.setup":
            told = socket.request.headers.get("Authorization", "nobody")
            await socket.send(json.dumps({"type": "session.ready", "version": 1, "agent": told}))
        elif message.get("type") == "turn.text":
            await socket.send(json.dumps({"type": "reply.text", "txt": "\\x1b[31mHello"}))
            await socket.send(json.dumps({"type": "turn.end"}))
async def main():
    async with serve(agent, "127.0.0.1", 0) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()
asyncio.run(main())
"""


@pytest.fixture
def address() -> Iterator[str]:
    """Of an agent that misspells a field and takes any version."""
    with Popen([sys.executable, "-c", AGENT], stdout=PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"ws://127.0.0.1:{process.stdout.readline().strip()}/"
        finally:
            process.terminate()


def conformance(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rig", "conformance", *words],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "120", **environ},
    )  # fmt: skip


def words_only(*more: str) -> tuple[str, ...]:
    return ("--check", "ends-text", "--check", "no-tools", *more)


def test_a_failed_check_is_told_with_its_message(address: str) -> None:
    done = conformance(address, "--check", "no-tools", "--check", "truncate")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 passed, 0 failed, 0 not seen" in done.stdout
    done = conformance(address, "--check", "unknown-version", "--check", "no-tools")
    assert (done.returncode, done.stderr) == (1, "")
    assert "1 passed, 1 failed, 0 not seen" in done.stdout
    assert "unknown-version: refuse a version that you do not speak" in done.stdout
    assert "in a version that nobody speaks, 0." in done.stdout
    assert '{"type": "session.ready", "version": 1' in done.stdout


def test_json_and_a_token_by_the_name_of_its_variable(address: str) -> None:
    done = conformance(address, *words_only("--json", "--token-env", "AGENT_TOKEN"), AGENT_TOKEN=TOKEN)
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr, report["format"], report["agent"]) == (0, "", 1, "***")
    assert [(result["name"], result["verdict"]) for result in report["results"]] == [
        ("ends-text", "passed"), ("no-tools", "passed"),
    ]  # fmt: skip
    assert TOKEN not in done.stdout


def test_a_target_of_a_config(address: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"takes_setup": False, "tools": ["transfer"]}
    target = {"adapter": "rig_socket", "base_url": address, "api_key_env": "AGENT_TOKEN"}
    targets = [{"name": "theirs", **target}, {"name": "mine", **target, "settings": settings}]
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"version": 1, "bank": "demo", "targets": targets}))
    done = conformance(str(config), "--target", "mine", *words_only("--json"), AGENT_TOKEN=TOKEN)
    assert (done.returncode, done.stderr) == (0, "")
    assert [(r["verdict"], r["note"]) for r in json.loads(done.stdout)["results"]] == [
        ("passed", ""), ("not seen", "the agent has tools of its own"),
    ]  # fmt: skip
    done = conformance(str(config), AGENT_TOKEN=TOKEN)
    assert (done.returncode, done.stdout) == (2, "")
    assert "name one target of adapter rig_socket with --target; there are: theirs, mine" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ws://127.0.0.1:1/",), "nothing listens at ws://127.0.0.1:1/"),
        (("http://127.0.0.1:1/",), "base_url: must look like ws://127.0.0.1:9876"),
        (("ws://user:SECRET@h/",), "no user name or password in the address"),
        (("ws://127.0.0.1:1/", "--check", "tempo"), "no check 'tempo'; there are ready, "),
        (("ws://127.0.0.1:1/", "--token-env", "ABSENT_TOKEN"), "the environment has no ABSENT_TOKEN"),
        (("ws://127.0.0.1:1/", "--target", "mine"), "give the config instead of an address"),
        (("absent.yaml",), "absent.yaml"),
    ],
)
def test_what_cannot_be_checked_is_one_line(words: tuple[str, ...], told: str) -> None:
    done = conformance(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "SECRET" not in done.stderr
