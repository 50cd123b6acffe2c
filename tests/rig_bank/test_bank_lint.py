"""Each check of the lint, on a bank that has nothing else wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rig.bank.lint import lint
from rig.bank.loader import load_bank, read_bank
from rig.bank.models import Bank

OwnBank = Callable[..., Bank]
Change = Callable[[dict[str, Any]], object]


def found_in(bank: Bank) -> list[tuple[str, str]]:
    """(level, field) of all problems but the absence of audio."""
    return [(p.level, p.field) for p in lint(bank) if p.file != "audio/manifest.yaml"]


def test_a_right_bank_has_no_problems(own_bank: OwnBank, item: dict[str, Any]) -> None:
    problems = lint(own_bank(item))
    assert [(p.level, p.message) for p in problems] == [("warning", "no clips: only text twins can run")]


def _gold(item: dict[str, Any], index: int = 0) -> dict[str, Any]:
    gold: dict[str, Any] = item["variants"][index]["gold"]
    return gold


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda i: i["variants"].pop(), "variants"),
        (lambda i: i.update(design="invariant_control"), "design"),
        (lambda i: _gold(i).update(tool="pay"), "variants[0].gold.tool"),
        (lambda i: _gold(i, 1)["acceptable"][0].update(tool="pay"), "variants[1].gold.acceptable[0].tool"),
        (lambda i: _gold(i)["args"].update(sum=[1]), "variants[0].gold.args.sum"),
        (lambda i: _gold(i).update(optional_args=["sum"]), "variants[0].gold.optional_args.sum"),
        (lambda i: _gold(i)["args"].update(amount=["900"]), "variants[0].gold.args.amount[0]"),
        (lambda i: _gold(i)["args"].update(amount=[True]), "variants[0].gold.args.amount[0]"),
        (lambda i: _gold(i)["args"].update(speed=["slow"]), "variants[0].gold.args.speed[0]"),
        (lambda i: _gold(i)["args"].update(labels=["a"]), "variants[0].gold.args.labels[0]"),
        (lambda i: _gold(i).update(args={}), "variants[0].gold.args"),
        (lambda i: _gold(i, 1)["acceptable"][0].update(tool="send_money"), "variants[1].gold.acceptable[0].tool"),
        (lambda i: i["variants"][1].update(variant_id="clear"), "variants"),
        (lambda i: i["tools"].append(i["tools"][1]), "tools"),
        (lambda i: i["tools"][0]["params"].append({"name": "amount"}), "tools[0].params"),
        (lambda i: i["perception_probe"]["gold_by_variant"].pop("masked"), "perception_probe.gold_by_variant"),
        (
            lambda i: i["perception_probe"]["gold_by_variant"].update(clear="silent"),
            "perception_probe.gold_by_variant.clear",
        ),
        (lambda i: i["perception_probe"]["options"].append("clear"), "perception_probe.options"),
        (lambda i: i["variants"][1]["scene"].update(slot="ten"), "variants[1].scene.slot"),
        (lambda i: i["variants"][1]["scene"].pop("slot"), "variants[1].scene.slot"),
        (lambda i: i["variants"][0].update(channel="phone"), "variants"),
        (lambda i: i.pop("explicit_policy"), "explicit_policy"),
    ],
)
def test_each_mistake_is_an_error_in_an_own_bank(
    own_bank: OwnBank, item: dict[str, Any], change: Change, field: str
) -> None:
    change(item)
    assert ("error", field) in found_in(own_bank(item))


def test_strict_checks_only_warn_in_an_imported_bank(own_bank: OwnBank, item: dict[str, Any]) -> None:
    _gold(item, 1)["acceptable"][0]["tool"] = "send_money"
    assert found_in(own_bank(item, origin="imported")) == [("warning", "variants[1].gold.acceptable[0].tool")]


def test_a_control_has_one_gold(own_bank: OwnBank, item: dict[str, Any]) -> None:
    item["design"] = "invariant_control"
    item["variants"][1]["gold"] = item["variants"][0]["gold"]
    assert found_in(own_bank(item)) == []


def test_array_values_are_lists_of_lists(own_bank: OwnBank, item: dict[str, Any]) -> None:
    _gold(item)["args"]["labels"] = [["a"], ["a", "b"]]
    assert found_in(own_bank(item)) == []


def test_standing_actions_count_as_tools(own_bank: OwnBank, item: dict[str, Any]) -> None:
    item["variants"][1]["gold"] = {"tool": "escalate_to_human"}
    assert found_in(own_bank(item, {"roles": {"escalate_to_human": "protect"}})) == []


def test_annotations_refer_to_what_is_there(own_bank: OwnBank, item: dict[str, Any]) -> None:
    bank = own_bank(item, {"roles": {"pay": "protect"}, "cue_kind": {"loud": "sarcasm"}})
    assert found_in(bank) == [("error", "own-0001.roles.pay"), ("error", "own-0001.cue_kind.loud")]


def test_clips_are_there_and_are_what_the_manifest_says(write_bank: Callable[..., Path], item: dict[str, Any]) -> None:
    content = "not really audio, but its hash is right"
    right = hashlib.sha256(content.encode()).hexdigest()
    wrong = "0" * 64
    entries = [{"item_id": "own-0001", "variant_id": "clear", "sha256": right}]
    files = {"a.yaml": item, f"audio/{right}.wav": content, f"audio/{wrong}.flac": content}
    one = lint(load_bank(write_bank({**files, "audio/manifest.yaml": entries})))
    assert [(p.field, p.message) for p in one] == [("own-0001/masked", "no clip for this variant")]
    entries.append({"item_id": "own-0001", "variant_id": "masked", "sha256": wrong})
    entries.append({"item_id": "own-0001", "variant_id": "gone", "sha256": "1" * 64})
    both = lint(load_bank(write_bank({**files, "audio/manifest.yaml": entries})))
    assert [(p.level, p.field) for p in both] == [("warning", "own-0001/gone"), ("error", "own-0001/masked")]
    assert "is not the file that its name says" in both[1].message


@pytest.mark.shared_data
def test_two_real_items_credit_a_siblings_gold(shared_dir: Path) -> None:
    problems = lint(load_bank(shared_dir / "voxparity-dev"))
    golds = [(p.level, p.file, p.field) for p in problems if ".gold." in p.field]
    assert golds == [
        ("warning", "items/vxp-gasdrp-0001.yaml", "variants[1].gold.acceptable[0].tool"),
        ("warning", "items/vxp-ncihc-0002.yaml", "variants[1].gold.acceptable[0].tool"),
    ]
    assert all(problem.level == "warning" for problem in problems)


@pytest.mark.parametrize(
    ("change", "level", "field"),
    [
        (lambda i: i.update(scenario="The caller is a woman."), "error", "scenario"),
        (lambda i: i.update(explicit_policy="If he is angry, ask again."), "warning", "explicit_policy"),
        (lambda i: i["tools"][1].update(name="ask_male_caller"), "error", "tools[1].name"),
        (
            lambda i: i["perception_probe"].update(options=["clear", "masked by noise", "a female voice"]),
            "error",
            "perception_probe.options[2]",
        ),
        (lambda i: i.update(transcript="Send 900 to the usual account, nine hundred."), "warning", "transcript"),
        (lambda i: i["variants"][1]["scene"].update(text="It is 12:30."), "warning", "variants[1].scene.text"),
    ],
)
def test_wording_is_checked(own_bank: OwnBank, item: dict[str, Any], change: Change, level: str, field: str) -> None:
    change(item)
    assert (level, field) in found_in(own_bank(item))


def test_words_that_only_hold_a_gendered_word_are_fine(own_bank: OwnBank, item: dict[str, Any]) -> None:
    item["scenario"] = "A human manager answers here; the ship shelters in Manchester, and theirs is the menu."
    assert found_in(own_bank(item)) == []


def test_what_a_broken_file_may_hold_is_not_missed(write_bank: Callable[..., Path], item: dict[str, Any]) -> None:
    item["variants"][1]["scene"]["slot"] = "ten"
    files = {
        "bank.yaml": {"origin": "own"},
        "items/a.yaml": item,
        "items/b.yaml": {**item, "id": "own-0002", "policy_mode": "sometimes"},
        "annotations.yaml": {"own-0001": {}, "own-0002": {}},
        "audio/manifest.yaml": [{"item_id": "own-0002", "variant_id": "clear", "sha256": "0" * 64}],
    }
    found = lint(read_bank(write_bank(files)))
    assert [
        (p.level, p.file, p.field) for p in found if p.file.startswith("items") or p.file == "annotations.yaml"
    ] == [
        ("error", "items/b.yaml", "policy_mode"),
        ("error", "items/a.yaml", "variants[1].scene.slot"),
    ]
    assert [p.field for p in found if p.file == "audio/manifest.yaml"] == ["own-0001/clear", "own-0001/masked"]


def test_the_demo_bank_has_no_errors() -> None:
    assert [str(problem) for problem in lint(load_bank("demo")) if problem.level == "error"] == []
