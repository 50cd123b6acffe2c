"""What listens, listens on this machine alone unless told otherwise."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import anyio
import psutil
import pytest
import yaml

from rig.agents.emulator import serve

PACKAGES = ("captures", "transports", "adapters", "turn_control", "rig")
LISTENERS = {"TCPSite": 1, "start_server": 1, "ws_create_server": 1, "create_server": 1, "create_tcp_listener": None}
"""Which argument is the address; None: `local_host`."""
TOLD = {("rig/agents/emulator.py", "host"), ("rig/tool_channels/webhook.py", "host")}
"""Where the address is the user's: by --host, and by a setting that asks for a token."""


def test_every_place_that_listens_is_known(repo_dir: Path) -> None:
    found = set()
    for package in PACKAGES:
        for path in (repo_dir / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
                if isinstance(node, ast.Call) and name in LISTENERS:
                    at = LISTENERS[name]
                    named = {keyword.arg: keyword.value for keyword in node.keywords}
                    address = named["local_host"] if at is None else node.args[at]
                    shown = address.value if isinstance(address, ast.Constant) else ast.unparse(address)
                    found.add((path.relative_to(repo_dir).as_posix(), str(shown)))
    assert found >= TOLD
    assert {address for place, address in found - TOLD} == {"127.0.0.1"}


@pytest.mark.parametrize(
    "words",
    [["emulate", "rig-socket", "--agent", "local-cascade", "--port", "0"], ["run", "config.yaml", "--out", "run"]],
    ids=["emulate", "run"],
)
def test_a_running_rig_is_reached_from_this_machine_alone(tmp_path: Path, words: list[str]) -> None:
    agent = "class Agent:\n    def respond(self, turn):\n        import time\n        time.sleep(3)\n"
    (tmp_path / "agent.py").write_text(agent)
    config = {
        "version": 1, "bank": "demo", "items": ["demo-clinic-01"], "conditions": ["audio"],
        "targets": [
            {"name": "embedded", "adapter": "rig_socket", "embedded_agent": "local-cascade"},
            {"name": "class", "adapter": "python_agent", "settings": {"driver": "agent.py:Agent"}},
        ],
    }  # fmt: skip
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    with subprocess.Popen(
        [sys.executable, "-m", "rig", *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            addresses: set[str] = set()
            until = time.monotonic() + 60
            wanted = 1 if words[0] == "emulate" else 2
            while len(addresses) < wanted and time.monotonic() < until and process.poll() is None:
                addresses |= {f"{one.ip}:{one.port}" for one in listening(psutil.Process(process.pid))}
                time.sleep(0.1)
        finally:
            process.terminate()
            process.wait(30)
    assert len(addresses) >= wanted
    assert all(address.startswith("127.0.0.1:") for address in addresses), addresses


def listening(process: psutil.Process) -> list[psutil._common.addr]:
    """Addresses on which a process and its children listen."""
    found = []
    for one in [process, *process.children(recursive=True)]:
        try:
            found += [c.laddr for c in one.net_connections(kind="inet") if c.status == psutil.CONN_LISTEN]
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_an_emulator_for_others_needs_a_token(tmp_path: Path, host: str) -> None:
    command = [sys.executable, "-m", "rig", "emulate", "rig-socket", "--port", "0", "--host", host]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"others can reach {host}: give --token-env NAME" in done.stderr


def test_a_token_is_shown_as_a_vendors_key() -> None:
    class Silent:
        async def reply(self, *_: object) -> None:
            raise AssertionError("nobody asks")

    async def main() -> list[int]:
        statuses = []
        async with serve("openai_chat", Silent(), token="planted-token-7") as port, aiohttp.ClientSession() as client:
            address = f"http://127.0.0.1:{port}/v1/chat/completions"
            for headers, query in (
                ({}, ""), ({"Authorization": "Bearer wrong"}, ""), ({"Authorization": "Bearer planted-token-7"}, ""),
                ({"api-key": "planted-token-7"}, ""), ({}, "?key=planted-token-7"), ({}, "?key=planted-token-77"),
            ):  # fmt: skip
                async with client.post(address + query, data=b"{", headers=headers) as response:
                    statuses.append(response.status)
        return statuses

    statuses = anyio.run(main)
    assert [status == 401 for status in statuses] == [True, True, False, False, False, True]
