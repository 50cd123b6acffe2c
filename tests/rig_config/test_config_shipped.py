"""Every config that ships can be used as it is: it loads, and a run of it can be planned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rig.config import ConfigError, load_config
from rig.engine.prepare import prepare

_SHIPPED = sorted((Path(__file__).resolve().parents[2] / "configs").glob("*.yaml"))
_KEY = re.compile(r"api_key_env: (\w+)|\$\{(\w+)\}")


def fake_environment(path: Path) -> dict[str, str]:
    """A value for every environment name in the file, comments included."""
    return {name: f"TESTKEY-of-{name}" for found in _KEY.findall(path.read_text()) for name in found if name}


def test_there_are_some() -> None:
    assert {path.stem for path in _SHIPPED} >= {"demo", "openai-realtime", "bring-your-own-socket", "file-mode"}


@pytest.mark.parametrize("path", _SHIPPED, ids=lambda path: path.stem)
def test_it_loads_and_can_be_planned(path: Path) -> None:
    prepared = prepare(load_config(path, fake_environment(path)))
    assert prepared.input_errors == ()
    for target in prepared.targets:
        assert prepared.plan.of(target.name)


@pytest.mark.parametrize("path", _SHIPPED, ids=lambda path: path.stem)
def test_without_its_keys_it_says_which(path: Path) -> None:
    """Or needs none, like the demo."""
    asked = set(re.findall(r"^ +api_key_env: (\w+)", path.read_text(), re.MULTILINE))
    said: set[str] = set()
    try:
        load_config(path, {})
    except ConfigError as error:
        said = {match[1] for problem in error.problems if (match := re.search(r"variable (\w+) is not set", problem))}
    assert said == asked


@pytest.mark.parametrize("mode", ["push_text", "server_vad"])
def test_a_turn_mode_that_the_adapter_lacks_is_told_with_those_it_has(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "version: 1\nbank: demo\ntargets:\n"
        f"  - {{name: a, adapter: chat_audio, model: m, base_url: 'http://h/v1', turn_control: {{mode: {mode}}}}}\n"
    )
    with pytest.raises(ConfigError) as caught:
        prepare(load_config(path, {}))
    assert str(caught.value) == f"config: targets[0] (a): chat_audio has no turn_control mode {mode}; it has manual"


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("items: ['nope-*']", "items: 'nope-*' matches no item of bank 'demo'"),
        ("max_cost: 1", "targets (a): max_cost needs its price; add `price:` to the target"),
    ],
)
def test_what_only_the_bank_or_the_prices_tell(tmp_path: Path, field: str, said: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        f"version: 1\nbank: demo\n{field}\ntargets:\n"
        "  - {name: a, adapter: openai_realtime, model: no-such-model, api_key_env: K}\n"
    )
    with pytest.raises(ConfigError, match=re.escape(said)):
        prepare(load_config(path, {"K": "TESTKEY"}))
