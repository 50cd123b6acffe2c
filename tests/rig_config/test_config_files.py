"""The config file as a file: what is no config, and where in it something is wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from captures.capture import Condition
from rig.config import MAX_CONFIG_BYTES, ConfigError, Role, load_config

GOOD = "version: 1\nbank: demo\ntargets:\n  - {name: a, adapter: rig_socket, base_url: 'ws://h/'}\n"


def test_a_short_config_has_the_documented_defaults(config_file: Any) -> None:
    resolved = config_file.load(GOOD)
    config = resolved.config
    assert resolved.folder == config_file.path.parent
    assert (config.items, config.concurrency, config.max_sessions) == (("*",), 8, 50)
    assert config.conditions == (Condition.AUDIO, Condition.TEXT_TWIN, Condition.PROBE)
    assert (config.pace, config.chunk_ms, config.repeats, config.max_cost) == (1.0, 20, 1, None)
    assert (config.turn_control.mode, config.targets[0].role) == ("manual", Role.CONTESTANT)
    assert (config.limits.turn_s, config.limits.attempts, config.limits.void_ms) == (30.0, 3, 20.0)


def test_a_byte_order_mark_is_no_part_of_the_first_key(config_file: Any) -> None:
    assert config_file.load(b"\xef\xbb\xbf" + GOOD.encode()).config.bank == "demo"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "must be a mapping with `version: 1`, `bank:` and `targets:`"),
        (b"- a\n- b\n", "must be a mapping with `version: 1`, `bank:` and `targets:`"),
        (b"\xff\xfe\x00\x01binary", "not UTF-8"),
        (b"x" * (MAX_CONFIG_BYTES + 1), f"larger than {MAX_CONFIG_BYTES} bytes"),
        (b"version: 1\n\tbank: demo\n", "(line 2)"),
        (b"version: 1\nbank: 'demo\n", "(line 3)"),
        (GOOD.encode() + b"---\nversion: 1\n", "(line 5)"),
        (GOOD.encode() + b"bank: other\n", "key 'bank' twice (line 5)"),
        (GOOD.encode() + b"items: &a [*a]\n", "(line 5)"),
        (b"a: &a [x]\nb: [*a, *a]\n", "aliases are not read (line 2)"),
        (b"a: " + b"[" * 5_000, "(line 1)"),
        (GOOD.encode() + b"x: !!python/object/apply:os.getcwd []\n", "(line 5)"),
        (GOOD.encode() + b"limits: {turn_s: .nan}\n", "not a number (line 5)"),
        (GOOD.encode() + b"limits: {void_ms: .inf}\n", "not a number (line 5)"),
        (GOOD.encode() + b"repeats: " + b"9" * 5_000 + b"\n", "(line 5)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_config_is_told_in_one_line_with_its_line_number(
    config_file: Any, content: bytes, said: str
) -> None:
    (problem,) = config_file.problems(content)
    assert said in problem


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(ConfigError) as caught:
            load_config(path, {})
        assert str(caught.value).startswith(f"{path}: cannot be read: ")


def test_an_endless_file_is_given_up_at_the_limit() -> None:
    with pytest.raises(ConfigError, match="larger than"):
        load_config(Path("/dev/zero"), {})


def test_a_pipe_is_read_like_a_file() -> None:
    """`rig run <(make-config)`."""
    reading, writing = os.pipe()
    os.write(writing, GOOD.encode())
    os.close(writing)
    try:
        assert load_config(Path(f"/dev/fd/{reading}"), {}).config.bank == "demo"
    finally:
        os.close(reading)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("{since: 2026-01-01}", "targets[0].settings.since: 2026-01-01 is read as a date; quote it"),
        ("{1: one}", "targets[0].settings: key 1 is not text; quote it"),
        ("{on: true}", "targets[0].settings: key True is not text; quote it"),
        ("{flags: !!set {a}}", "targets[0].settings.flags: "),
    ],
)
def test_what_yaml_makes_of_unquoted_words_is_named(config_file: Any, settings: str, said: str) -> None:
    """Such values could not be written down with the run."""
    (problem,) = config_file.problems(GOOD.replace("'ws://h/'", f"'ws://h/', settings: {settings}"))
    assert problem.startswith(said)
