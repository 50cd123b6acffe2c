"""Credits of published records, computed by us, equal the published ones on every row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from captures.capture import Condition, Mark
from captures.latency import latencies
from captures.run_folder import RunFolder
from rig.bank.loader import load_bank
from rig.importing.records import RecordsError, import_records, import_run
from rig.scoring.cells import score_captures
from rig.scoring.digest import bank_digest
from rig.stats.bootstrap import difference, proportion
from rig.stats.measures import audio_minus_twin, credit, null_gain

ROLES = {"gem25native": "contestant", "cascadeopen": "words_only"}


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ROLES)
def test_credits_equal_the_published_ones_on_every_row(shared_dir: Path, name: str) -> None:
    records = shared_dir / "voxparity-dev" / "records" / f"{name}.jsonl"
    bank = load_bank(shared_dir / "voxparity-dev" / "items")
    cells = score_captures(import_records([records], bank, name, ROLES[name]), bank, ROLES)
    ours = {(cell.item_id, cell.variant_id, cell.condition): cell for cell in cells}
    compared = 0
    for line in records.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["cond"] == "probe":
            continue
        published = {row["variant"]: row["scores"]} if row["cond"] == "audio" else row["scores"]
        for variant, scores in published.items():
            cell = ours[row["item"], variant, Condition(row["cond"])]
            assert cell.action is not None
            assert (cell.credit, cell.passed) == (scores["credit"], scores["passed"]), (row, cell.action.reasons)
            assert cell.action.selection_credit >= cell.action.credit
            assert cell.action.first_call_credit == cell.action.credit  # no published row has two calls
            assert bool(cell.action.reasons) is not cell.action.passed
            compared += 1
    assert compared == 80


@pytest.mark.shared_data
def test_strict_probe_readings_equal_the_published_ones_and_placeholders_do_not_apply(shared_dir: Path) -> None:
    bank = load_bank(shared_dir / "voxparity-dev" / "items")
    for name, role in (("gem25native", "contestant"), ("cascadeopen", "words_only"), ("cascadeopen", "contestant")):
        records = shared_dir / "voxparity-dev" / "records" / f"{name}.jsonl"
        cells = score_captures(import_records([records], bank, name, role), bank, {name: role})
        ours = {(cell.item_id, cell.variant_id): cell for cell in cells if cell.condition is Condition.PROBE}
        assert len(ours) == 40
        for line in records.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["cond"] != "probe":
                continue
            cell = ours[row["item"], row["variant"]]
            if name == "cascadeopen":
                assert cell.probe is None
                assert cell.not_applicable
            else:
                assert cell.probe is not None
                assert cell.probe.value("strict", "wrong") == float(row["scores"]["passed"])
                assert cell.probe.gold == row["scores"]["gold"]


@pytest.mark.shared_data
def test_headline_numbers_of_the_published_systems(shared_dir: Path) -> None:
    bank = load_bank(shared_dir / "voxparity-dev" / "items")
    cells = {
        name: score_captures(
            import_records([shared_dir / "voxparity-dev" / "records" / f"{name}.jsonl"], bank, name, role), bank, ROLES
        )
        for name, role in ROLES.items()
    }
    cue_bearing = proportion(credit(cells["gem25native"], neutral=False))
    assert cue_bearing is not None
    assert (round(cue_bearing.mean, 3), cue_bearing.n, cue_bearing.items) == (0.7, 21, 20)
    gain = difference(null_gain(cells["gem25native"], cells["cascadeopen"]))
    assert gain is not None
    assert gain.lo is not None
    assert gain.hi is not None
    assert gain.p is not None
    assert (round(gain.mean, 3), round(gain.lo, 2), round(gain.hi, 2)) == (0.457, 0.22, 0.73)
    assert gain.p < 0.01
    nothing = difference(null_gain(cells["cascadeopen"], cells["cascadeopen"]))
    assert nothing is not None
    assert (nothing.mean, nothing.p) == (0.0, 1.0)
    own = difference(audio_minus_twin(cells["cascadeopen"]))
    assert own is not None
    assert own.lo is not None
    assert own.lo < 0


@pytest.mark.shared_data
def test_an_imported_run_folder_reads_back_without_marks(shared_dir: Path, tmp_path: Path) -> None:
    bank = load_bank(shared_dir / "voxparity-dev" / "items")
    records = shared_dir / "voxparity-dev" / "records" / "gem25native.jsonl"
    folder = import_run([records], bank, "gemini", "contestant", tmp_path / "run")
    captures = RunFolder.open(folder.path).read_captures()
    assert captures == import_records([records], bank, "gemini", "contestant")
    assert folder.run_json["bank"]["digest"] == bank_digest(bank)
    assert len(folder.run_json["imported"]["files"][0]["sha256"]) == 64
    assert all(not capture.marks and not latencies(capture) for capture in captures)
    assert captures[1].echoed["published_s"]["latency_s"] == 17.686
    assert Mark.COMMIT not in captures[0].marks
    with pytest.raises(RecordsError, match="role 'judge' is not one of"):
        import_records([records], bank, "gemini", "judge")
