"""Both spellings of a record, and what is said about records that cannot be imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from captures.capture import Condition, Ending
from rig.bank.loader import load_bank
from rig.bank.models import Bank
from rig.importing.records import RecordsError, import_records
from rig.scoring.cells import score_captures


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    item = {
        "id": "one",
        "policy_mode": "implicit",
        "domain": "test",
        "transcript": "Hello.",
        "scenario": "A call.",
        "tools": [{"name": "wait", "description": "Wait."}, {"name": "act", "description": "Act."}],
        "variants": [
            {"variant_id": "calm", "gold": {"tool": "wait"}},
            {"variant_id": "upset", "emotion": "tears", "gold": {"tool": "act"}},
        ],
        "perception_probe": {
            "question": "How?",
            "options": ["calm", "upset"],
            "gold_by_variant": {"calm": "calm", "upset": "upset"},
        },
    }
    (tmp_path / "items").mkdir()
    (tmp_path / "items" / "one.yaml").write_text(yaml.safe_dump(item), encoding="utf-8")
    return load_bank(tmp_path / "items")


def write(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def row(**fields: Any) -> dict[str, Any]:
    return {"item": "one", "variant": "calm", "cond": "audio", "calls": [], "text": "", "error": ""} | fields


def test_the_releases_own_spelling(tmp_path: Path, bank: Bank) -> None:
    release = {
        "run_id": "r",
        "item_id": "one",
        "driver": "vendor:model",
        "stimulus_sha256": "",
        "scores": {},
        "error": "",
    }
    rows = [
        release
        | {
            "variant_id": "upset",
            "condition": "audio",
            "response_text": "",
            "tool_calls": [{"tool": "act", "args": {}, "channel": "in_band"}],
            "metrics": {"latency_s": 1.5, "n_tool_calls": 1},
        },
        release | {"variant_id": "", "condition": "text_twin", "response_text": "Hm.", "tool_calls": [], "metrics": {}},
        release
        | {
            "variant_id": "upset",
            "condition": "probe",
            "response_text": "",
            "tool_calls": [],
            "scores": {"applicable": False},
            "metrics": {},
        },
    ]
    captures = import_records([write(tmp_path / "records.jsonl", *rows)], bank, "x", "contestant")
    assert [capture.ending for capture in captures] == [Ending.CALLED, Ending.DECLINED, Ending.DECLINED]
    assert captures[0].echoed == {"driver": "vendor:model", "published_s": {"latency_s": 1.5}}
    assert captures[0].marks == {}
    cells = score_captures(captures, bank, {})
    assert [cell.credit for cell in cells] == [1.0, 0.0, 0.0, None]
    assert cells[3].not_applicable


def test_a_row_with_an_error_is_counted_and_never_scored(tmp_path: Path, bank: Bank) -> None:
    (capture,) = import_records([write(tmp_path / "r.jsonl", row(error="socket closed"))], bank, "x", "contestant")
    assert (capture.ending, capture.finished) == (Ending.INFRASTRUCTURE_ERROR, False)
    assert capture.error is not None
    assert capture.error.message == "socket closed"


def test_arguments_that_are_not_an_object_are_an_unreadable_call(tmp_path: Path, bank: Bank) -> None:
    cut = '{"question": '
    rows = [row(calls=[{"tool": "wait", "args": None}]), row(calls=[{"tool": "wait", "args": cut}], repeat=1)]
    captures = import_records([write(tmp_path / "r.jsonl", *rows)], bank, "x", "contestant")
    for cell in score_captures(captures, bank, {}):
        assert cell.action is not None
        assert cell.action.reasons == ("called wait with unreadable arguments",)
    assert captures[1].calls[0].arguments_json == cut


def test_every_problem_is_named_with_file_and_line(tmp_path: Path, bank: Bank) -> None:
    path = write(
        tmp_path / "bad.jsonl",
        row(),
        "{not json",
        row(item="two"),
        row(variant="angry"),
        row(cond="whistle"),
        row(),
        {"item": "one"},
    )
    with pytest.raises(RecordsError) as caught:
        import_records([path, tmp_path / "absent.jsonl"], bank, "x", "contestant")
    lines = str(caught.value).splitlines()
    for number, part in {
        2: "not JSON",
        3: "has no item 'two'",
        4: "one has no variant 'angry'",
        5: "audio",
        6: f"a second row of the cell at {path}, line 1",
        7: "Field required",
    }.items():
        assert any(line.startswith(f"{path}, line {number}: ") and part in line for line in lines), (number, lines)
    assert any("absent.jsonl: cannot be read" in line for line in lines)


def test_no_records_at_all(tmp_path: Path, bank: Bank) -> None:
    with pytest.raises(RecordsError, match="no records"):
        import_records([write(tmp_path / "empty.jsonl")], bank, "x", "contestant")


def test_repeats_are_told_apart_by_their_number(tmp_path: Path, bank: Bank) -> None:
    path = write(tmp_path / "r.jsonl", row(), row(repeat=1))
    captures = import_records([path], bank, "x", "contestant")
    assert [capture.repeat for capture in captures] == [0, 1]
    assert captures[0].condition is Condition.AUDIO
    assert captures[0].identity != captures[1].identity


def test_an_endless_file_a_bad_name_and_a_time_that_is_no_number_are_refused(tmp_path: Path, bank: Bank) -> None:
    good = write(tmp_path / "good.jsonl", row())
    with pytest.raises(RecordsError, match="is no file"):
        import_records([Path("/dev/zero")], bank, "one", "contestant")
    with pytest.raises(RecordsError, match="name"):
        import_records([good], bank, "../x", "contestant")
    with pytest.raises(RecordsError, match=r"long.jsonl, line 1: longer than"):
        import_records([write(tmp_path / "long.jsonl", row(text="x" * 2**24))], bank, "one", "contestant")
    with pytest.raises(RecordsError, match=r"bad.jsonl, line 1.*latency_s"):
        import_records([write(tmp_path / "bad.jsonl", row(latency_s=float("nan")))], bank, "one", "contestant")
