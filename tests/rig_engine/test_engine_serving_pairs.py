"""The shipped serving pairs on loopback, from the run to the figures; then the cascades' transcripts told once more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
import zstandard

from captures.capture import Capture, Condition, Ending, Mark
from captures.run_folder import RunFolder
from rig.bank.loader import load_bank

ITEMS = 2


def rig(*arguments: str, code: int = 0) -> str:
    done = subprocess.run([sys.executable, "-m", "rig", *arguments], capture_output=True, text=True, timeout=180)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def config(repo_dir: Path) -> dict[str, Any]:
    """The shipped config on two items, as fast as it goes, with differences as large as they can be."""
    loaded: dict[str, Any] = yaml.safe_load((repo_dir / "configs" / "serving-pairs-loopback.yaml").read_text())
    for target in loaded["targets"]:
        target["faults"] = [fault.partition("=")[0] + "=0" for fault in target.pop("faults", ()) if "seed" not in fault]
    return loaded | {"items": [item.id for item in load_bank("demo").items[:ITEMS]], "pace": 0}


@pytest.fixture(scope="module")
def run(config: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serving")
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    rig("run", str(folder / "config.yaml"), "--out", str(folder / "run"))
    return folder / "run"


@pytest.fixture(scope="module")
def found(run: Path) -> dict[str, Any]:
    compared: dict[str, Any] = json.loads(rig("compare", str(run), "--json"))
    return compared


def deltas(found: dict[str, Any], realtime: str) -> dict[str, Any]:
    (pair,) = [one for one in found["pairs"] if one["realtime"] == realtime]
    assert pair["refused"] is None
    assert pair["unshared"] == []
    return dict(pair["deltas"])


def test_one_agent_served_in_two_ways_shows_zero(found: dict[str, Any]) -> None:
    assert {key: delta["mean"] for key, delta in deltas(found, "same-realtime").items()} == {
        "probe_wrong": 0,
        "probe_missing": 0,
        "credit": 0,
        "acts": 0,
        "unsafe_execution": 0,
    }


def test_one_that_acts_less_in_real_time_is_found_out(found: dict[str, Any]) -> None:
    acts = deltas(found, "acts-less-realtime")["acts"]
    assert acts["second"] == 0
    assert acts["mean"] == -acts["first"] < 0
    assert deltas(found, "acts-less-realtime")["probe_wrong"]["mean"] == 0


def test_one_that_hears_less_in_real_time_is_found_out(found: dict[str, Any]) -> None:
    heard = deltas(found, "hears-less-realtime")
    assert heard["probe_wrong"]["mean"] < 0
    assert heard["credit"]["mean"] < 0
    # Without its ears it is the words-only rung, up to what another sample rate does to the words.
    assert heard["credit"]["second"] == pytest.approx(found["steps"][0]["deltas"]["credit"]["first"], abs=0.2)


def test_the_rung_with_tags_hears(found: dict[str, Any]) -> None:
    first, second = found["steps"]
    assert (first["deltas"]["probe_wrong"], second["deltas"]["probe_wrong"]) == (None, None)
    assert second["deltas"]["credit"]["mean"] > 0
    assert second["deltas"]["gain"]["mean"] == second["deltas"]["credit"]["mean"]


def captures_of(folder: Path, target: str) -> dict[tuple[object, ...], Capture]:
    return {
        (one.item_id, one.variant_id, one.condition): one
        for one in RunFolder.open(folder).read_captures()
        if one.target == target and one.finished
    }


def test_transcripts_told_once_more_lead_to_the_same_calls(run: Path, config: dict[str, Any], tmp_path: Path) -> None:
    rungs = [one for one in config["targets"] if one["name"] in ("cascade-words", "cascade-tags")]
    again = {key: config[key] for key in ("version", "bank", "items")} | {
        "targets": [one | {"name": f"again-{one['name']}"} for one in rungs]
    }
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(again))
    asked = ["replay-cascade", str(run), "--config", str(tmp_path / "again.yaml"), "--out", str(tmp_path / "again")]
    assert "several cascades have transcripts" in rig(*asked, code=2)
    assert "no target 'nobody'" in rig(*asked, "--target", "nobody", code=2)
    report = json.loads(rig(*asked, "--source", "cascade-tags", "--json"))
    for name in ("cascade-words", "cascade-tags"):
        before, after = captures_of(run, name), captures_of(tmp_path / "again", f"again-{name}")
        assert after.keys() == before.keys()
        for cell, one in after.items():
            assert [call.name for call in one.calls] == [call.name for call in before[cell].calls]
            assert one.reply_text == before[cell].reply_text
            if one.condition is not Condition.TEXT_TWIN:
                assert one.input_transcript == before[cell].input_transcript
                assert Mark.COMMIT not in one.marks
            wire = zstandard.decompress((tmp_path / "again" / str(one.cassette)).read_bytes(), 10_000_000)
            assert b"transcriber" not in wire
        target = report["targets"][f"again-{name}"]
        assert target["endings"][Ending.INFRASTRUCTURE_ERROR] == 0
        assert target["transcripts"]["word_error_rate"]["n"] == len(target["transcripts"]["rows"])
        assert target["latency"]["request_to_tool_call"] is None
    # Its frames give its captures again, though the clips were heard in another run.
    again_read = json.loads(rig("replay", str(tmp_path / "again"), "--json"))
    assert (again_read["failed"], again_read["differences"]) == ([], [])
    # A run like any other: resumed without anything to do, and compared with the one before.
    rig(*asked, "--source", "cascade-tags")
    pair = "cascade-tags=again-cascade-tags"
    changes = json.loads(rig("compare", str(run), str(tmp_path / "again"), "--pair", pair, "--json"))
    measured = changes["pairs"][0]["measures"]
    assert measured["credit, cue-bearing"]["change"]["mean"] == 0
