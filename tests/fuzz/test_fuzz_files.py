"""Files that anybody may have written: banks, configs, templates, clips, cassettes, captures."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import yaml
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.template_socket.expressions import ExpressionError, expression, search
from adapters.template_socket.template import TemplateError, checked, ready_templates
from captures.cassette import CassetteError, read_cassette, write_cassette
from captures.frames import Direction, LoggedFrame
from captures.run_folder import RunFolder, RunFolderError
from captures.scrub import Scrubber
from rig.audio.reader import Clip, InputError, read_clip
from rig.bank.lint import lint
from rig.bank.loader import BankError, read_bank
from rig.config import ConfigError, load_config

FAST = settings(
    max_examples=120, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
SCALARS = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | TEXT | st.dates()
SCALARS |= st.binary(max_size=6)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | st.integers(), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def bent(whole: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(whole)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def said(error: type[Exception], call: Callable[[], object]) -> str:
    """What `call` complains of by the one exception that it may raise; empty when it does not."""
    try:
        call()
    except error as complaint:
        return str(complaint) or repr(complaint)
    return ""


LINES = st.builds(lambda value: json.dumps(value).encode(), st.dictionaries(TEXT, TEXT)) | st.binary(max_size=60)


@pytest.fixture(scope="module")
def item(repo_dir: Path) -> Any:
    return yaml.safe_load((repo_dir / "rig" / "bank" / "demo" / "items" / "demo-betting-01.yaml").read_text())


def test_an_item_bent_anywhere_is_read_or_named(item: Any, tmp_path: Path) -> None:
    spots = list(places(item))

    @FAST
    @given(st.sampled_from(spots), VALUES)
    def check(path: tuple[Any, ...], value: Any) -> None:
        (tmp_path / "item.yaml").write_text(yaml.safe_dump(bent(item, path, value), allow_unicode=True))
        bank = read_bank(tmp_path)
        lint(bank)
        assert all(problem.file for problem in bank.warnings)

    check()


@pytest.mark.parametrize("name", ["annotations.yaml", "bank.yaml", "audio/manifest.yaml", "item.yaml"])
def test_any_table_beside_an_item_is_read_or_named(item: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "audio").mkdir()
    (tmp_path / "whole.yaml").write_text(yaml.safe_dump(item))

    @FAST
    @given(VALUES | st.binary(max_size=80))
    def check(value: Any) -> None:
        content = value if isinstance(value, bytes) else yaml.safe_dump(value, allow_unicode=True).encode()
        (tmp_path / name).write_bytes(content)
        said(BankError, lambda: lint(read_bank(tmp_path)))

    check()


@pytest.mark.parametrize(
    "content",
    [
        b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c, *c]\n",
        b"a: &a {b: *a}\n",
        b"? [complex, key]\n: value\n",
        b"!!python/object/apply:os.system ['true']\n",
        b"[" * 5000,
        b"id: 1e400\n",
        b"id: .nan\n",
        b"\xff\xfe\x00i\x00d",
        b"a: 1\na: 2\n",
        b"--- 1\n--- 2\n",
    ],
)
def test_yaml_that_means_harm_is_one_problem(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "item.yaml").write_bytes(content)
    bank = read_bank(tmp_path)
    assert bank.items == ()
    assert "item.yaml" in bank.unread
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(ConfigError):
        load_config(tmp_path / "config.yaml", {})


def test_a_config_bent_anywhere_is_read_or_named(repo_dir: Path, tmp_path: Path) -> None:
    config = yaml.safe_load((repo_dir / "configs" / "demo.yaml").read_text())
    spots = list(places(config))

    @FAST
    @given(st.sampled_from(spots), VALUES)
    def check(path: tuple[Any, ...], value: Any) -> None:
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(bent(config, path, value), allow_unicode=True))
        said(ConfigError, lambda: load_config(tmp_path / "config.yaml", {"X": "value"}))

    check()


@pytest.mark.parametrize("name", ready_templates())
def test_a_template_bent_anywhere_is_read_or_named(repo_dir: Path, name: str) -> None:
    path = repo_dir / "adapters" / "template_socket" / "templates" / f"{name}.yaml"
    template = yaml.safe_load(path.read_text())
    spots = list(places(template))

    @FAST
    @given(st.sampled_from(spots[1:]), VALUES)
    def check(spot: tuple[Any, ...], value: Any) -> None:
        assert "Traceback" not in said(TemplateError, lambda: checked(bent(template, spot, value), "here"))

    check()


@FAST
@given(st.text(max_size=40), VALUES)
def test_any_expression_is_compiled_or_named_and_finds_or_not(text: str, data: Any) -> None:
    try:
        parsed = expression(text)
    except ExpressionError:
        return
    search(parsed, data)


@pytest.mark.parametrize("kind", ["WAV", "FLAC"])
def test_a_clip_bent_anywhere_is_read_or_named(tmp_path: Path, kind: str) -> None:
    made = io.BytesIO()
    soundfile.write(made, (np.sin(np.arange(4000) / 5) * 9000).astype(np.int16), 16_000, format=kind, subtype="PCM_16")
    whole = made.getvalue()
    path = tmp_path / f"clip.{kind.lower()}"

    @settings(FAST, max_examples=300)
    @given(
        st.lists(st.tuples(st.integers(0, 120) | st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=6),
        st.integers(0, len(whole)),
        st.booleans(),
    )
    def check(changes: list[tuple[int, int]], length: int, cut: bool) -> None:
        data = bytearray(whole)
        for at, value in changes:
            data[at] = value
        path.write_bytes(bytes(data[:length] if cut else data))
        read: list[Clip] = []
        told = said(InputError, lambda: read.append(read_clip(path)))
        assert "\n" not in told
        assert bool(told) != bool(read)
        assert all(0 < clip.duration_s <= 600 for clip in read)

    check()


@FAST
@given(st.binary(max_size=400))
def test_any_bytes_are_no_clip(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.wav"
    path.write_bytes(data)
    with pytest.raises(InputError):
        read_clip(path)


def test_a_cassette_bent_anywhere_is_read_or_named(tmp_path: Path) -> None:
    path, blob = tmp_path / "c.jsonl.zst", tmp_path / "c.blob.zst"
    frames = [
        LoggedFrame(1, Direction.SENT, b'{"type":"setup"}', False),
        LoggedFrame(2, Direction.RECEIVED, bytes(range(200)), True),
    ]
    write_cassette(path, blob, frames, meta={"dialect": "x"}, scrubber=Scrubber(()))
    lines = [json.loads(line) for line in zstandard.decompress(path.read_bytes()).splitlines()]
    spots = [(number, spot) for number, line in enumerate(lines) for spot in places(line)]
    plain = st.recursive(st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=3))

    @FAST
    @given(st.sampled_from(spots), plain, st.binary(max_size=30), st.booleans())
    def check(spot: tuple[int, tuple[Any, ...]], value: Any, raw: bytes, as_bytes: bool) -> None:
        told = [bent(line, spot[1], value) if number == spot[0] else line for number, line in enumerate(lines)]
        content = zstandard.compress(b"\n".join(json.dumps(line).encode() for line in told) + b"\n")
        path.write_bytes(raw if as_bytes else content)
        told = said(CassetteError, lambda: read_cassette(path))
        assert not told or "c.jsonl.zst" in told or "blob" in told

    check()


@FAST
@given(st.lists(LINES, max_size=4))
def test_any_captures_file_is_read_or_named(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    folder = tmp_path_factory.getbasetemp() / "run"
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text("{}")
    (folder / "captures.jsonl").write_bytes(b"\n".join(lines))
    told = said(RunFolderError, lambda: RunFolder.open(folder).read())
    assert not told or "captures.jsonl, line" in told
