"""Every dialect in one run on loopback: one embedded agent behind all of them must do the same through each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters import registry
from adapters.dialect import Hosted
from adapters.tool_requests import SeesToolsElsewhere


@pytest.fixture(scope="module")
def config(repo_dir: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((repo_dir / "configs" / "all-vendors-loopback.yaml").read_text())
    return loaded


def test_no_dialect_is_left_out(config: dict[str, Any]) -> None:
    # No embedded agent can stand behind a Python class, nor behind a phone, which tells it nothing of the item.
    dialects = {
        name for name in registry.names() if not isinstance(registry.dialect(name), Hosted | SeesToolsElsewhere)
    }
    assert {target["adapter"] for target in config["targets"]} == dialects


def test_all_dialects_agree(config: dict[str, Any], tmp_path: Path) -> None:
    # Fewer items and more at once than the shipped config, so that it takes seconds.
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config | {"items": ["demo-betting-01"], "concurrency": 5}))
    command = [sys.executable, "-m", "rig", "run", str(path), "--out", str(tmp_path / "run"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    for name, target in report["targets"].items():
        errors = {kind: n for kind, n in target["endings"].items() if n and kind not in ("called", "declined")}
        assert not errors, f"{name}: {errors}"
    (agreement,) = report["agreement"]
    assert len(agreement["targets"]) == len(config["targets"])
    assert agreement["cells"] == 5
    assert agreement["agree"] == 5, agreement["differing"]
