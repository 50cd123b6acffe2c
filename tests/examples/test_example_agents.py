"""The example agents as users run them: each a process of its own, held to the whole contract, then run for real."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from rig.conformance.run import CHECKS

MENU = "demo-clinic-01"


@pytest.fixture(scope="session")
def node_modules(repo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Node example with its one package installed."""
    folder = tmp_path_factory.mktemp("node") / "node_agent"
    shutil.copytree(repo_dir / "examples" / "node_agent", folder, ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel", "error"],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(params=["echo_agent.py", "fastapi_agent.py", pytest.param("node_agent", marks=pytest.mark.node)])
def address(request: pytest.FixtureRequest, repo_dir: Path) -> Iterator[str]:
    """Of a running example."""
    if request.param == "node_agent":
        command = ["node", str(request.getfixturevalue("node_modules") / "agent.js"), "0"]
    else:
        command = [sys.executable, str(repo_dir / "examples" / request.param), "0"]
    path = "/agent" if request.param == "fastapi_agent.py" else "/"
    with running(command) as port:
        yield f"ws://127.0.0.1:{port}{path}"


@contextmanager
def running(command: list[str]) -> Iterator[str]:
    with Popen(command, stdout=PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def rig(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rig", *words], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def test_it_keeps_the_contract_and_runs_a_bank(address: str, tmp_path: Path) -> None:
    done = rig("conformance", address, "--json", cwd=tmp_path)
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert [result for result in report["results"] if result["verdict"] != "passed"] == []
    assert (done.returncode, len(report["results"])) == (0, len(CHECKS))

    config = {
        "version": 1, "bank": "demo", "items": [MENU], "conditions": ["audio"],
        "targets": [
            {"name": "mine", "adapter": "rig_socket", "base_url": address, "settings": {"input_rate_hz": 8000}}
        ],
    }  # fmt: skip
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    done = rig("run", "config.yaml", "--out", "run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    endings = [capture["ending"] for capture in captures(tmp_path / "run")]
    assert endings
    assert set(endings) <= {"called", "declined"}


def captures(run: Path) -> list[Any]:
    return [json.loads(line) for path in sorted(run.glob("captures*.jsonl")) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("name", ["echo_agent.py", "fastapi_agent.py", "node_agent/agent.js"])
def test_it_is_short_and_needs_nothing_of_ours(repo_dir: Path, name: str) -> None:
    source = (repo_dir / "examples" / name).read_text()
    assert len(source.splitlines()) < 80
    for package in ("captures", "transports", "adapters", "turn_control", "rig"):
        assert f"import {package}" not in source
        assert f"from {package}" not in source


def test_the_package_of_the_node_example_is_pinned(repo_dir: Path) -> None:
    package = json.loads((repo_dir / "examples" / "node_agent" / "package.json").read_text())
    assert package["dependencies"] == {"ws": "8.23.0"}
