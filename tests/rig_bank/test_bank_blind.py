"""What blind policies earn: hand-counted credits, bounds that catch a bank with a trick, and the demo bank's own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rig.bank.blind import FEWEST_ITEMS, blind_policies, selection_credit
from rig.bank.items import Gold
from rig.bank.lint import lint
from rig.bank.loader import load_bank
from rig.bank.models import Bank

WriteBank = Callable[..., Path]


def _bank(write_bank: WriteBank, items: list[dict[str, Any]], **info: Any) -> Bank:
    files: dict[str, Any] = {f"items/{item['id']}.yaml": item for item in items}
    return load_bank(write_bank({"bank.yaml": {"origin": "own", **info}, **files}))


def _means(bank: Bank) -> dict[str, float]:
    return {policy.name: round(policy.mean, 6) for policy in blind_policies(bank)}


def _copies(item: dict[str, Any], count: int) -> list[dict[str, Any]]:
    return [{**copy.deepcopy(item), "id": f"own-{number:04}"} for number in range(count)]


def test_credit_by_name_alone() -> None:
    gold = Gold.model_validate({"tool": "pay", "acceptable": [{"tool": "ask", "credit": 0.4, "args": {"a": [1]}}]})
    assert [selection_credit(gold, name) for name in ("pay", "ask", "shout", None)] == [1.0, 0.4, 0.0, 0.0]
    assert selection_credit(Gold(tool=None), None) == 1.0


def test_each_policy_is_paid_what_a_count_by_hand_gives(write_bank: WriteBank, item: dict[str, Any]) -> None:
    """Two variants: send_money on the clear one, ask_again on the masked, where a clarifying question earns 0.7."""
    bank = _bank(write_bank, [item])
    (only,) = bank.items
    order = [tool.name for tool in bank.menu(only)]
    options = bank.probe_options(only)
    means = _means(bank)
    worth = {"send_money": 0.5, "ask_again": 0.5, "ask_clarifying_question": 0.35, "escalate_to_human": 0.0}
    for place, name in enumerate(order, start=1):
        assert means[f"always tool {place}"] == worth[name]
    assert means["always ask_clarifying_question"] == 0.35
    assert means["never a tool"] == 0.0
    assert means["the longest description"] == 0.35
    assert means["the shortest description"] == 0.5
    first, second = order[0] == "send_money", order[1]
    paid = {"ask_again": 1.0, "ask_clarifying_question": 0.7}.get(second, 0.0)
    assert means["tool 2 when not neutral, else 1"] == (first + paid) / 2
    assert means["the most frequent gold of other items"] == 0.0
    assert means["probe: the longest option"] == 0.5
    loud = (options[0] == "clear") + (options[1] == "masked by noise")
    assert means["probe: option 2 when not neutral, else 1"] == loud / 2


def test_a_gold_that_other_items_share_pays(write_bank: WriteBank, item: dict[str, Any]) -> None:
    means = _means(_bank(write_bank, _copies(item, 2)))
    assert means["the most frequent gold of other items"] == 0.5
    assert means["probe: the most frequent answer of other items"] == 0.5


def test_controls_are_left_out(write_bank: WriteBank, item: dict[str, Any]) -> None:
    control = {**copy.deepcopy(item), "id": "control", "design": "invariant_control"}
    control["variants"][1]["gold"] = control["variants"][0]["gold"]
    alone = _bank(write_bank, [item])
    assert _means(alone) == _means(_bank(write_bank, [item, control]))


def test_a_bank_of_controls_alone_has_no_policies(write_bank: WriteBank, item: dict[str, Any]) -> None:
    item["design"] = "invariant_control"
    item["variants"][1]["gold"] = item["variants"][0]["gold"]
    assert blind_policies(_bank(write_bank, [item])) == []


@pytest.mark.parametrize(("count", "errors"), [(FEWEST_ITEMS - 1, 0), (FEWEST_ITEMS, 1)])
def test_a_trick_that_pays_is_an_error_from_ten_items_on(
    write_bank: WriteBank, item: dict[str, Any], count: int, errors: int
) -> None:
    found = [p for p in lint(_bank(write_bank, _copies(item, count))) if p.field == "the shortest description"]
    assert len(found) == errors
    assert all(p.level == "error" and p.file == "items" and "0.50" in p.message for p in found)


def test_a_bank_sets_its_own_bounds(write_bank: WriteBank, item: dict[str, Any]) -> None:
    bank = _bank(write_bank, _copies(item, FEWEST_ITEMS), blind_bounds={"action": 1, "probe": 1})
    assert not any(policy.exceeds for policy in blind_policies(bank))
    assert {policy.bound for policy in blind_policies(bank)} == {1.0}


def test_no_trick_pays_on_the_demo_bank() -> None:
    policies = blind_policies(load_bank("demo"))
    assert [policy for policy in policies if policy.exceeds] == []
    assert all(policy.judged for policy in policies)


def test_the_page_has_the_figures_of_the_demo_bank(repo_dir: Path) -> None:
    page = (repo_dir / "docs" / "bank.md").read_text()
    for policy in blind_policies(load_bank("demo")):
        assert f"| {policy.name} | {policy.mean:.2f} |" in page
