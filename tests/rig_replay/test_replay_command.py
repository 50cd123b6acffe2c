"""`rig replay`: stored frames of several dialects through today's code, differences by field, what --apply writes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CONFIG = """
version: 1
bank: demo
items: [demo-emergency-01]
targets:
  - {name: ga, adapter: openai_realtime, model: m, embedded_agent: local-acoustic}
  - {name: gem, adapter: gemini_live, model: gemini-2.5-flash-native-audio, embedded_agent: local-acoustic}
  - name: live
    adapter: openai_live
    model: m
    embedded_agent: local-acoustic
    turn_control: {mode: server_vad}
    settings: {delegate_model: d}
  - {name: vad, adapter: xai_realtime, model: m, embedded_agent: local-acoustic, turn_control: {mode: server_vad}}
  - {name: socket, adapter: rig_socket, embedded_agent: local-acoustic}
  - {name: whole, adapter: chat_audio, model: m, embedded_agent: local-acoustic}
"""


def _rig(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "rig", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=180)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replay")
    (folder / "config.yaml").write_text(CONFIG)
    done = _rig(folder, "run", "config.yaml", "--out", "run")
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


def _rows(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "captures.jsonl").read_text().splitlines()]


def _write(run: Path, rows: list[dict[str, Any]]) -> None:
    (run / "captures.jsonl").write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))


def test_todays_code_derives_the_same(run: Path) -> None:
    done = _rig(run.parent, "replay", "run", "--json")
    told = json.loads(done.stdout)
    assert told["differences"] == []
    assert told["failed"] == []
    assert told["equal"] == told["replayed"] == len(_rows(run)) > 30
    assert done.returncode == 0


def test_what_differs_is_named_by_field_and_apply_writes_it(run: Path) -> None:
    before = _rows(run)
    number = next(n for n, row in enumerate(before) if row["target"] == "gem" and row["calls"])
    changed = json.loads(json.dumps(before))
    changed[number]["calls"][0]["name"] = "another_tool"
    changed[number]["marks"]["first_call_complete"] += 1
    _write(run, changed)
    done = _rig(run.parent, "replay", "run", "--json")
    assert done.returncode == 1
    (difference,) = json.loads(done.stdout)["differences"]
    assert difference["target"] == "gem"
    assert [one["field"] for one in difference["fields"]] == ["calls", "marks.first_call_complete"]
    assert _rows(run) == changed  # told, not written

    shown = _rig(run.parent, "replay", "run")
    assert "another_tool" in shown.stdout
    assert "1 different" in shown.stderr

    applied = _rig(run.parent, "replay", "run", "--apply")
    assert applied.returncode == 0, applied.stderr
    assert _rows(run) == before
    aside = run / "captures.before-replay-1.jsonl"
    assert [json.loads(line) for line in aside.read_text().splitlines()] == changed
    assert _rig(run.parent, "replay", "run", "--apply").returncode == 0
    assert not (run / "captures.before-replay-2.jsonl").exists()  # nothing to write


def test_a_damaged_cassette_is_named_and_the_others_are_derived(run: Path) -> None:
    rows = _rows(run)
    path = run / rows[0]["cassette"]
    path.write_bytes(path.read_bytes()[:-20])
    (run / rows[1]["cassette"]).unlink()
    done = _rig(run.parent, "replay", "run", "--json")
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert len(told["failed"]) == 2
    assert all(rows[n]["target"] in "".join(told["failed"]) for n in (0, 1))
    assert told["equal"] == len(rows) - 2


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    done = _rig(tmp_path, "replay", "nothing")
    assert done.returncode == 2
    assert "no run here" in done.stderr
