"""The small suite: what it is made of, and its verdict on agents that work, raise, never act, or are not there."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml

from captures.capture import Condition
from rig.bank.loader import load_bank
from rig.bank.words import CueKind
from rig.checks.smoke import SMOKE_ITEMS
from rig.cli.run_command import DEMO_QUICK_ITEMS
from rig.cli.smoke_command import ATTEMPTS, TURN_LIMIT_S, suite_of
from rig.config import parse_config

AGENTS = """
class Acts:
    def respond(self, turn):
        return {"calls": [{"name": turn.tools[0]["name"], "arguments": {}}], "text": "Done."}

class Talks:
    def respond(self, turn):
        return "How nice."

class Raises:
    def respond(self, turn):
        raise ValueError("no weights here")
"""
LONGEST_S = 120.0


def _target(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name.lower(), "adapter": "python_agent", "settings": {"driver": f"agents.py:{name}"}, **more}


def _smoke(folder: Path, *arguments: str, targets: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    (folder / "agents.py").write_text(AGENTS)
    config = {
        "version": 1,
        "bank": "demo",
        "items": ["demo-museum-01"],
        "pace": 10,
        "limits": {"attempts": 1, "setup_s": 10, "backoff_s": 0.01},
        "targets": targets,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "rig", "smoke", "config.yaml", "--out", "run", "--own-items", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONGEST_S)


def test_the_suite_has_every_kind_of_cue_and_a_control_and_is_a_part_of_the_quick_demo() -> None:
    bank = load_bank("demo")
    items = [bank.item(item_id) for item_id in SMOKE_ITEMS]
    kinds = {bank.cue_kind(item, variant) for item in items for variant in item.variants}
    assert kinds == {None, *CueKind}
    assert any(item.is_control for item in items)
    assert set(SMOKE_ITEMS) < set(DEMO_QUICK_ITEMS)
    assert len(SMOKE_ITEMS) == 8


def test_the_suite_takes_the_place_of_the_configs_own() -> None:
    text = json.dumps(
        {
            "version": 1, "bank": "mine", "engine": "other", "items": ["x"], "repeats": 9, "barge_in": {},
            "limits": {"turn_s": 90}, "targets": [_target("Acts")],
        }
    )  # fmt: skip
    resolved = parse_config(text, "c", Path(), {})
    suite = suite_of(resolved, own_items=False)
    assert (suite.config.bank, suite.config.items, suite.config.repeats) == ("demo", SMOKE_ITEMS, 1)
    assert suite.config.conditions == (Condition.AUDIO, Condition.TEXT_TWIN)
    assert (suite.config.limits.turn_s, suite.config.limits.attempts) == (TURN_LIMIT_S, ATTEMPTS)
    assert suite.config.barge_in is None
    assert suite.config.engine is None
    again = parse_config(json.dumps(suite.public), "c", Path(), {})
    assert again.config == suite.config, "the run folder says what was run"
    own = suite_of(resolved, own_items=True)
    assert (own.config.bank, own.config.items) == ("mine", ("x",))


def test_an_agent_that_works_passes_and_junit_says_so(tmp_path: Path) -> None:
    done = _smoke(tmp_path, "--junit", "smoke.xml", "--json", targets=[_target("Acts")])
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [check["outcome"] for check in told["checks"]] == ["pass"] * 3
    assert (Path(told["run"]) / "captures.jsonl").is_file()
    suites = ET.parse(tmp_path / "smoke.xml").getroot()
    assert suites.get("name") == "rig smoke"
    assert [case.get("classname") for case in suites.iter("testcase")] == ["rig.smoke.acts"] * 3
    assert suites.get("failures") == suites.get("errors") == "0"


def test_agents_that_never_act_or_raise_fail_each_with_its_reason(tmp_path: Path) -> None:
    done = _smoke(tmp_path, "--credit", "1", "--junit", "smoke.xml", targets=[_target("Talks"), _target("Raises")])
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert "FAIL          talks: a tool is called on audio: on 0 of 2 audio cells" in lines
    assert "PASS          talks: every cell is answered: 3 of 3 cells" in lines
    assert "FAIL          talks: mean credit on audio ≥ 1: 0.000, 2 cells" in lines
    (raises,) = [line for line in lines if "raises: no cell ends in an error" in line]
    assert raises.startswith("FAIL")
    assert "3 of 3 cells; 3 infrastructure_error agent_raised; the first: " in raises
    assert "no weights here" in raises
    assert "UNMEASURED    raises: mean credit on audio ≥ 1: no audio cell was scored" in lines
    assert len(list(ET.parse(tmp_path / "smoke.xml").getroot().iter("failure"))) == 3


def test_what_cannot_be_reached_is_not_measured(tmp_path: Path) -> None:
    absent = {"name": "absent", "adapter": "rig_socket", "base_url": "ws://127.0.0.1:1"}
    done = _smoke(tmp_path, targets=[absent])
    assert done.returncode == 2, done.stdout + done.stderr
    assert "UNMEASURED    absent: the agent can be reached" in done.stdout
    assert "FAIL" not in done.stdout


def test_the_cells_of_a_run_can_be_listed(tmp_path: Path) -> None:
    _smoke(tmp_path, targets=[_target("Acts"), _target("Talks")])
    command = [sys.executable, "-m", "rig", "cells", "run"]
    lines = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 6
    (twin,) = [line for line in lines if line.startswith("talks demo-museum-01 text_twin: ")]
    assert twin == "talks demo-museum-01 text_twin: declined, credit 0 as adult_visitor, credit 0 as young_visitor"
    done = subprocess.run(
        [*command, "--target", "acts", "--json"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    assert {row["target"] for row in told["cells"]} == {"acts"}
    (child,) = [row for row in told["cells"] if row["variant"] == "young_visitor"]
    assert child["ending"] == "called"
    assert child["calls"][0]["arguments"] == {}
    assert child["scores"]["young_visitor"]["expected"] == {"tool": "fetch_parent", "arguments": {}}
    assert child["latency"]["commit_to_tool_call"]["void"] == ["not paced in real time"]
    assert child["probe"] is None
    absent = subprocess.run([*command, "--target", "nobody"], cwd=tmp_path, capture_output=True, text=True)
    assert (absent.returncode, absent.stdout) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target", "nobody"], "no such target; there are: acts"),
        (["--junit", "no/such/folder.xml"], "cannot be written"),
    ],
)
def test_what_is_asked_wrongly_is_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = _smoke(tmp_path, *arguments, targets=[_target("Acts")])
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
