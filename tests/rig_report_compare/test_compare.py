"""Two runs compared cell by cell, and many in one table."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from captures.capture import Capture, Condition, Mark
from rig.report.build import build_report
from rig.report.compare import Contrast, compare, comparison_json, comparison_tables
from rig.report.layout import plain
from rig.report.leaderboard import leaderboard, ranked
from rig.report.runs import ReportError

Listener = Callable[..., list[Capture]]
Write = Callable[..., Path]


def contrast(first: Path, second: Path, measure: str) -> Contrast:
    (pair,) = compare(first, second).pairs
    return next(one for one in pair.contrasts if one.measure == measure)


def test_differences_are_those_of_shared_cells(make_listener: Listener, write_run: Write) -> None:
    before = write_run(make_listener("agent", deaf_on=("alpha", "beta")), "before")
    captures = [one for one in make_listener("agent", deaf_on=("alpha",)) if one.item_id != "delta"]
    found = contrast(before, write_run(captures, "after"), "credit, cue-bearing")
    # alpha 0 → 0, beta 0 → 1, gamma 1 → 1; delta has no partner
    assert (found.first, found.second) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert found.change.estimate.mean == pytest.approx(1 / 3)
    assert (found.change.estimate.n, found.change.estimate.items) == (3, 3)
    assert found.change.holm_p is not None
    assert found.change.estimate.p is not None
    assert found.change.holm_p >= found.change.estimate.p


def test_the_order_of_runs_turns_the_sign(make_listener: Listener, write_run: Write) -> None:
    one = write_run(make_listener("agent", deaf_on=("alpha", "beta")), "one")
    other = write_run(make_listener("agent"), "other")
    for measure in ("credit, cue-bearing", "unsafe execution", "probe, strict, missing"):
        there, back = contrast(one, other, measure), contrast(other, one, measure)
        assert there.change.estimate.mean == -back.change.estimate.mean
        assert there.change.estimate.n == back.change.estimate.n
    assert contrast(one, other, "unsafe execution").change.estimate.mean == -0.5


def test_a_run_against_itself_differs_nowhere(make_listener: Listener, write_run: Write) -> None:
    run = write_run(make_listener("agent", deaf_on=("alpha",)))
    (pair,) = compare(run, run).pairs
    assert {one.change.estimate.mean for one in pair.contrasts} == {0.0}
    assert {one.change.estimate.lo for one in pair.contrasts} == {None}
    assert {one.change.holm_p for one in pair.contrasts} == {1.0}
    (table,) = comparison_tables(compare(run, run))
    assert all("no interval" in row[3] for row in table.rows)


def test_latencies_are_paired_too(make_listener: Listener, write_run: Write) -> None:
    before = make_listener("agent")
    after = [
        one.model_copy(update={"marks": one.marks | {Mark.FIRST_CALL_COMPLETE: 16 * 10**8}})
        if one.condition is Condition.AUDIO
        else one
        for one in before
    ]
    found = contrast(write_run(before, "before"), write_run(after, "after"), "commit_to_tool_call, s")
    assert found.change.estimate.mean == pytest.approx(0.1)
    assert found.change.estimate.n == 10


def test_who_is_paired(make_listener: Listener, write_run: Write) -> None:
    one = write_run(make_listener("one"), "first")
    other = write_run(make_listener("other"), "second")
    (pair,) = compare(one, other).pairs
    assert (pair.first, pair.second) == ("one", "other")
    both = write_run([*make_listener("x"), *make_listener("y")], "both")
    with pytest.raises(ReportError, match="--pair A=B"):
        compare(one, both)
    (named,) = compare(one, both, [("one", "y")]).pairs
    assert named.second == "y"
    with pytest.raises(ReportError, match="no target z; there are: x, y"):
        compare(one, both, [("one", "z")])
    (common,) = compare(both, write_run(make_listener("x"), "x-only")).pairs
    assert common.first == "x"
    assert any("y" in line for line in compare(both, write_run(make_listener("x"), "x-again")).warnings)


def test_nothing_shared_is_said(make_listener: Listener, write_run: Write) -> None:
    captures = make_listener("agent")
    one = write_run([capture for capture in captures if capture.item_id == "alpha"], "one")
    other = write_run([capture for capture in captures if capture.item_id == "beta"], "other")
    found = compare(one, other)
    assert found.pairs[0].contrasts == ()
    assert "credit, cue-bearing" in found.pairs[0].nothing_shared
    (table,) = comparison_tables(found)
    assert {row[3] for row in table.rows} == {"no cell in common"}
    json.dumps(comparison_json(found), allow_nan=False)


def test_the_leaderboard_ranks_by_credit(make_listener: Listener, make_capture: Any, write_run: Write) -> None:
    deaf = ("alpha", "beta", "gamma", "delta")
    mute = make_capture("mute", "alpha", "alarm", Condition.PROBE, text="an alarm")
    captures = [
        *make_listener("deaf", deaf_on=deaf),
        *make_listener("half", deaf_on=deaf[:2]),
        *make_listener("all"),
        mute,
    ]
    roles = {name: {"role": "contestant"} for name in ("half", "all", "mute")} | {"deaf": {"role": "words_only"}}
    report = build_report([write_run(captures, targets=roles)])
    assert [one.name for one in ranked(report)] == ["all", "half", "deaf", "mute"]
    table = leaderboard(report)
    assert [plain(row[0]) for row in table.rows] == ["1. all", "2. half", "3. deaf words only", "– mute"]
    assert table.rows[1][1].startswith("0.50\n[")
    assert "above" in table.rows[0][2] or "none" in table.rows[0][2]
    assert table.rows[2][2] == "–"


def test_the_commands(tmp_path: Path, make_listener: Listener, write_run: Write) -> None:
    def rig(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "rig", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    before = write_run(make_listener("agent", deaf_on=("alpha", "beta")), "before")
    after = write_run(make_listener("agent"), "after")
    compared = rig("compare", before, after, "--json")
    assert compared.returncode == 0, compared.stderr
    measures = json.loads(compared.stdout)["pairs"][0]["measures"]
    assert measures["credit, cue-bearing"]["change"]["mean"] == 0.5
    assert "agent → agent" in rig("compare", before, after).stdout
    assert "## agent → agent" in rig("compare", before, after, "--markdown").stdout
    wrong = rig("compare", before, after, "--pair", "agent")
    assert (wrong.returncode, wrong.stderr) == (
        2, "rig: --pair agent: write A=B, a target of the first run and one of the second\n"
    )  # fmt: skip
    board = rig("leaderboard", before, after, "--json")
    assert [one["target"] for one in json.loads(board.stdout)["targets"]] == ["agent@after", "agent@before"]
    assert "1. agent@after" in rig("leaderboard", before, after).stdout
