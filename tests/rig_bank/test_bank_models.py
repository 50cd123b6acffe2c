"""What users and the scorer rely on in the models: cells' names, schemas, menus, probe options."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rig.bank.loader import load_bank
from rig.bank.models import Acceptable, Annotation, Bank, BankInfo, CueKind, Gold, Item, Param, Role, Tool, Variant

NO_CALL: dict[str, Any] = {"tool": None}


@pytest.mark.parametrize(
    ("fields", "axis", "cue_class", "kind"),
    [
        ({"emotion": "neutral"}, "delivery", "neutral", None),
        ({"emotion": "neutral", "channel": "phone"}, "delivery", "neutral", None),
        ({"emotion": "whispered"}, "delivery", "whispered", CueKind.EMOTIONAL_DELIVERY),
        ({"emotion": "sarcastic"}, "delivery", "sarcastic", CueKind.SARCASM),
        ({"emotion": "neutral", "speaker": "child"}, "speaker", "speaker:child", CueKind.SPEAKER_AGE),
        (
            {"speaker": "child", "scene": {"kind": "background", "asset": "tts:man"}},
            "scene",
            "scene:background",
            CueKind.SECOND_VOICE,
        ),
        (
            {"emotion": "urgent", "scene": {"kind": "background", "asset": "real:beds/traffic"}},
            "scene",
            "scene:background",
            CueKind.ENVIRONMENTAL_SOUND,
        ),
        ({"scene": {"kind": "dtmf", "asset": "synth:keys"}}, "scene", "scene:dtmf", CueKind.ENVIRONMENTAL_SOUND),
        ({"scene": {"kind": "slot_noise", "slot": "x"}}, "scene", "scene:slot_noise", CueKind.MASKED_WORD),
        ({"scene": {"kind": "truncation", "slot": "x"}}, "scene", "scene:truncation", CueKind.DISFLUENCY_SILENCE),
    ],
)
def test_axis_class_and_kind(fields: dict[str, Any], axis: str, cue_class: str, kind: CueKind | None) -> None:
    variant = Variant.model_validate({"variant_id": "v", "gold": NO_CALL, **fields})
    assert (variant.axis, variant.cue_class, variant.cue_kind) == (axis, cue_class, kind)
    assert variant.is_neutral == (kind is None)


@pytest.mark.shared_data
def test_cells_are_named_as_published(shared_dir: Path) -> None:
    split = json.loads((shared_dir / "voxparity-dev/split.json").read_text(encoding="utf-8"))
    published = {
        (item["id"], variant["variant_id"]): (variant["axis"], variant["cue_class"])
        for item in split["items"]
        for variant in item["variants"]
    }
    bank = load_bank(shared_dir / "voxparity-dev/items")
    ours = {(i.id, v.variant_id): (v.axis, v.cue_class) for i in bank.items for v in i.variants}
    assert ours == published


def test_annotation_overrides_the_kind_of_cue_bearing_variants(item: dict[str, Any]) -> None:
    parsed = Item.model_validate(item)
    clear, masked = parsed.variants
    annotation = Annotation.model_validate({"cue_kind": "disfluency/silence", "roles": {"ask_again": "routine-trap"}})
    bank = Bank(Path(), BankInfo(), (parsed,), {parsed.id: annotation})
    assert bank.cue_kind(parsed, masked) is CueKind.DISFLUENCY_SILENCE
    assert bank.cue_kind(parsed, clear) is None
    assert annotation.roles == {"ask_again": Role.ROUTINE_TRAP}


def test_tool_schema() -> None:
    tool = Tool(
        name="book",
        description="Book.",
        params=(
            Param(name="party", type="integer", description="Guests.", required=True, enum=(2, 4)),
            Param.model_validate({"name": "notes", "type": "array of string"}),
            Param.model_validate({"name": "at", "type": "object", "properties": {"hour": "integer"}}),
        ),
    )
    assert tool.json_schema() == {
        "type": "object",
        "properties": {
            "party": {"type": "integer", "description": "Guests.", "enum": [2, 4]},
            "notes": {"type": "array", "items": {"type": "string"}},
            "at": {"type": "object", "properties": {"hour": {"type": "integer"}}},
        },
        "required": ["party"],
    }


def test_optional_args_as_names_or_as_values() -> None:
    assert Gold.model_validate({"tool": "t", "optional_args": ["a", "b"]}).optional_args == {"a": None, "b": None}
    assert Gold.model_validate({"tool": "t", "optional_args": {"a": ["x"]}}).optional_args == {"a": ("x",)}
    with pytest.raises(ValidationError, match="no tool, so no arguments"):
        Gold.model_validate({"tool": None, "args": {"a": ["x"]}})


@pytest.mark.parametrize("credit", [0, 1, -0.1, 1.2, float("nan")])
def test_partial_credit_lies_between_0_and_1(credit: float) -> None:
    with pytest.raises(ValidationError):
        Acceptable(tool="t", credit=credit)


def test_menu_and_options_have_one_fixed_order(item: dict[str, Any]) -> None:
    parsed = Item.model_validate(item)
    bank = Bank(Path(), BankInfo(), (parsed,))
    names = [tool.name for tool in bank.menu(parsed)]
    assert names == ["ask_again", "escalate_to_human", "send_money", "ask_clarifying_question"]
    assert bank.probe_options(parsed) == ("masked by noise", "clear")


@pytest.mark.shared_data
def test_menus_of_real_items_are_pinned(shared_dir: Path) -> None:
    bank = load_bank(shared_dir / "voxparity-dev/items")
    item = bank.item("vxp-gasdrp-0001")
    assert [tool.name for tool in bank.menu(item)] == [
        "create_service_ticket",
        "dispatch_gas_crew",
        "attempt_callback",
        "escalate_to_human",
        "ask_clarifying_question",
    ]


@given(number=st.integers(0, 10_000))
def test_menu_depends_on_the_id_alone(number: int) -> None:
    def menu(scenario: str, standing: bool) -> list[str]:
        tools = [Tool(name=name, description="d") for name in ("a", "b")]
        if standing:
            tools.append(Tool(name="escalate_to_human", description="the item's own"))
        item = Item(
            id=f"i{number}",
            policy_mode="implicit",
            domain="d",
            transcript="t",
            scenario=scenario,
            tools=tuple(tools),
            variants=(Variant(variant_id="v", gold=Gold(tool=None)),),
        )
        return [tool.name for tool in Bank(Path(), BankInfo(), (item,)).menu(item)]

    assert menu("one", standing=False) == menu("two", standing=False)
    assert sorted(menu("one", standing=True)) == sorted(menu("one", standing=False))


def test_bank_looks_up(own_bank: Callable[..., Bank], item: dict[str, Any]) -> None:
    bank = own_bank(item, {"sector": "banking"})
    found = bank.item("own-0001")
    assert (bank.name, bank.version) == ("test", "3")
    assert bank.annotation(found) == Annotation(sector="banking")
    assert found.variant("masked").cue_class == "scene:slot_noise"
    assert bank.clip(found, found.variant("masked")) is None
    with pytest.raises(KeyError, match="no variant 'nope'"):
        found.variant("nope")
