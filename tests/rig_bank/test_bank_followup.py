"""Scripted second turns in item files, and their clips in the manifest."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from rig.bank.lint import lint
from rig.bank.loader import BankError, load_bank
from rig.bank.models import Bank

ASK = {"tool": "ask_clarifying_question", "optional_args": ["question"]}
BOOK = {"tool": "book", "args": {"people": [4]}}
ITEM: dict[str, Any] = {
    "id": "table",
    "policy_mode": "implicit",
    "domain": "restaurant",
    "transcript": "A table for four.",
    "scenario": "You take bookings.",
    "tools": [{"name": "book", "description": "Books.", "params": [{"name": "people", "type": "integer"}]}],
    "variants": [
        {"variant_id": "clear", "gold": BOOK},
        {"variant_id": "noisy", "scene": {"kind": "slot_noise", "slot": "four"}, "gold": ASK},
    ],
    "followup": {
        "trigger_tools": ["ask_clarifying_question"],
        "result": "The caller was asked.",
        "reply": "For four, I said.",
        "gold_by_variant": {"noisy": BOOK},
    },
}


def _bank(root: Path, followup: Any = ITEM["followup"], replies: tuple[dict[str, Any], ...] = ()) -> Bank:
    (root / "audio").mkdir()
    (root / "table.yaml").write_text(json.dumps(ITEM | {"followup": followup}))
    entries = []
    for entry in ({"variant_id": "clear"}, {"variant_id": "noisy"}, *replies):
        data = repr(entry).encode()
        sha256 = hashlib.sha256(data).hexdigest()
        (root / "audio" / f"{sha256}.wav").write_bytes(data)
        entries.append({"item_id": "table", "sha256": sha256, "engine": "test", **entry})
    (root / "audio" / "manifest.yaml").write_text(json.dumps(entries))
    return load_bank(root)


def test_second_turn_has_its_own_gold_where_one_is_named_and_the_variants_where_not(tmp_path: Path) -> None:
    bank = _bank(tmp_path)
    item = bank.item("table")
    assert item.followup is not None
    assert item.followup.trigger_tools == ("ask_clarifying_question",)
    assert item.second_gold(item.variant("noisy")).tool == "book"
    assert item.second_gold(item.variant("clear")) == item.variant("clear").gold
    assert lint(bank) == []


def test_clip_of_turn_two_stands_beside_that_of_turn_one(tmp_path: Path) -> None:
    bank = _bank(tmp_path, replies=({"variant_id": "noisy", "turn": 2},))
    item = bank.item("table")
    first, reply = bank.clip(item, item.variant("noisy")), bank.reply_clip(item, item.variant("noisy"))
    assert first is not None
    assert reply is not None
    assert first.sha256 != reply.sha256
    assert bank.reply_clip(item, item.variant("clear")) is None
    assert lint(bank) == []


def test_two_replies_of_one_variant_are_several_clips(tmp_path: Path) -> None:
    twice = ({"variant_id": "noisy", "turn": 2}, {"variant_id": "noisy", "turn": 2, "engine": "other"})
    with pytest.raises(BankError, match=r"table/noisy has several clips \(test, other\)"):
        _bank(tmp_path, replies=twice)


@pytest.mark.parametrize("followup", ["ask again", {"turns": [1, 2]}, {"trigger_tools": [], "result": 1}, [ASK]])
def test_followup_of_another_shape_is_warned_about_and_not_read(tmp_path: Path, followup: Any) -> None:
    bank = _bank(tmp_path, followup)
    (warning,) = bank.warnings
    assert (warning.file, warning.field, warning.level) == ("table.yaml", "followup", "warning")
    assert "not read" in warning.message
    assert bank.item("table").followup is None


def test_unknown_keys_inside_are_warned_about(tmp_path: Path) -> None:
    bank = _bank(tmp_path, ITEM["followup"] | {"mood": "patient"})
    assert [warning.field for warning in bank.warnings] == ["followup.mood"]
    assert bank.item("table").followup is not None


def test_lint_names_what_could_never_happen(tmp_path: Path) -> None:
    wrong = ITEM["followup"] | {"trigger_tools": ["shout"], "gold_by_variant": {"loud": BOOK, "noisy": {"tool": "pay"}}}
    found = {problem.field: problem.message for problem in lint(_bank(tmp_path, wrong))}
    assert "not on the menu" in found["followup.trigger_tools[0]"]
    assert found["followup.gold_by_variant.loud"] == "the item has no such variant"
    assert "'pay' is not on the menu" in found["followup.gold_by_variant.noisy.tool"]


def test_lint_finds_a_reply_that_nobody_plays_and_one_whose_file_is_gone(tmp_path: Path) -> None:
    bank = _bank(tmp_path, None, ({"variant_id": "noisy", "turn": 2},))
    assert [problem.field for problem in lint(bank)] == ["table/noisy (turn 2)"]
    item = bank.item("table")
    reply = bank.reply_clip(item, item.variant("noisy"))
    assert reply is not None
    path = bank.clip_path(reply)
    assert path is not None
    path.unlink()
    (tmp_path / "table.yaml").write_text(json.dumps(ITEM))
    (problem,) = lint(load_bank(tmp_path))
    assert problem.level == "error"
    assert problem.field == "table/noisy (turn 2)"
