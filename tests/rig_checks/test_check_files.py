"""The file of limits, and what is written for CI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from captures.capture import Capture
from rig.checks import written
from rig.checks.judge import Judged, Outcome
from rig.checks.limits import LimitsError, read_limits


def test_the_example_is_read(repo_dir: Path) -> None:
    limits = read_limits(repo_dir / "configs" / "checks" / "slo.yaml")
    assert limits.latency_at_most_s["speech_end_to_tool_call"].p95 == 3.0
    assert limits.needs_baseline == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version: 1", "no limit is set"),
        ("version: 2\ncredit_at_least: 0.5", "version"),
        ("version: 1\ncredit_at_lest: 0.5", "credit_at_lest: unknown key"),
        ("version: 1\ncredit_at_least: 50", "credit_at_least: Input should be less than or equal to 1"),
        ("version: 1\nlatency_at_most_s: {voice: {p95: 1}}", "no latency voice"),
        ("version: 1\nlatency_at_most_s: {commit_to_tool_call: {}}", "give a percentile"),
        ("version: 1\nlatency_at_most_s: {commit_to_tool_call: {p42: 1}}", "p42"),
        ("version: 1\ncredit_at_least: .nan", "not a number"),
        ("[1", "line"),
        ("version: 1\ncredit_at_least: true", "credit_at_least: Input should be a valid number"),
        ("version: 1\ncredit_at_least: '0.5'", "credit_at_least: Input should be a valid number"),
        ("version: 1\nlatency_at_most_s: {commit_to_tool_call: {p95: yes}}", "p95: Input should be a valid number"),
        ("[]", "must hold keys and values"),
        ("", "must hold keys and values"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(text)
    with pytest.raises(LimitsError) as raised:
        read_limits(path)
    assert str(raised.value).startswith(str(path))
    assert said in str(raised.value)


HOSTILE = "<b>|x|\x1b[31m]]>\x00"
JUDGED = [
    Judged("a", "credit ≥ 0.5", Outcome.PASS, None, "0.9"),
    Judged("a", "over-trigger ≤ 0.1", Outcome.FAIL, None, HOSTILE),
    Judged(HOSTILE, "credit ≥ 0.5", Outcome.INCONCLUSIVE, None, "0.5"),
    Judged(HOSTILE, "error rate ≤ 0.1", Outcome.UNMEASURED, None, "nothing"),
]


def test_junit_counts_and_escapes() -> None:
    root = ET.fromstring(written.junit(JUDGED, inconclusive_passes=False))
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "2",
        "skipped": "0",
    }
    assert [suite.get("name") for suite in root] == ["a", "<b>|x| [31m]]>"]
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.get("message") == "<b>|x| [31m]]>"
    lenient = ET.fromstring(written.junit(JUDGED, inconclusive_passes=True))
    assert (lenient.get("errors"), lenient.get("skipped")) == ("1", "1")


def test_markdown_keeps_its_columns() -> None:
    text = written.markdown(JUDGED, 1, HOSTILE, ["<script>"])
    assert "\x1b" not in text
    assert "\\<script\\>" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 6
    assert {row.replace("\\|", "").count("|") for row in rows} == {5}


def run_check(folder: Path, *arguments: object, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rig", "check", *map(str, arguments)],
        cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_the_command_writes_what_ci_wants(
    tmp_path: Path, make_listener: Callable[..., list[Capture]], write_run: Callable[..., Path]
) -> None:
    before = write_run(make_listener("agent"), "before")
    run = write_run(make_listener("agent", deaf_on=("alpha", "beta", "gamma", "delta")))
    limits = tmp_path / "slo.yaml"
    limits.write_text("version: 1\ncredit_at_least: 0.9\ncredit_drop_at_most: 0.1\n")
    steps = tmp_path / "steps.md"
    steps.write_text("earlier\n")
    done = run_check(
        tmp_path, run, "--config", limits, "--baseline", before, "--junit", "j.xml", "--summary", "s.md", "--json",
        GITHUB_STEP_SUMMARY=str(steps),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    checks = json.loads(done.stdout)["checks"]
    assert [one["outcome"] for one in checks] == ["fail", "inconclusive"]
    assert ET.parse(tmp_path / "j.xml").getroot().get("failures") == "1"
    assert steps.read_text() == "earlier\n" + (tmp_path / "s.md").read_text()
    passing = tmp_path / "lenient.yaml"
    passing.write_text("version: 1\ncredit_at_least: 0.3\n")
    assert run_check(tmp_path, before, "--config", passing).returncode == 0


def test_what_cannot_be_measured_is_2_and_one_line(
    tmp_path: Path, make_listener: Callable[..., list[Capture]], write_run: Callable[..., Path]
) -> None:
    run = write_run(make_listener("agent"))
    limits = tmp_path / "slo.yaml"
    limits.write_text("version: 1\ncredit_drop_at_most: 0.1\n")
    others = tmp_path / "others.yaml"
    others.write_text("version: 1\ntargets: ['agen?', nobody]\ncredit_at_least: 0.1\n")
    for arguments, said in (
        ((run, "--config", limits), "--baseline"),
        ((run, "--config", tmp_path / "none.yaml"), "none.yaml"),
        ((tmp_path / "no-run", "--config", limits, "--baseline", run), "no run here"),
        ((run, "--config", others, "--baseline", run), "no target is nobody"),
        ((run, "--config", limits, "--baseline", run, "--junit", tmp_path / "no" / "j.xml"), "cannot be written"),
    ):
        done = run_check(tmp_path, *arguments)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert line.startswith("rig: ")
        assert said in line
