"""The pytest plugin in a user's project: real pytest, the real command, a Python class as the agent."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

LONGEST_S = 180.0

AGENT = """
class Agent:
    def respond(self, turn):
        if not turn.tools:
            return "young"
        calls = [{"name": "sign_up", "arguments": {"seats": 2}}, {"name": "\\x1b[31m", "arguments": {}}]
        return {"calls": calls, "text": "Signed up. \\x1b[31m"}

class Raises:
    def respond(self, turn):
        raise ValueError("no weights here\\x1b[31m")
"""

PASSES = """
import pytest
import rig_pytest

@pytest.mark.rig(conditions=["audio"])
def test_signs_up(rig_result):
    assert rig_result.called("sign_up", seats=2)
    assert not rig_result.called("sign_up", seats=3)
    assert not rig_result.called("fetch_parent")
    assert rig_result.ending == "called"
    assert len(rig_result.calls) == 2
    assert rig_result.said.startswith("Signed up.")

@pytest.mark.rig(conditions="text_twin")
def test_by_text(rig_result):
    assert rig_result.variant is None
    assert rig_result.credit_as("young_visitor") == 0
    with pytest.raises(rig_pytest.NotMeasured, match="credit_as"):
        rig_result.credit

@pytest.mark.rig(conditions="probe")
def test_probe(rig_result):
    assert rig_result.probe.right is (rig_result.probe.answer == rig_result.probe.expected)
    with pytest.raises(rig_pytest.NotMeasured, match="no latency"):
        rig_result.latency("commit_to_tool_call")

def test_of_the_whole(rig_agent):
    assert rig_agent.target == "mine"
    assert len(rig_agent.results) == 5
    assert rig_agent.result("demo-museum-01", "young_visitor").credit == 0
    assert rig_agent.credit <= 0.5
    with pytest.raises(LookupError, match="demo-museum-01/young_visitor audio"):
        rig_agent.result("demo-nothing-01")
"""

TIMES = """
import pytest
import rig_pytest

@pytest.mark.rig(conditions=["audio"])
def test_of_a_cell(rig_result):
    assert 0 < rig_result.latency("commit_to_tool_call") < 60

@pytest.mark.rig(conditions=["audio"])
def test_of_all(rig_agent):
    assert 0 < rig_agent.latency("commit_to_tool_call") < 60
    with pytest.raises(rig_pytest.NotMeasured, match="p95 of commit_to_tool_call needs 20 valid values; there are 2"):
        rig_agent.latency("commit_to_tool_call", 95)
"""

FAILS = """
import pytest
pytestmark = pytest.mark.rig(conditions=["audio"], items=["demo-museum-01"])

def test_fetches_a_parent(rig_result):
    assert rig_result.called("fetch_parent")

def test_credit(rig_agent):
    assert rig_agent.credit > 0.9

@pytest.mark.rig(target="hasty")
def test_latency(rig_result):
    assert rig_result.latency("commit_to_tool_call") < 60

@pytest.mark.rig(target="raises")
def test_is_not_taken_for_declined(rig_result):
    assert not rig_result.called("anything")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    _config(tmp_path / "rig.yaml", mine="Agent")
    ini = "[pytest]\naddopts = --strict-markers\nrig_config = rig.yaml\nrig_items = demo-museum-*\n"
    (tmp_path / "pytest.ini").write_text(f"{ini}rig_command = {sys.executable} -m rig\nrig_target = mine\n")
    return tmp_path


def _config(path: Path, pace: float = 1.0, **agents: str) -> None:
    targets = [
        {"name": name, "adapter": "python_agent", "settings": {"driver": f"agent.py:{driver}"}}
        for name, driver in agents.items()
    ]
    # Our own lateness on a busy machine is not what is tested.
    limits = {"attempts": 1, "void_ms": 60_000, "backoff_s": 0.01}
    path.write_text(yaml.safe_dump({"version": 1, "bank": "demo", "pace": pace, "limits": limits, "targets": targets}))


def _pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rA", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONGEST_S)


def _captures(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in folder.rglob("captures.jsonl") for line in path.read_text().splitlines()]


def test_the_plugin_imports_the_standard_library_and_pytest_alone(repo_dir: Path) -> None:
    tree = ast.parse((repo_dir / "rig_pytest.py").read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names | {"pytest"}


def test_latencies_in_real_time(project: Path) -> None:
    (project / "test_agent.py").write_text(TIMES)
    done = _pytest(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_workers_share_one_run_of_the_session(project: Path) -> None:
    (project / "test_agent.py").write_text(PASSES)
    _config(project / "rig.yaml", pace=10, mine="Agent")
    done = _pytest(project, "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout
    assert "PASSED test_agent.py::test_signs_up[demo-museum-01/young_visitor-audio]" in done.stdout
    cells = [(one["item_id"], one["variant_id"], one["condition"]) for one in _captures(project)]
    assert len(cells) == len(set(cells)) == 5, "every cell is measured once, whoever asks"
    (run,) = project.glob("runs/pytest/*/*/run.json")
    assert f"rig: run folder {run.parent}" in done.stdout


def test_failures_say_what_was_called_and_where_it_is_kept(project: Path) -> None:
    (project / "test_agent.py").write_text(FAILS)
    _config(project / "rig.yaml", pace=10, mine="Agent", hasty="Agent", raises="Raises")
    done = _pytest(project, "--rig-run", "kept")
    assert done.returncode == 1
    assert "7 failed" in done.stdout
    out = done.stdout
    assert "<demo-museum-01/adult_visitor audio: called sign_up(" in out
    assert 'the agent: called sign_up({"seats": 2}), then' in out
    assert "expected on young_visitor: fetch_parent(" in out
    assert "the caller says:" in out
    assert "commit_to_tool_call is void: not paced in real time" in out
    assert "infrastructure_error: agent_raised: " in out
    assert "no weights here" in out
    assert "\x1b" not in out
    (folder,) = (project / "kept").glob("rig-mine-*")
    assert f"run folder: {folder}" in out
    before = len(_captures(project))
    assert _pytest(project, "--rig-run", "kept", "-k", "test_credit").returncode == 1
    assert len(_captures(project)) == before, "a kept run is gone on with"


def test_only_what_is_left_after_deselection_is_measured(project: Path) -> None:
    (project / "test_agent.py").write_text(PASSES)
    _config(project / "rig.yaml", pace=10, mine="Agent")
    assert _pytest(project, "-k", "test_by_text").returncode == 0
    assert [one["condition"] for one in _captures(project)] == ["text_twin"]


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("@pytest.mark.rig(config='absent.yaml')\ndef test(rig_result): ...", "absent.yaml"),
        ("@pytest.mark.rig(item='x')\ndef test(rig_result): ...", "the marker rig takes config=, target=, items="),
        ("@pytest.mark.rig(items='nothing')\ndef test(rig_result): ...", "'nothing' matches no item of bank 'demo'"),
        ("@pytest.mark.rig(target='nobody')\ndef test(rig_agent): ...", "no such target; there are: mine"),
        ("@pytest.mark.rig(conditions='smell')\ndef test(rig_agent): ...", "not one of audio, text_twin, probe"),
    ],
)
def test_what_is_asked_wrongly_is_told_before_any_test(project: Path, test: str, said: str) -> None:
    (project / "test_agent.py").write_text(f"import pytest\n{test}\n")
    done = _pytest(project)
    assert done.returncode in (2, 4), done.stdout + done.stderr  # a module's collection error, or the session's
    assert said in done.stdout + done.stderr
    assert "rig_pytest.py" not in done.stdout + done.stderr
    assert not (project / "runs").exists()


def test_a_command_that_is_not_there_is_named(project: Path) -> None:
    (project / "test_agent.py").write_text("def test(rig_agent): ...\n")
    done = _pytest(project, "--rig-command", "/no/such/rig")
    assert done.returncode == 4
    assert "rig_command: '/no/such/rig' is not there: pipx install voice-agent-rig" in done.stdout + done.stderr


def test_a_project_without_such_tests_notices_nothing(project: Path) -> None:
    (project / "test_agent.py").write_text("def test_plain(): ...\n")
    done = _pytest(project, "--rig-command", "/no/such/rig")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (project / "runs").exists()
