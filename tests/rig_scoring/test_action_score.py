"""The action score: B20 (numbers), B21 (extra arguments), B22 (unreadable calls), several calls, alternatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captures.capture import ObservedCall
from rig.bank.models import Gold, Tool
from rig.scoring.action import no_answer_score, score_action
from rig.scoring.match import fold, mismatch, values_match

MakeCall = Callable[..., ObservedCall]

AVERAGE = Tool.model_validate(
    {
        "name": "average",
        "description": "Average of numbers.",
        "params": [
            {"name": "numbers", "type": "array of number", "required": True},
            {"name": "digits", "type": "integer", "required": True},
        ],
    }
)
WEATHER = Tool.model_validate(
    {
        "name": "weather",
        "description": "Weather of a city.",
        "params": [{"name": "city", "required": True}, {"name": "unit", "enum": ["celsius", "fahrenheit"]}],
    }
)
TRANSFER = Tool.model_validate({"name": "transfer", "description": "Hand over.", "params": [{"name": "amount"}]})
ESCALATE = Tool(name="escalate", description="Hand the call over.")
MENU = (AVERAGE, WEATHER, TRANSFER, ESCALATE)


def gold(tool: str | None, **fields: Any) -> Gold:
    return Gold.model_validate({"tool": tool, **fields})


@pytest.mark.parametrize(
    ("numbers", "digits", "expected_digits", "reason"),
    [
        ([12, 15, 18], 2, 2, None),
        ([12.0, 15.5, 18.0], 2, 2, "wrong value: numbers[1] is 15.5, expected 15.0"),
        ([12, "15", 18], 2, 2, "wrong value: numbers[1] is '15', expected 15.0"),
        ([12, 15, 18], 2.5, 2, "wrong value: digits is 2.5, expected 2"),
        ([12, 15, 18], True, 1, "wrong value: digits is True, expected 1"),
        ([15, 12, 18], 2, 2, "wrong value: numbers[0] is 15, expected 12.0"),
        ([12, 15], 2, 2, "wrong value: numbers has 2 elements, expected 3"),
    ],
)
def test_b20_whole_numbers_stand_for_decimals_in_lists(
    call: MakeCall, numbers: list[Any], digits: object, expected_digits: int, reason: str | None
) -> None:
    right = gold("average", args={"numbers": [[12.0, 15.0, 18.0]], "digits": [expected_digits]})
    score = score_action([call("average", numbers=numbers, digits=digits)], right, MENU)
    assert (score.credit, score.passed) == ((1.0, True) if reason is None else (0.0, False))
    assert score.reasons == (() if reason is None else (reason,))
    assert score.selection_credit == 1.0


def test_b20_one_level_deeper(call: MakeCall) -> None:
    right = gold("average", args={"numbers": [[[12.0, 15.0], [18.0]]], "digits": [2]})
    assert score_action([call("average", numbers=[[12, 15], [18]], digits=2)], right, MENU).passed
    wrong = score_action([call("average", numbers=[[12, 15], [19]], digits=2)], right, MENU)
    assert wrong.reasons == ("wrong value: numbers[1][0] is 19, expected 18.0",)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"city": "Oslo"}, None),
        ({"city": "Oslo", "unit": "celsius"}, None),
        ({"city": "Oslo", "unit": "fahrenheit"}, "wrong value: unit is 'fahrenheit', expected 'celsius'"),
        ({"city": "Oslo", "days": 3}, "unknown parameter days"),
        ({"unit": "celsius"}, "missing required parameter city"),
        ({"city": "Oslo", "unit": None}, None),
    ],
)
def test_b21_made_up_extra_arguments(call: MakeCall, arguments: dict[str, Any], reason: str | None) -> None:
    right = gold("weather", args={"city": ["Oslo"]}, optional_args={"unit": ["celsius"]})
    score = score_action([call("weather", **arguments)], right, MENU)
    assert score.passed is (reason is None)
    assert score.reasons == (() if reason is None else (reason,))


def test_a_parameter_of_the_schema_that_the_gold_does_not_have_is_unexpected(call: MakeCall) -> None:
    right = gold("weather", args={"city": ["Oslo"]})
    assert score_action([call("weather", city="Oslo", unit="celsius")], right, MENU).reasons == (
        "unexpected parameter unit",
    )
    unscored = gold("weather", args={"city": ["Oslo"]}, optional_args=["unit"])
    assert score_action([call("weather", city="Oslo", unit="kelvin")], unscored, MENU).passed


def test_b22_an_unreadable_or_never_offered_call_is_a_wrong_call_not_no_call(call: MakeCall) -> None:
    nothing = gold(None)
    assert score_action([], nothing, MENU).passed
    cut = score_action([call("transfer", raw='{"amount": ')], nothing, MENU)
    assert (cut.credit, cut.called) == (0.0, ("transfer",))
    assert cut.reasons == ("called transfer, cut off before its arguments were whole",)
    launched = score_action([call("launch_rocket")], nothing, MENU)
    assert launched.credit == 0.0
    assert launched.reasons == ("called 'launch_rocket', which was never offered",)
    assert score_action([call(None)], nothing, MENU).reasons == ("a call without a tool's name",)
    assert score_action([call("transfer", amount="1")], nothing, MENU).reasons == ("called transfer, expected no call",)
    silent = no_answer_score()
    assert (silent.credit, silent.passed, silent.selection_credit, silent.first_call_credit) == (0.0, False, 0.0, 0.0)


def test_several_calls_earn_nothing_but_the_first_is_scored_alone(call: MakeCall) -> None:
    right = gold("weather", args={"city": ["Oslo"]})
    score = score_action([call("weather", city="oslo"), call("escalate", index=1)], right, MENU)
    assert (score.credit, score.passed, score.selection_credit, score.first_call_credit) == (0.0, False, 1.0, 1.0)
    assert score.reasons == ("2 calls made, expected 1",)
    assert score.called == ("weather", "escalate")


def test_an_acceptable_action_earns_its_credit_where_its_stated_arguments_match(call: MakeCall) -> None:
    right = gold(
        "weather",
        args={"city": ["Oslo"]},
        acceptable=[
            {"tool": "transfer", "args": {"amount": ["1"]}, "credit": 0.4},
            {"tool": "escalate", "credit": 0.7},
        ],
    )
    stated = score_action([call("transfer", amount="1", extra="free")], right, MENU)
    assert (stated.credit, stated.passed, stated.selection_credit) == (0.4, False, 0.4)
    other = score_action([call("transfer", amount="2")], right, MENU)
    assert (other.credit, other.selection_credit) == (0.0, 0.4)
    assert score_action([call("escalate")], right, MENU).credit == 0.7
    assert score_action([call("escalate", raw="{")], right, MENU).credit == 0.0
    assert score_action([call("escalate"), call("escalate", index=1)], right, MENU).credit == 0.0
    none = gold(None, acceptable=[{"tool": "escalate", "credit": 0.5}])
    assert score_action([call("escalate")], none, MENU).credit == 0.5


@pytest.mark.parametrize(
    ("value", "expected", "match"),
    [
        ("Café — Nº_1", "cafe no 1", True),
        ("ＡＢＣ", "abc", True),
        ("C++", "C", False),
        ("555-1234", "555 1234", True),
        ("Straße", "STRASSE", True),
        (True, 1, False),
        (1, True, False),
        (False, False, True),
        (1_000_000, 1_000_000.5, True),
        (1_000_000, 1_000_002, False),
        (10**400, 10**400, True),
        (10**400, 1.0, False),
        (None, None, True),
        (None, "", False),
        ({"a": 1.0, "b": ["X"]}, {"b": ["x!"], "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, 2], [2, 1], False),
        ("15", 15, False),
    ],
)
def test_values(value: object, expected: object, match: bool) -> None:
    assert values_match(value, expected) is match


def test_a_mismatch_names_its_position() -> None:
    found = mismatch({"to": {"street": "Main"}}, {"to": {"street": "High"}})
    assert found is not None
    assert (found.path, found.message) == (".to.street", "is 'Main', expected 'High'")


def test_endless_nesting_never_matches_and_never_fails() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    assert not values_match(deep, deep)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(json_values, json_values)
def test_matching_is_reflexive_and_symmetric(first: object, second: object) -> None:
    assert values_match(first, first)
    assert values_match(first, second) is values_match(second, first)


@settings(max_examples=60)
@given(st.text(max_size=20))
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)
