"""Environment values: filled in where they are used, collected for scrubbing, and in nothing that is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from captures.run_folder import RunFolder
from captures.scrub import MASK, Scrubber
from rig.config import ResolvedConfig, load_config

KEY, TOKEN, WORD = "TESTKEY-not-real-7f3a9c", "TESTTOKEN-not-real-81d2e4", "TESTWORD-not-real-5b06aa"
ENVIRON = {"MY_KEY": KEY, "MY_TOKEN": TOKEN, "MY_WORD": WORD}


def test_a_key_comes_by_name(config_file: Any) -> None:
    resolved = config_file.with_target(ENVIRON, api_key_env="MY_KEY")
    assert resolved.keys == {"agent": {"MY_KEY": KEY}}
    assert resolved.secret_names == ("MY_KEY",)
    assert KEY in resolved.secrets


def test_a_pool_of_keys_keeps_its_order_and_no_name_twice(config_file: Any) -> None:
    environ = {"A": "key-of-a", "B": "key-of-b", "C": "key-of-c"}
    resolved = config_file.with_target(environ, api_key_env="B", api_key_envs=["A", "B", "C"])
    assert list(resolved.keys["agent"].items()) == [("B", "key-of-b"), ("A", "key-of-a"), ("C", "key-of-c")]


@pytest.mark.parametrize("environ", [{}, {"MY_KEY": ""}], ids=["missing", "empty"])
def test_a_key_that_is_not_set(config_file: Any, environ: dict[str, str]) -> None:
    said = "targets[0] (agent): environment variable MY_KEY is not set; export its value"
    assert config_file.target_problems(environ, api_key_env="MY_KEY") == [said]


def test_every_missing_variable_is_named_at_once(config_file: Any) -> None:
    problems = config_file.target_problems(
        {"C": "key-of-c"},
        api_key_envs=["A", "B", "C"],
        base_url="ws://127.0.0.1/?token=${D}",
        settings={"headers": {"X": "Bearer ${E}"}},
    )
    assert problems == [
        "targets[0].base_url: environment variable D is not set; export its value",
        "targets[0].settings.headers.X: environment variable E is not set; export its value",
        "targets[0] (agent): environment variable A is not set; export its value",
        "targets[0] (agent): environment variable B is not set; export its value",
    ]


def test_references_in_headers_and_addresses_are_filled_in(config_file: Any) -> None:
    resolved = config_file.with_target(
        ENVIRON,
        base_url="wss://${MY_WORD}@agent.example/v1?token=${MY_TOKEN}&model=m",
        settings={"headers": {"Authorization": "Bearer ${MY_KEY}", "X": ["${MY_WORD}", 5]}},
    )
    (target,) = resolved.config.targets
    assert target.base_url == f"wss://{WORD}@agent.example/v1?token={TOKEN}&model=m"
    assert target.settings["headers"] == {"Authorization": f"Bearer {KEY}", "X": [WORD, 5]}
    assert resolved.secret_names == ("MY_KEY", "MY_TOKEN", "MY_WORD")


def test_what_is_written_is_the_config_as_it_was(config_file: Any) -> None:
    """`public` and the printed form hold names, never values."""
    resolved = config_file.with_target(
        ENVIRON,
        api_key_env="MY_KEY",
        base_url="ws://127.0.0.1/?token=${MY_TOKEN}",
        settings={"headers": {"X": "${MY_WORD}"}},
    )
    assert resolved.public["targets"][0]["base_url"] == "ws://127.0.0.1/?token=${MY_TOKEN}"
    for value in ENVIRON.values():
        assert value not in json.dumps(resolved.public)


@pytest.mark.parametrize("value", ["${}", "$MY_KEY", "${1X}", "${MY_KEY", "$${", "{MY_KEY}"])
def test_what_is_no_reference_stays(config_file: Any, value: str) -> None:
    resolved = config_file.with_target(ENVIRON, settings={"voice": value})
    assert resolved.config.targets[0].settings["voice"] == value
    assert resolved.secret_names == ()


def test_a_value_is_not_read_as_a_reference_again(config_file: Any) -> None:
    resolved = config_file.with_target({"A": "${B}", "B": KEY}, settings={"voice": "${A}"})
    assert resolved.config.targets[0].settings["voice"] == "${B}"


def literal_secrets(config_file: Any) -> ResolvedConfig:
    """A config whose secrets stand in it as they are, against all advice."""
    resolved: ResolvedConfig = config_file.with_target(
        base_url=f"wss://me:{WORD}@agent.example/v1?token={TOKEN}&model=gpt-realtime-2.1",
        settings={"headers": {"Authorization": f"Bearer {KEY}"}},
    )
    return resolved


def test_secrets_are_known_by_where_they_stand(config_file: Any) -> None:
    secrets = literal_secrets(config_file).secrets
    assert {WORD, TOKEN, f"Bearer {KEY}"} <= secrets
    assert "gpt-realtime-2.1" not in secrets


def test_percent_encoded_secrets_are_known_in_both_spellings(config_file: Any) -> None:
    resolved = config_file.with_target(base_url="wss://me:pass%2Fword-not-real@agent.example/?token=a%2Fb-not-real")
    scrub = Scrubber(resolved.secrets).mask
    for spelt in ("pass%2Fword-not-real", "pass/word-not-real", "a%2Fb-not-real", "a/b-not-real"):
        assert "not-real" not in scrub(f"seen: {spelt}"), spelt


def test_a_run_folder_holds_no_literal_secret(config_file: Any, tmp_path: Path) -> None:
    resolved = literal_secrets(config_file)
    RunFolder.create(tmp_path / "run", {"config": resolved.public}, Scrubber(resolved.secrets))
    written = (tmp_path / "run" / "run.json").read_text()
    assert MASK in written
    assert "agent.example/v1" in written
    for secret in (KEY, TOKEN, WORD):
        assert secret not in written


def test_no_printed_form_holds_a_key(config_file: Any) -> None:
    assert KEY not in repr(config_file.with_target(ENVIRON, api_key_env="MY_KEY"))


@pytest.mark.parametrize("field", ["adapter", "name", "role"])
def test_no_problem_repeats_an_environment_value(config_file: Any, field: str) -> None:
    problems = config_file.target_problems(ENVIRON, **{field: "${MY_KEY} "})
    assert any(problem.startswith(f"targets[0].{field}: ") for problem in problems)
    for problem in problems:
        assert "TESTKEY" not in problem


UNFIT = ["TESTKEY\n", "TESTKEY\r\nX-Other: 1", " TESTKEY", "TESTKEY ", "“TESTKEY”", "TEST\x00KEY"]


@pytest.mark.parametrize("value", UNFIT)
@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"api_key_env": "K"}, "targets[0] (agent): environment variable K "),
        ({"settings": {"headers": {"X": "Bearer ${K}"}}}, "targets[0].settings.headers.X: "),
        ({"base_url": "ws://127.0.0.1/?t=${K}"}, "targets[0].base_url: "),
    ],
    ids=["key", "header", "address"],
)
def test_a_value_that_no_header_can_carry_is_named_before_any_connection(
    config_file: Any, value: str, changes: dict[str, Any], place: str
) -> None:
    if value.startswith(" ") and "api_key_env" not in changes:
        return  # inside a header or an address an outer space is none
    (problem,) = config_file.target_problems({"K": value}, **changes)
    assert problem.startswith(f"{place}holds a line break")
    assert "TESTKEY" not in problem


def test_the_environment_of_the_process_is_the_default(
    config_file: Any, one_target: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_BANK", "demo")
    config_file.load(one_target(bank="${MY_BANK}"), {"MY_BANK": "elsewhere"})
    assert load_config(config_file.path).config.bank == "demo"


def test_a_stage_of_a_target_has_secrets_too(config_file: Any) -> None:
    inner = {
        "api_key": "${MY_WORD}",
        "base_url": "https://u:pass-word-1@h/v1",
        "headers": {"Authorization": "Bearer t0ken"},
    }
    resolved = config_file.with_target(ENVIRON, adapter="rig_socket", settings={"transcriber": {"settings": inner}})
    assert {WORD, "pass-word-1", "t0ken"} <= resolved.secrets
