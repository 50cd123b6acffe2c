"""A folder whose results config and bank would no longer give: told by part, and refused unless told to mix."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import soundfile
import yaml

from rig.bank.loader import load_bank
from rig.config import load_config
from rig.engine import plan as planning
from rig.engine.identity_parts import identity_parts, reasons, stale
from rig.engine.prepare import Prepared, prepare

ITEMS = ("demo-clinic-01", "demo-betting-01")
Change = Callable[[Path, dict[str, Any]], None]


@pytest.fixture
def workplace(repo_dir: Path, tmp_path: Path) -> Path:
    """A bank of two items, a config beside it, and nothing run yet."""
    demo = repo_dir / "rig" / "bank" / "demo"
    bank = tmp_path / "bank"
    shutil.copytree(demo, bank, ignore=shutil.ignore_patterns("audio", "items", "recipes.yaml", "annotations.yaml"))
    (bank / "items").mkdir()
    for item in ITEMS:
        shutil.copy(demo / "items" / f"{item}.yaml", bank / "items")
    manifest = yaml.safe_load((demo / "audio" / "manifest.yaml").read_text())
    entries = [entry for entry in manifest if entry["item_id"] in ITEMS]
    (bank / "audio").mkdir()
    for entry in entries:
        shutil.copy(demo / "audio" / f"{entry['sha256']}.flac", bank / "audio")
    (bank / "audio" / "manifest.yaml").write_text(yaml.safe_dump(entries))
    write(tmp_path, config())
    return tmp_path


def config() -> dict[str, Any]:
    return {
        "version": 1, "bank": "bank", "conditions": ["text_twin", "audio"], "second_turn": False, "pace": 0,
        "targets": [{"name": "one", "adapter": "rig_socket", "embedded_agent": "local-cascade"}],
    }  # fmt: skip


def write(folder: Path, given: dict[str, Any]) -> None:
    (folder / "config.yaml").write_text(yaml.safe_dump(given))


def rig(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rig", "run", "config.yaml", "--out", "run", *words],
        cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def edit_item(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "bank" / "items" / f"{ITEMS[0]}.yaml"
    item = yaml.safe_load(path.read_text())
    change(item)
    path.write_text(yaml.safe_dump(item, allow_unicode=True))


def target(given: dict[str, Any], **more: Any) -> None:
    given["targets"][0].update(more)


def other_text(folder: Path, given: dict[str, Any]) -> None:
    edit_item(folder, lambda item: item.update(scenario=item["scenario"] + " It is Monday."))


def other_menu(folder: Path, given: dict[str, Any]) -> None:
    edit_item(folder, lambda item: item["tools"][0].update(description="Another description."))


def other_clip(folder: Path, given: dict[str, Any]) -> None:
    manifest = folder / "bank" / "audio" / "manifest.yaml"
    entries = yaml.safe_load(manifest.read_text())
    entry = next(one for one in entries if one["item_id"] == ITEMS[0] and one.get("turn", 1) == 1)
    path = folder / "bank" / "audio" / f"{entry['sha256']}.flac"
    samples, rate = soundfile.read(path, dtype="int16")
    samples[100] += 1
    soundfile.write(path, samples, rate)
    import hashlib

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.rename(path.with_name(f"{digest}.flac"))
    entry["sha256"] = digest
    entry.pop("pcm_sha256", None)
    manifest.write_text(yaml.safe_dump(entries))


def prepared(folder: Path) -> Prepared:
    return prepare(load_config(folder / "config.yaml", {}))


def parts_of(one: Prepared) -> dict[str, Any]:
    found = identity_parts(one.resolved.config, one.targets, one.plan.cells)
    return dict(json.loads(json.dumps(found)))


@pytest.mark.parametrize(
    ("change", "cells", "told"),
    [
        (other_text, 4, "the item's text (scenario, policy, transcript or question) changed"),
        (other_menu, 4, "the menu of tools changed"),
        (other_clip, 1, "the clip changed"),
        (lambda _, given: target(given, model="m2"), 7, "model none → m2"),
        (lambda _, given: target(given, settings={"input_rate_hz": 16000}), 7, "input_rate_hz 24000 → 16000"),
        (lambda _, given: given.update(turn_control={"mode": "server_vad"}), 7, "turn_control manual → server_vad"),
        (lambda _, given: given.update(chunk_ms=40), 7, "chunk_ms 20 → 40"),
        (lambda _, given: target(given, embedded_agent="local-acoustic"), 7, "embedded_agent local-cascade → local-ac"),
    ],
)  # fmt: skip
def test_each_part_makes_new_cells_and_is_named(workplace: Path, change: Change, cells: int, told: str) -> None:
    before = prepared(workplace)
    captures = [_finished(cell) for cell in before.plan.cells]
    given = config()
    change(workplace, given)
    write(workplace, given)
    after = prepared(workplace)
    found = stale(after.plan.cells, captures)
    assert len(found) == cells
    lines = reasons(parts_of(before), parts_of(after), found)
    assert all(told in line for line in lines), lines
    assert sum(int(line.split()[0]) for line in lines) == cells


def test_a_new_wire_version_makes_new_cells_and_a_new_parser_does_not(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adapters.rig_socket import DIALECT

    before = prepared(workplace)
    captures = [_finished(cell) for cell in before.plan.cells]
    monkeypatch.setattr(DIALECT, "parser_version", 99)
    assert stale(prepared(workplace).plan.cells, captures) == []
    monkeypatch.setattr(DIALECT, "wire_version", 99)
    after = prepared(workplace)
    found = stale(after.plan.cells, captures)
    assert len(found) == len(captures)
    (line,) = reasons(parts_of(before), parts_of(after), found)
    assert "wire_version 1 → 99" in line


def test_a_new_prompt_version_is_named(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = prepared(workplace)
    captures = [_finished(cell) for cell in before.plan.cells]
    old = parts_of(before)
    monkeypatch.setattr(planning, "PROMPT_VERSION", 99)
    after = prepared(workplace)
    now = parts_of(after)
    now["run"]["prompt_version"] = 99
    (line,) = reasons(old, now, stale(after.plan.cells, captures))
    assert f"prompt_version {old['run']['prompt_version']} → 99" in line


def test_an_older_folder_says_that_the_cause_cannot_be_told(workplace: Path) -> None:
    before = prepared(workplace)
    captures = [_finished(cell) for cell in before.plan.cells]
    write(workplace, config() | {"chunk_ms": 40})
    after = prepared(workplace)
    (line,) = reasons(None, parts_of(after), stale(after.plan.cells, captures))
    assert "what changed cannot be told" in line


def test_what_is_no_longer_asked_for_or_not_yet_there_is_not_stale(workplace: Path) -> None:
    captures = [_finished(cell) for cell in prepared(workplace).plan.cells]
    write(workplace, config() | {"items": [ITEMS[0]], "repeats": 2})
    assert stale(prepared(workplace).plan.cells, captures) == []


def test_a_run_on_a_stale_folder_is_refused_and_mixed_only_when_told(workplace: Path) -> None:
    done = rig(workplace)
    assert done.returncode == 0, done.stderr
    lines = (workplace / "run" / "captures.jsonl").read_bytes()
    assert rig(workplace).returncode == 0  # nothing to do, nothing stale
    other_clip(workplace, {})

    dry = rig(workplace, "--dry-run")
    assert dry.returncode == 0
    assert "1 cell of one: the clip changed: demo-" in dry.stderr
    refused = rig(workplace)
    assert refused.returncode == 2
    assert "1 cell of one: the clip changed: demo-" in refused.stderr
    assert "nothing was run" in refused.stderr
    assert "--mix" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert (workplace / "run" / "captures.jsonl").read_bytes() == lines

    mixed = rig(workplace, "--mix")
    assert mixed.returncode == 0, mixed.stderr
    assert "mixed as told: 1 cell of one: the clip changed" in mixed.stderr
    grown = (workplace / "run" / "captures.jsonl").read_bytes()
    assert grown.startswith(lines)
    assert len(grown.splitlines()) == len(lines.splitlines()) + 1
    assert "1 cells were run with different settings in this folder; the last ones count" in " ".join(
        mixed.stdout.split()
    )
    assert rig(workplace).returncode == 0  # the newest of each cell is there: nothing is stale any more


def _finished(cell: planning.Cell) -> Any:
    from captures.capture import Capture, Ending

    return Capture(
        identity=cell.identity, target=cell.target, item_id=cell.item_id, variant_id=cell.variant_id,
        condition=cell.condition, repeat=cell.repeat, attempt=1, finished=True, started_ns=1, adapter="rig_socket",
        wire_version=1, parser_version=1, ending=Ending.DECLINED,
    )  # fmt: skip


def test_the_bank_of_these_tests_is_whole(workplace: Path) -> None:
    assert [item.id for item in load_bank(workplace / "bank").items] == sorted(ITEMS)
