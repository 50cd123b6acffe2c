"""What the demo bank promises: kinds of cue, controls beside them, stated and unstated rules in balance, two turns."""

from __future__ import annotations

from collections import Counter

import pytest

from rig.bank.loader import load_bank
from rig.bank.models import Bank, CueKind, Grounding, Item, Role, Variant
from rig.bank.words import Severity
from rig.scoring.roles import item_roles

_FEELINGS = {CueKind.EMOTIONAL_DELIVERY, CueKind.SARCASM}


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank("demo")


def _cued(bank: Bank) -> list[tuple[Item, Variant, CueKind]]:
    found = [(item, variant, bank.cue_kind(item, variant)) for item in bank.items for variant in item.variants]
    return [(item, variant, kind) for item, variant, kind in found if kind is not None]


def test_size_and_sectors(bank: Bank) -> None:
    assert len(bank.items) >= 28
    assert sum(len(item.variants) for item in bank.items) >= 64
    assert len({annotation.sector for annotation in bank.annotations.values()}) >= 14


def test_three_items_for_every_kind_of_cue(bank: Bank) -> None:
    items = Counter(kind for _, kind in {(item.id, kind) for item, _, kind in _cued(bank) if not item.is_control})
    assert {kind: items[kind] >= 3 for kind in CueKind} == dict.fromkeys(CueKind, True)


def test_stated_and_unstated_rules_are_in_balance(bank: Bank) -> None:
    for feelings in (True, False):
        items = {item.id: item for item, _, kind in _cued(bank) if (kind in _FEELINGS) == feelings}
        stated = sum(item.policy_mode == "explicit" for item in items.values())
        assert abs(2 * stated - len(items)) <= 2


def test_sounds_that_change_nothing_stand_beside_those_that_do(bank: Bank) -> None:
    clean = Counter(
        kind
        for item, variant, kind in _cued(bank)
        if not item.is_control and item_roles(bank, item).of(variant.gold) is Role.PROCEED
    )
    kinds = {CueKind.EMOTIONAL_DELIVERY, CueKind.SECOND_VOICE, CueKind.ENVIRONMENTAL_SOUND, CueKind.MASKED_WORD}
    assert kinds <= set(clean)


def test_golds_of_every_sort(bank: Bank) -> None:
    golds = [variant.gold for item in bank.items for variant in item.variants]
    assert sum(gold.tool is None for gold in golds) >= 3
    values = [values for gold in golds for values in gold.args.values()]
    assert {int, float, bool, str} <= {type(value) for some in values for value in some}
    assert any(len(some) > 1 for some in values)


def test_one_item_in_five_goes_on(bank: Bank) -> None:
    assert 5 * sum(item.followup is not None for item in bank.items) >= len(bank.items)


def test_words_are_few_and_the_same_for_all(bank: Bank) -> None:
    for item in bank.items:
        assert 6 <= len(item.transcript.replace("-", " ").split()) <= 25, item.id


def test_every_gold_says_what_it_rests_on(bank: Bank) -> None:
    for item in bank.items:
        annotation = bank.annotation(item)
        assert annotation is not None
        assert annotation.grounding is not None
        assert annotation.severity in set(Severity)
        assert (annotation.citation is None) == (annotation.grounding is Grounding.PRACTICE), item.id
        assert all(variant.gold.rationale for variant in item.variants)
