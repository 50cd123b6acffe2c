"""The demo in small: shipped config and bank, all four targets, two items. One brain must do the same everywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from captures.capture import Capture, Condition, Ending
from captures.run_folder import RunFolder

ITEMS = ["demo-betting-01", "demo-utilities-01"]
SAME_BRAIN = ("local-acoustic-realtime", "local-acoustic-socket", "local-acoustic-file")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, repo_dir: Path) -> Path:
    """Holds the demo's config cut to `ITEMS`, and nothing else."""
    shipped = yaml.safe_load((repo_dir / "configs" / "demo.yaml").read_text())
    path = tmp_path_factory.mktemp("demo")
    (path / "config.yaml").write_text(yaml.safe_dump(shipped | {"items": ITEMS}))
    return path


@pytest.fixture(scope="module")
def rig_run(folder: Path) -> Callable[..., Any]:
    """`rig run` of that config; what it printed as JSON, and its standard error."""

    def run(*options: str) -> tuple[Any, str]:
        command = [sys.executable, "-m", "rig", "run", "config.yaml", "--json", *options]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr

    return run


@pytest.fixture(scope="module")
def report(rig_run: Callable[..., Any]) -> Any:
    return rig_run("--out", "run")[0]


@pytest.fixture(scope="module")
def captures(report: Any, folder: Path) -> list[Capture]:
    return RunFolder.open(folder / "run").read_captures()


def answers(captures: list[Capture], target: str) -> dict[Any, Any]:
    """Cell → what the target did: the first call with its arguments, or the words that answer the probe."""
    found = {}
    for capture in captures:
        if capture.target == target:
            call = capture.first_call
            did = (call.name, call.arguments) if call else (capture.reply_text or capture.reply_transcript)
            found[capture.item_id, capture.variant_id, capture.condition] = did
    return found


def test_a_dry_run_plans_the_same_cells_and_leaves_nothing(
    rig_run: Callable[..., Any], report: Any, folder: Path
) -> None:
    before = sorted(folder.rglob("*"))
    planned, _ = rig_run("--dry-run", "--out", "never")
    assert sorted(folder.rglob("*")) == before
    assert {row["target"]: row["cells"] for row in planned["targets"]} == {
        name: sum(target["endings"].values()) for name, target in report["targets"].items()
    }


def test_every_cell_is_measured_once(report: Any, captures: list[Capture]) -> None:
    cells = Counter((c.target, c.item_id, c.variant_id, c.condition) for c in captures)
    assert set(cells.values()) == {1}
    assert {c.condition for c in captures} == set(Condition)
    assert {c.item_id for c in captures} == set(ITEMS)
    assert {c.ending for c in captures} <= {Ending.CALLED, Ending.DECLINED}
    assert all(c.finished for c in captures)
    for name, target in report["targets"].items():
        assert target["endings"] == target["endings"] | Counter(c.ending.value for c in captures if c.target == name)


def test_one_brain_does_the_same_through_three_dialects(report: Any, captures: list[Capture]) -> None:
    first, second, third = (answers(captures, name) for name in SAME_BRAIN)
    assert len(first) >= 10
    assert all(first.values()), "every cell has a call or words"
    assert first == second == third
    agreement = next(group for group in report["agreement"] if set(group["targets"]) == set(SAME_BRAIN))
    assert (agreement["agree"], agreement["cells"], agreement["differing"]) == (len(first), len(first), [])


def test_only_streamed_turns_have_streamed_latencies(report: Any) -> None:
    for name in SAME_BRAIN:
        latency = report["targets"][name]["latency"]
        streamed, filed = ("commit_to_tool_call", "request_to_tool_call")
        given, absent = (filed, streamed) if name.endswith("file") else (streamed, filed)
        assert latency[given]["n"] + latency[given]["void"] > 0
        assert latency[absent] is None


def test_running_again_runs_nothing(
    rig_run: Callable[..., Any], report: Any, captures: list[Capture], folder: Path
) -> None:
    path = folder / "run" / "captures.jsonl"
    before = path.read_bytes()
    again, said = rig_run("--out", "run")
    assert path.read_bytes() == before
    assert f"{len(captures)} cells are done already; 0 to go" in said
    assert again == report
