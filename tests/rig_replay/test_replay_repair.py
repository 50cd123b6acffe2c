"""Damaged lines of a run made anew from their frames: as they were, but for what only the line held."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

AGENT = {"model": "m", "embedded_agent": "local-acoustic"}
TARGETS = [
    {"name": "realtime", "adapter": "openai_realtime", **AGENT},
    {"name": "detected", "adapter": "openai_realtime", "turn_control": {"mode": "server_vad"}, **AGENT},
    {"name": "socket", "adapter": "rig_socket", **AGENT},
    {"name": "file", "adapter": "openai_chat", **AGENT},
]
SAME = ("target", "item_id", "variant_id", "condition", "repeat", "ending", "calls", "reply_text", "reply_transcript")


def rig(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rig", *words], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    config = {
        "version": 1, "bank": "demo", "items": ["demo-betting-01"], "conditions": ["audio", "text_twin"],
        "second_turn": False, "targets": TARGETS,
    }  # fmt: skip
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    done = rig(folder, "run", "config.yaml", "--out", "run")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def lines_of(folder: Path) -> list[bytes]:
    return (folder / "run" / "captures.jsonl").read_bytes().splitlines()


def by_cell(lines: list[bytes]) -> dict[str, dict[str, Any]]:
    return {capture["identity"]: capture for capture in map(json.loads, lines)}


def damage(folder: Path, *numbers: int, whole: bool = False) -> None:
    lines = lines_of(folder)
    for number in numbers:
        lines[number] = b"\0" * 80 if whole else lines[number][:70]
    (folder / "run" / "captures.jsonl").write_bytes(b"\n".join(lines) + b"\n")


@pytest.mark.parametrize("whole", [False, True])
def test_every_line_comes_back_as_it_was(folder: Path, whole: bool) -> None:
    before = lines_of(folder)
    damage(folder, *range(len(before) - 1), whole=whole)
    stopped = rig(folder, "run", "config.yaml", "--out", "run")
    assert stopped.returncode == 2
    assert "captures.jsonl, line 1: damaged" in stopped.stderr
    assert "rig replay RUN --repair" in stopped.stderr

    done = rig(folder, "replay", "run", "--repair", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [one["line"] for one in told["repairs"]] == list(range(1, len(before)))
    assert (folder / "run" / told["kept_as"]).read_bytes().count(b"\n") == len(before)

    old, new = by_cell(before), by_cell(lines_of(folder))
    assert old.keys() == new.keys()
    for identity, capture in old.items():
        remade = new[identity]
        assert {name: remade[name] for name in SAME} == {name: capture[name] for name in SAME}
        for mark in ("first_chunk", "last_chunk", "caller_audio_end", "commit", "first_call_complete", "first_audio"):
            assert remade["marks"].get(mark) == capture["marks"].get(mark), (capture["target"], mark)
        if remade != capture:
            assert any("made anew from its frames" in warning for warning in remade["warnings"])
            assert remade["pacing"]["lateness_p50_ns"] >= 0
    assert "all equal" in (summary := rig(folder, "replay", "run").stderr) or "0 different" in summary
    again = rig(folder, "run", "config.yaml", "--out", "run")
    assert again.returncode == 0
    assert len(lines_of(folder)) == len(before)  # nothing was asked again
    assert rig(folder, "verify", "run").returncode == 0


def test_a_line_whose_frames_are_gone_is_set_aside_and_its_cell_asked_again(folder: Path) -> None:
    before = lines_of(folder)
    lost = json.loads(before[1])
    damage(folder, 1)
    (folder / "run" / lost["cassette"]).unlink()
    done = rig(folder, "replay", "run", "--repair")
    assert done.returncode == 2
    assert "line 2: set aside: none of the stored frames are its own; its cell is open again" in done.stdout
    again = rig(folder, "run", "config.yaml", "--out", "run")
    assert again.returncode == 0, again.stderr
    after = lines_of(folder)
    assert len(after) == len(before)
    assert sum(lost["identity"].encode() in line for line in after) == 1


def test_an_edited_line_is_named_and_put_right_from_its_frames(folder: Path) -> None:
    path = folder / "run" / "captures.jsonl"
    lines = lines_of(folder)
    at, capture = next((n, one) for n, one in enumerate(map(json.loads, lines)) if one["calls"])
    name = capture["calls"][0]["name"]
    lines[at] = lines[at].replace(f'"name":"{name}"'.encode(), b'"name":"something_else"')
    path.write_bytes(b"\n".join(lines) + b"\n")
    verified = rig(folder, "verify", "run")
    assert verified.returncode == 1
    assert "calls" in verified.stdout
    applied = rig(folder, "replay", "run", "--apply")
    assert applied.returncode == 0, applied.stderr
    assert json.loads(lines_of(folder)[at])["calls"][0]["name"] == name


def test_a_whole_run_needs_no_repair(folder: Path) -> None:
    before = lines_of(folder)
    done = rig(folder, "replay", "run", "--repair")
    assert (done.returncode, done.stdout) == (0, "")
    assert "0 damaged lines" in done.stderr
    assert lines_of(folder) == before
