"""A part of a config by options: items, conditions and targets; the run folder says what was run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from captures.capture import Condition
from rig.cli.chosen import EVERYTHING, Chosen
from rig.config import ConfigError, ResolvedConfig, parse_config

ENVIRON = {"WHICH": "first"}


@pytest.fixture
def resolved() -> ResolvedConfig:
    targets = [
        {"name": name, "adapter": "rig_socket", "base_url": "ws://127.0.0.1:1"} for name in ("${WHICH}", "second")
    ]
    pairs = [{"realtime": "first", "file": "second"}]
    text = json.dumps({"version": 1, "bank": "demo", "items": ["a"], "pairs": pairs, "targets": targets})
    return parse_config(text, "c", Path(), ENVIRON)


def test_options_go_before_the_config(resolved: ResolvedConfig) -> None:
    found = Chosen(["b*"], ["probe", "audio"], ["first"]).of(resolved)
    assert found.config.items == ("b*",)
    assert found.config.conditions == (Condition.AUDIO, Condition.PROBE)
    assert [target.name for target in found.config.targets] == ["first"]
    assert parse_config(json.dumps(found.public), "c", Path(), ENVIRON).config == found.config
    assert EVERYTHING.of(resolved) == resolved


def test_every_name_that_is_not_known_is_told(resolved: ResolvedConfig) -> None:
    with pytest.raises(ConfigError) as raised:
        Chosen(["a"], ["smell"], ["third"]).of(resolved)
    assert raised.value.problems == [
        "--condition smell: not one of audio, text_twin, probe",
        "--target third: no such target; there are: first, second",
    ]
