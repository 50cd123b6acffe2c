"""Python classes as agents: what is found wrong with one before any call, and runs with real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rig.python_agents.hosting import AgentClassError, Spec, describe

AGENTS = '''
import asyncio, os, sys
from types import SimpleNamespace

class Plain:
    """Calls the first tool; says what it was told on a probe."""
    capabilities = {"text": True}
    def __init__(self, greeting="hello"):
        self.greeting = greeting
    def setup(self, instructions, tools):
        self.names = [tool["name"] for tool in tools]
    def respond(self, turn):
        print("printed by the agent")
        assert (turn.text is None) == bool(turn.pcm)
        if not turn.tools:
            return self.greeting
        return {"calls": [{"name": self.names[0], "arguments": {"heard": len(turn.pcm)}}], "text": "One moment."}

class Slow:
    async def respond(self, turn):
        await asyncio.sleep(0.2)
        return {"audio": b"\\x00\\x10" * 2400, "transcript": "All right."}

class Raises:
    def respond(self, turn):
        raise ValueError("no weights here")

class Dies:
    capabilities = {"text": False}
    def respond(self, turn):
        os._exit(3)

class Wrong:
    def respond(self, turn):
        return ["not", "a", "reply"]

class Foreign:
    """As VoxParity's drivers are."""
    name = "foreign"
    capabilities = SimpleNamespace(family="stateless", text_twin=True, perception_probe=False, audio_in=True)
    def preflight(self):
        print("preflight ran")
    def respond(self, ctx):
        assert (ctx.audio_path is None) == (ctx.text_input is not None)
        if ctx.audio_path is not None:
            assert open(ctx.audio_path, "rb").read(4) == b"RIFF"
        call = SimpleNamespace(tool=ctx.tools[0].name, args={"n": len(ctx.tools[0].params)})
        return SimpleNamespace(text="Calling.", tool_calls=[call])

class NoRespond: pass
class TakesNothing:
    def respond(self): ...
class Declares:
    capabilities = {"texts": True, "probe": 3}
    def respond(self, turn): ...
class Unmade:
    def __init__(self, needed): ...
    def respond(self, turn): ...
class Unwilling:
    def preflight(self):
        raise RuntimeError("the model is not downloaded")
    def respond(self, turn): ...
class Deaf(Foreign):
    capabilities = SimpleNamespace(family="stateless", audio_in=False)
function = print
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agents.py").write_text(AGENTS)
    return tmp_path


def _problems(folder: Path, driver: str, **options: Any) -> list[str]:
    with pytest.raises(AgentClassError) as raised:
        describe(Spec(driver, folder, **options))
    return raised.value.problems


@pytest.mark.parametrize(
    ("driver", "problems"),
    [
        ("agents.py:NoRespond", ["NoRespond has no method respond(self, turn)"]),
        ("agents.py:TakesNothing", ["TakesNothing.respond must take one argument, the turn"]),
        (
            "agents.py:Declares",
            [
                "Declares.capabilities: unknown 'texts'; there are text, probe, takes_setup",
                "Declares.capabilities: probe must be True or False",
            ],
        ),
        ("agents.py:Unwilling", ["Unwilling.preflight: RuntimeError: the model is not downloaded"]),
        ("agents.py:function", ["driver 'agents.py:function': function is a builtin_function_or_method, not a class"]),
        ("agents.py:Absent", ["driver 'agents.py:Absent': agents.py has no Absent"]),
        ("agents:Absent", ["driver 'agents:Absent': agents has no Absent"]),
    ],
)
def test_what_is_wrong_with_a_class_is_told_in_lines(folder: Path, driver: str, problems: list[str]) -> None:
    assert _problems(folder, driver) == problems


def test_what_cannot_be_loaded_or_made_is_told(folder: Path) -> None:
    (folder / "broken.py").write_text("import nothing_of_that_name")
    (folder / "exits.py").write_text("import sys; sys.exit(4)")
    assert "cannot be imported: ModuleNotFoundError" in _problems(folder, "broken.py:Agent")[0]
    assert "cannot be imported: SystemExit" in _problems(folder, "exits.py:Agent")[0]
    assert "there is no file" in _problems(folder, "absent.py:Agent")[0]
    assert "Unmade cannot be made with no arguments: TypeError" in _problems(folder, "agents.py:Unmade")[0]
    assert "audio_in=False" in _problems(folder, "agents.py:Deaf")[0]
    assert "cannot be started" in _problems(folder, "agents.py:Plain", python="/no/such/python")[0]


def test_what_a_class_declares_and_the_hash_of_its_file(folder: Path) -> None:
    found = describe(Spec("agents.py:Foreign", folder))
    assert found["capabilities"] == {"text": True, "probe": False, "takes_setup": True}
    assert len(found["source_sha256"]) == 64
    assert describe(Spec("agents:Plain", folder))["source_sha256"] == found["source_sha256"]


def _run(folder: Path, targets: dict[str, dict[str, Any]], **keys: Any) -> tuple[int, str, list[dict[str, Any]]]:
    config = {
        "version": 1,
        "bank": "demo",
        "items": ["demo-emergency-01"],
        "limits": {"attempts": 1, "turn_s": 10},
        "targets": [
            {"name": name, "adapter": "python_agent", "settings": settings} for name, settings in targets.items()
        ],
    }
    (folder / "config.yaml").write_text(json.dumps(config | keys))
    command = [sys.executable, "-P", "-m", "rig", "run", "config.yaml", "--out", "run"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=180)
    path = folder / "run" / "captures.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return done.returncode, done.stderr, rows


def test_a_run_of_several_classes(folder: Path) -> None:
    code, told, rows = _run(
        folder,
        {
            "plain": {"driver": "agents.py:Plain", "arguments": {"greeting": "good day"}, "input_rate_hz": 16000},
            "slow": {"driver": "agents:Slow"},
            "raises": {"driver": "agents.py:Raises"},
            "wrong": {"driver": "agents.py:Wrong"},
            "foreign": {"driver": "agents.py:Foreign"},
        },
    )
    assert code == 2, told  # some cells were not measured: their agents failed
    by_target = {name: [row for row in rows if row["target"] == name] for name in {row["target"] for row in rows}}
    for row in by_target["plain"]:
        if row["condition"] == "probe":
            assert (row["ending"], row["reply_text"]) == ("declined", "good day")
        else:
            assert row["ending"] == "called"
            assert row["reply_text"] == "One moment."
            heard = row["calls"][0]["arguments"]["heard"]
            assert (heard > 0) == (row["condition"] == "audio")
            if heard:
                assert heard % 2 == 0
                assert row["marks"]["first_call_complete"] > row["marks"]["commit"]
    assert {row["reply_transcript"] for row in by_target["slow"]} == {"All right."}
    assert all(row["reply_audio"]["received_s"] == pytest.approx(0.1) for row in by_target["slow"])
    assert {row["error"]["code"] for row in by_target["raises"]} == {"agent_raised"}
    assert {row["error"]["message"] for row in by_target["raises"]} == {"ValueError: no weights here"}
    assert {row["error"]["code"] for row in by_target["wrong"]} == {"bad_reply"}
    assert {row["condition"] for row in by_target["foreign"]} == {"audio", "text_twin"}
    assert {row["ending"] for row in by_target["foreign"]} == {"called"}
    logs = folder / "run" / "logs"
    assert "printed by the agent" in (logs / "agent-plain.log").read_text()
    assert "ValueError: no weights here" in (logs / "agent-raises.log").read_text()
    assert "token" not in (folder / "run" / "captures.jsonl").read_text()


def test_a_class_that_ends_its_process_is_typed_and_does_not_hang(folder: Path) -> None:
    code, _, rows = _run(folder, {"dies": {"driver": "agents.py:Dies"}}, conditions=["audio"], concurrency=1)
    assert code == 2
    assert {row["ending"] for row in rows} == {"infrastructure_error"}
    assert {row["error"]["kind"] for row in rows} == {"transient"}


def test_all_that_is_wrong_is_told_before_anything_runs(folder: Path) -> None:
    code, told, rows = _run(
        folder, {"a": {"driver": "agents.py:Declares"}, "b": {"driver": "agents.py:NoRespond"}, "c": {"driver": "x"}}
    )
    assert code == 2
    assert rows == []
    assert "targets[0] (a): Declares.capabilities: unknown 'texts'" in told
    assert "targets[1] (b): NoRespond has no method respond" in told
    assert "targets[2] (c): driver 'x': write it as module:Class or file.py:Class" in told
    assert "Traceback" not in told


def test_the_host_needs_nothing_but_the_standard_library(repo_dir: Path) -> None:
    code = (
        "import sys, runpy; sys.argv = ['host.py', '--help']\n"
        "try:\n    runpy.run_path(sys.argv_path, run_name='__main__')\n"
        "except SystemExit:\n    pass\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in "
        "('rig', 'captures', 'adapters', 'numpy', 'anyio', 'pydantic')))"
    ).replace("sys.argv_path", repr(str(repo_dir / "rig" / "python_agents" / "host.py")))
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
