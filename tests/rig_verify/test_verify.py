"""`rig verify`: a sound run passes; each kind of tampering is found by its own check."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CONFIG = """
version: 1
bank: bank
conditions: [audio, text_twin]
targets:
  - {name: ga, adapter: openai_realtime, model: m, embedded_agent: local-cascade}
"""


def _rig(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "rig", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=180)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, repo_dir: Path) -> Path:
    """A bank of one item, and a run of it."""
    folder = tmp_path_factory.mktemp("verify")
    shipped = repo_dir / "rig" / "bank" / "demo"
    (folder / "bank" / "items").mkdir(parents=True)
    shutil.copy(shipped / "items" / "demo-emergency-01.yaml", folder / "bank" / "items")
    shutil.copytree(shipped / "audio", folder / "bank" / "audio")
    (folder / "config.yaml").write_text(CONFIG)
    done = _rig(folder, "run", "config.yaml", "--out", "run")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "here")
    (tmp_path / "here" / "run" / "run.json").write_text(
        (made / "run" / "run.json").read_text().replace(str(made), str(tmp_path / "here"))
    )
    return tmp_path / "here"


def _verified(here: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    done = _rig(here, "verify", "run", "--json")
    found = json.loads(done.stdout)
    assert found["exit_code"] == done.returncode
    return done.returncode, {check["name"]: check for check in found["checks"]}


def _rows(here: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (here / "run" / "captures.jsonl").read_text().splitlines()]


def _write(here: Path, rows: list[dict[str, Any]]) -> None:
    (here / "run" / "captures.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_sound_run_is_verified(here: Path) -> None:
    code, checks = _verified(here)
    assert code == 0, checks
    assert {name for name, check in checks.items() if check["result"] == "passed"} >= {
        "lines",
        "items",
        "clips",
        "cassettes",
        "derivation",
        "completeness",
    }
    shown = _rig(here, "verify", "run")
    assert shown.stdout.rstrip().endswith("verified")
    assert "sha256" in shown.stdout


def _edit_answer(here: Path) -> None:
    rows = _rows(here)
    rows[0]["reply_text"] = "Something kinder."
    _write(here, rows)


def _drop_a_cell(here: Path) -> None:
    _write(here, _rows(here)[1:])


def _swap_cassettes(here: Path) -> None:
    rows = _rows(here)
    rows[0]["cassette"], rows[1]["cassette"] = rows[1]["cassette"], rows[0]["cassette"]
    _write(here, rows)


def _damage_a_cassette(here: Path) -> None:
    path = here / "run" / _rows(here)[0]["cassette"]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


def _rewrite_a_cassette(here: Path) -> None:
    import zstandard

    path = here / "run" / _rows(here)[0]["cassette"]
    lines = zstandard.ZstdDecompressor().decompress(path.read_bytes())
    path.write_bytes(zstandard.ZstdCompressor(level=9, write_checksum=True).compress(lines))


def _change_the_item(here: Path) -> None:
    path = here / "bank" / "items" / "demo-emergency-01.yaml"
    path.write_text(path.read_text().replace("scenario: >-\n", "scenario: >-\n  Be brief.\n", 1))


def _change_a_clip(here: Path) -> None:
    manifest = (here / "bank" / "audio" / "manifest.yaml").read_text()
    entry = manifest[manifest.index("item_id: demo-emergency-01") :]
    name = entry[entry.index("sha256: ") + 8 :].split()[0]
    (path,) = (here / "bank" / "audio").glob(f"{name}.*")
    path.write_bytes(path.read_bytes() + b"\0")


@pytest.mark.parametrize(
    ("tamper", "failing"),
    [
        (_edit_answer, "derivation"),
        (_drop_a_cell, "completeness"),
        (_swap_cassettes, "cassettes"),
        (_damage_a_cassette, "cassettes"),
        (_rewrite_a_cassette, "cassettes"),
        (_change_the_item, "items"),
        (_change_a_clip, "clips"),
    ],
)
def test_each_kind_of_tampering_is_found(here: Path, tamper: Callable[[Path], None], failing: str) -> None:
    tamper(here)
    code, checks = _verified(here)
    assert code == 1, checks
    assert checks[failing]["result"] == "failed"
    assert checks[failing]["findings"]


def test_what_cannot_be_checked_is_no_pass(here: Path) -> None:
    shutil.rmtree(here / "bank")
    code, checks = _verified(here)
    assert code == 2
    assert checks["items"]["result"] == checks["derivation"]["result"] == "not possible"
    assert checks["cassettes"]["result"] == "passed"


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    done = _rig(tmp_path, "verify", "nothing")
    assert done.returncode == 2
    assert "no run here" in done.stderr
