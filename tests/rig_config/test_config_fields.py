"""Wrong keys and values: all of them at once, each with its place and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters import registry
from rig.config import ConfigError

Make = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"conditons": ["audio"]}, "conditons: unknown key; did you mean `conditions`?"),
        ({"zzz": 1}, "zzz: unknown key"),
        ({"limits": {"turn": 3}}, "limits.turn: unknown key; did you mean `turn_s`?"),
        ({"turn_control": {"mod": "manual"}}, "turn_control.mod: unknown key; did you mean `mode`?"),
    ],
)
def test_an_unknown_key_is_refused_with_its_neighbour(
    config_file: Any, one_target: Make, changes: dict[str, Any], said: str
) -> None:
    assert config_file.problems(one_target(**changes)) == [said]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"modell": "m"}, "targets[0].modell: unknown key; did you mean `model`?"),
        (
            {"turn_control": {"modes": "manual"}},
            "targets[0].turn_control.modes: unknown key; did you mean `mode`?",
        ),
        ({"price": {"per_minute": 1}}, "targets[0].price.per_minute: unknown key; did you mean `per_session_minute`?"),
    ],
)
def test_an_unknown_key_of_a_target(config_file: Any, changes: dict[str, Any], said: str) -> None:
    assert config_file.target_problems(**changes) == [said]


def test_every_problem_is_named_at_once(config_file: Any) -> None:
    problems = config_file.problems(
        {
            "version": 2,
            "targets": [
                {"name": "a b", "adapter": "nope", "role": "king", "concurrency": 0},
                {"name": "c", "adapter": "rig_socket", "base_url": "${NOWHERE}", "turn_control": {"mode": "loud"}},
            ],
            "repeats": 0,
        }
    )
    assert {problem.split(":")[0] for problem in problems} == {
        "version",
        "bank",
        "repeats",
        "targets[0].name",
        "targets[0].adapter",
        "targets[0].role",
        "targets[0].concurrency",
        "targets[1].base_url",
        "targets[1].turn_control.mode",
    }
    assert len(problems) == 9


def test_an_unknown_adapter_is_told_with_all_there_are(config_file: Any) -> None:
    (problem,) = config_file.target_problems(adapter="openai")
    assert all(name in problem for name in registry.names())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"targets": []}, "targets: Tuple should have at least 1 item after validation, not 0"),
        ({"targets": "agent"}, "targets: must be a list"),
        ({"targets": ["agent"]}, "targets[0]: must be a mapping"),
        ({"items": "demo-*"}, "items: must be a list"),
        ({"limits": [1]}, "limits: must be a mapping"),
        ({"items": []}, "items: Tuple should have at least 1 item after validation, not 0"),
        ({"conditions": []}, "conditions: Tuple should have at least 1 item after validation, not 0"),
        ({"conditions": ["video"]}, "conditions[0]: Input should be 'audio', 'text_twin' or 'probe'"),
        ({"pace": -1}, "pace: Input should be greater than or equal to 0"),
    ],
)
def test_wrong_kinds_and_ranges(config_file: Any, one_target: Make, changes: dict[str, Any], said: str) -> None:
    assert config_file.problems(one_target(**changes)) == [said]


def test_a_turn_mode_that_no_dialect_has(config_file: Any) -> None:
    (problem,) = config_file.target_problems(turn_control={"mode": "telepathy"})
    assert problem.startswith("targets[0].turn_control.mode: ")
    assert "manual" in problem
    assert "server_vad" in problem


@pytest.mark.parametrize("name", ["", "a b", "../up", "-x", "x" * 65, "a/b", "\x1b[31m", "a\n"])
def test_a_name_that_could_be_a_path_or_an_escape_is_refused(config_file: Any, name: str) -> None:
    (problem,) = config_file.target_problems(name=name)
    assert problem.startswith("targets[0].name: ")
    assert problem.isprintable()


def test_names_are_used_once(config_file: Any, one_target: Make) -> None:
    target = one_target()["targets"][0]
    targets = [target, target | {"name": "b"}, target, target | {"name": "b"}]
    assert config_file.problems(one_target(targets=targets)) == [
        "targets: name 'agent' is used twice",
        "targets: name 'b' is used twice",
    ]


@pytest.mark.parametrize("address", ["ws://[::1", "ws://host:99999/", "ws://user:TESTKEY-not-real-7f3a9c/"])
def test_what_is_no_address_is_said_without_repeating_it(config_file: Any, address: str) -> None:
    """A password without its @ stands where Python looks for a port."""
    said = "targets[0].base_url: is not an address; write it like ws://127.0.0.1:9876/"
    assert config_file.target_problems(base_url=address) == [said]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"embedded_agent": "local-acoustic"}, "give base_url or embedded_agent, not both"),
        ({"faults": ["drop"]}, "faults are for an embedded_agent"),
        ({"base_url": None}, "needs base_url (or base_url of an agent, or embedded_agent)"),
        ({"base_url": None, "adapter": "openai_realtime"}, "needs api_key_env: OPENAI_API_KEY"),
    ],
)
def test_fields_that_do_not_go_together(config_file: Any, changes: dict[str, Any], said: str) -> None:
    (problem,) = config_file.target_problems(**changes)
    assert problem.startswith("targets[0] (agent): ")
    assert said in problem


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["version", "bank", "items", "conditions", "limits", "turn_control", "targets", "pace", "max_cost", "other"]


@given(st.dictionaries(st.sampled_from(FIELDS), PLAIN, max_size=6), st.dictionaries(st.text(max_size=8), PLAIN))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_stands_in_it_loading_gives_a_config_or_lines(
    config_file: Any, one_target: Make, top: dict[str, Any], target: dict[str, Any]
) -> None:
    whole = one_target(**top)
    if "targets" not in top:
        whole["targets"][0] |= target
    problems = ["none"]
    try:
        config_file.load(whole)
    except ConfigError as error:
        problems = error.problems
    assert problems
    assert all(problems)
