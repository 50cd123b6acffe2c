"""The workflow that users copy: it can be read, keeps secrets out of its commands, and calls only what exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import typer.main
import yaml

from rig.cli.main import app


def test_the_workflow_calls_commands_that_exist(repo_dir: Path) -> None:
    workflow = yaml.safe_load((repo_dir / "examples" / "github-action.yml").read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    root: Any = typer.main.get_command(app)
    called = set()
    for words in map(shlex.split, lines):
        if words[0] == "rig":
            command = root.commands[words[1]]
            known = {option for parameter in command.params for option in parameter.opts}
            assert {word for word in words if word.startswith("--")} <= known
            called.add(words[1])
    assert called == {"smoke", "run", "check"}
    assert not any("${{" in line for line in lines), "what GitHub fills in goes through the environment"
    assert workflow["permissions"] == {"contents": "read"}
    assert all(re.search(r"@v\d", step["uses"]) for step in steps if "uses" in step)
