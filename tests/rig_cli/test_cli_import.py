"""Published records become runs, and runs become reports: `rig import`, `rig report`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.shared_data
ROLES = {"gem25native": "contestant", "cascadeopen": "words_only"}


@pytest.fixture(scope="module")
def imported(
    tmp_path_factory: pytest.TempPathFactory, cli_in: Callable[[Path], AbstractContextManager[Any]], shared_dir: Path
) -> Iterator[Any]:
    """A folder with both published runs."""
    data = shared_dir / "voxparity-dev"
    with cli_in(tmp_path_factory.mktemp("imported")) as cli:
        for name, role in ROLES.items():
            records = data / "records" / f"{name}.jsonl"
            done = cli("import", records, "--bank", data / "items", "--name", name, "--role", role, "--out", name)
            assert done.returncode == 0, done.stderr
            assert done.stderr.splitlines()[-1] == f"rig: imported into {name}; read it with: rig report {name}"
        yield cli


@pytest.fixture(scope="module")
def report(imported: Any) -> Any:
    done = imported("report", *ROLES, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def published(shared_dir: Path, name: str, condition: str) -> list[Any]:
    lines = (shared_dir / "voxparity-dev" / "records" / f"{name}.jsonl").read_text().splitlines()
    return [row for line in lines if (row := json.loads(line))["cond"] == condition]


@pytest.mark.parametrize("name", ROLES)
def test_the_report_counts_what_was_published(report: Any, shared_dir: Path, name: str) -> None:
    target = report["targets"][name]
    assert target["role"] == ROLES[name]
    audio = published(shared_dir, name, "audio")
    scored = [row for row in audio if row["scores"] is not None]
    counted = sum(target["credit"][kind]["n"] for kind in ("cue_bearing", "neutral"))
    assert counted == len(scored)
    credit = sum(target["credit"][kind]["mean"] * target["credit"][kind]["n"] for kind in ("cue_bearing", "neutral"))
    assert credit == pytest.approx(sum(row["scores"]["credit"] for row in scored))


def test_the_words_only_run_is_the_null(report: Any) -> None:
    assert report["null"] == "cascadeopen"
    assert report["targets"]["gem25native"]["null_gain"]["null"] == "cascadeopen"
    assert report["targets"]["cascadeopen"]["null_gain"] is None


def test_what_was_not_measured_is_null(report: Any) -> None:
    """The published runs say nothing of pacing, and the cascade cannot be asked what it heard."""
    for name in ROLES:
        assert report["targets"][name]["pacing"] is None
    assert report["targets"]["cascadeopen"]["probe"] is None


def test_markdown_and_a_named_null(imported: Any) -> None:
    done = imported("report", *ROLES, "--null", "cascadeopen", "--markdown")
    assert done.returncode == 0, done.stderr
    for name in ROLES:
        assert f"| {name} " in done.stdout
    wrong = imported.one_line("report", *ROLES, "--null", "nobody")
    assert "nobody" in wrong


def test_an_output_without_a_minus_sign_loses_none(imported: Any) -> None:
    """Such as a file on a system of another encoding."""
    done = imported("report", *ROLES, "--markdown", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    whole = imported("report", *ROLES, "--markdown", PYTHONIOENCODING="utf-8").stdout
    assert "\u2212" in whole
    assert done.stdout == whole.encode("ascii", "backslashreplace").decode()


def test_an_import_does_not_overwrite_a_run(imported: Any, shared_dir: Path) -> None:
    data = shared_dir / "voxparity-dev"
    before = (imported.folder / "gem25native" / "captures.jsonl").read_bytes()
    records = data / "records" / "cascadeopen.jsonl"
    line = imported.one_line("import", records, "--bank", data / "items", "--name", "x", "--out", "gem25native")
    assert "gem25native" in line
    assert (imported.folder / "gem25native" / "captures.jsonl").read_bytes() == before
