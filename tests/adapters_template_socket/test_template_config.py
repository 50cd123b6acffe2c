"""Templates in a config: their secrets, their faults before any call, and what a changed file changes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.template_socket.template import checked, read_template
from rig.config import ConfigError, ResolvedConfig, parse_config
from rig.engine.prepare import prepare


def config(folder: Path, environ: dict[str, str], **target: Any) -> ResolvedConfig:
    told = {"name": "mine", "adapter": "template_socket", "base_url": "ws://127.0.0.1:1/"} | target
    told.setdefault("settings", {"template": "mine.yaml"})
    text = json.dumps({"version": 1, "bank": "demo", "items": ["demo-betting-01"], "targets": [told]})
    return parse_config(text, "config.yaml", folder, environ)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    template = read_template("plain_json", Path()) | {"secrets": ["TENANT"], "headers": {"X-Tenant": "${TENANT}"}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(template))
    return tmp_path


def test_a_listed_name_is_scrubbed_and_missed_when_it_is_not_set(folder: Path) -> None:
    assert "acme" in config(folder, {"TENANT": "acme", "HOME": "/elsewhere/me"}).secrets
    with pytest.raises(ConfigError, match=r"targets\[0\] \(mine\): environment variable TENANT is not set"):
        config(folder, {"HOME": "/elsewhere/me"})


def test_faults_are_told_before_any_call(folder: Path) -> None:
    path = folder / "mine.yaml"
    path.write_text(path.read_text().replace("event: ready", "event: redy").replace("rate_hz: 16000", "rate_hz: 1"))
    with pytest.raises(ConfigError) as caught:
        prepare(config(folder, {"TENANT": "acme"}))
    lines = "\n".join(caught.value.problems)
    assert "mine.yaml: events[0].event: should be 'ready'" in lines
    assert "mine.yaml: audio_in.rate_hz: should be 8000" in lines


def test_a_changed_template_makes_new_cells(folder: Path) -> None:
    path = folder / "mine.yaml"
    before = {cell.identity for cell in prepare(config(folder, {"TENANT": "acme"})).plan.cells}
    assert before == {cell.identity for cell in prepare(config(folder, {"TENANT": "acme"})).plan.cells}
    path.write_text(path.read_text().replace("end_of_speech", "over"))
    assert not before & {cell.identity for cell in prepare(config(folder, {"TENANT": "acme"})).plan.cells}


def test_an_agent_with_other_tools_is_refused_before_any_call(tmp_path: Path) -> None:
    settings = {"template": "ultravox", "tools": ["no_such_tool"]}
    with pytest.raises(ConfigError, match="lacks tools of 1 of 1 items: demo-betting-01"):
        prepare(config(tmp_path, {}, settings=settings, turn_control={"mode": "server_vad"}))


def test_a_template_without_commit_has_no_manual_turns(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="template_socket has no turn_control mode manual; it has server_vad"):
        prepare(config(tmp_path, {}, settings={"template": "deepgram_voice_agent"}))


def test_the_documented_template_is_one(repo_dir: Path) -> None:
    page = (repo_dir / "docs" / "bring-your-own-agent.md").read_text()
    (shown,) = [block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "audio_in:" in block]
    assert checked(yaml.safe_load(shown), "page").file.secrets == ["MY_TENANT"]
