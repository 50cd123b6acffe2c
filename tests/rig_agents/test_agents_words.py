"""Spoken numbers, stems, policies and arguments of the embedded agents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.dialect import ToolSpec
from rig.agents.arguments import required_arguments
from rig.agents.lexical import spoken_numbers, stem, stems
from rig.agents.policy import clauses, meant, nothing_wanted


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("four hundred and twenty dollars", [420]),
        ("two hundred pounds, please", [200]),
        ("fourteen twenty Maple", [1420]),
        ("reference four nine two bravo", [492]),
        ("six thousand five hundred", [6500]),
        ("ninety", [90]),
        ("twenty five or 30", [25, 30]),
        ("two miles off, in area seven", [2, 7]),
        ("on the first", [1]),
        ("oh no, nothing", []),
    ],
)
def test_spoken_numbers(text: str, values: list[float]) -> None:
    assert [number.value for number in spoken_numbers(text)] == values


@given(st.text(max_size=200))
@settings(max_examples=100)
def test_any_text_is_read(text: str) -> None:
    for number in spoken_numbers(text):
        assert 0 <= number.start < number.stop
    assert all(stem(word) for word in stems(text))
    clauses(text)


def test_forms_of_a_word_meet() -> None:
    assert stem("whispering") == stem("whispers") == stem("whispered")
    assert stem("sarcastically") == stem("sarcastic")
    assert stems("Repeat the amounts") & stems("repeated amount")


def test_denied_and_postponed_actions_lead_nowhere() -> None:
    text = meant("log nothing and first talk about it; do not pay, release or send - hold the order before shipping")
    assert stems("talk hold order") <= text
    assert not text & stems("log pay release send shipping")


def test_a_policy_is_taken_apart() -> None:
    found = clauses(
        "Policy: set up plans as asked. If the caller whispers, do not answer; send a patrol. Otherwise log the call."
        " Refund only if every digit was heard clearly. A routine call needs no action."
    )
    assert [bool(clause.condition) for clause in found] == [False, True, False, True, False]
    assert stem("whispers") in found[1].condition
    assert "patrol" in found[1].text
    assert found[2].otherwise
    assert found[3].only
    assert found[4].no_action
    assert clauses(None) == []


@pytest.mark.parametrize("words", ["That's fine, nothing needed on your end.", "just letting you know we are closed"])
def test_nothing_is_wanted(words: str) -> None:
    assert nothing_wanted(words)
    assert not nothing_wanted("I need a refill")


def _tool(properties: dict[str, Any], required: list[str]) -> ToolSpec:
    return ToolSpec("act", "Act.", {"type": "object", "properties": properties, "required": required})


def test_required_arguments_come_from_the_words() -> None:
    tool = _tool(
        {
            "area": {"type": "integer", "description": "Number of the anchor area."},
            "amount": {"type": "number", "description": "Pounds to pay."},
            "day": {"type": "string", "description": "Day of the week."},
            "time": {"type": "string", "description": "Time of day."},
            "address": {"type": "string", "description": "Street address."},
            "size": {"type": "string", "enum": ["small", "large"]},
            "urgent": {"type": "boolean"},
            "codes": {"type": "array", "items": {"type": "integer"}},
            "note": {"type": "string"},
        },
        ["area", "amount", "day", "time", "address", "size", "urgent", "codes"],
    )
    words = (
        "We are two miles off, in area seven. I pay ninety pounds for the large one on Saturday at eight tonight."
        " The address is forty Lake Street, apartment nine."
    )
    filled = required_arguments(tool, words)
    assert filled["area"] == 7
    assert filled["amount"] == 90
    assert filled["day"] == "saturday"
    assert filled["time"] == "eight tonight"
    assert filled["address"] == "forty Lake Street, apartment nine"
    assert filled["size"] == "large"
    assert filled["urgent"] is True
    assert len(filled["codes"]) == 1
    assert "note" not in filled


def test_odd_schemas_are_survived() -> None:
    assert required_arguments(ToolSpec("a", "A.", {}), "words") == {}
    assert required_arguments(_tool({"n": {"type": "integer"}}, ["n", "unknown"]), "no number here") == {"n": 0}
