"""Degenerate agents on a bank, and what a report marks as met by one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from captures.capture import Capture, Condition
from rig.bank.models import Bank, BankInfo
from rig.cli.floors_command import print_floors
from rig.report.as_json import report_json
from rig.report.build import build_report
from rig.report.floor_tables import floor_tables, floors_json
from rig.report.floors import floor_report, floors_beside
from rig.report.markdown import render_markdown
from rig.report.scored import scored_runs
from rig.scoring.floors import floor_captures, floors

Measures = dict[str, dict[str, float | None]]


def means(bank: Bank) -> Measures:
    found = json.loads(json.dumps(floors_json(floor_report(bank)), allow_nan=False))
    return {
        floor: {name: one and one["mean"] for name, one in own["measures"].items()}
        for floor, own in found["floors"].items()
    }


def test_each_floor_earns_what_its_rule_earns(small_bank: Bank) -> None:
    found = means(small_bank)
    assert list(found) == [
        "always-first-tool", "always-escalate", "always-clarify", "never-acts", "random", "words-default-oracle",
        "second-tool-when-loud", "most-frequent-gold",
    ]  # fmt: skip
    oracle = found["words-default-oracle"]
    assert (oracle["credit, neutral"], oracle["credit, cue-bearing"], oracle["both right"]) == (1.0, 0.0, 0.0)
    assert (oracle["unsafe execution"], oracle["over-trigger"], oracle["balanced credit"]) == (1.0, 0.0, 0.5)
    assert oracle["probe, strict, missing"] == 0.5
    for hand_over in ("always-escalate", "always-clarify", "never-acts"):
        own = found[hand_over]
        assert (own["credit, cue-bearing"], own["unsafe execution"], own["over-trigger"]) == (0.0, 0.0, 0.0)
        assert own["probe, strict, missing"] is None
    assert found["never-acts"]["missed duty"] == 1.0
    # In this bank waiting and acting are right equally often; the control, which only waits, is no vote.
    assert found["most-frequent-gold"]["credit, neutral"] in (0.0, 1.0)
    for floor, own in found.items():
        if floor not in ("random", "second-tool-when-loud"):
            assert own["audio − twin"] == 0.0, floor


def test_floors_are_the_same_each_time_and_need_no_audio(small_bank: Bank) -> None:
    for floor in floors(small_bank)[0]:
        first, again = (floor_captures(floor, small_bank) for _ in range(2))
        assert first == again
        assert {one.condition for one in first} == set(Condition)
        assert all(call.name is not None for one in first for call in one.calls)
    (first, *_), _ = floors(small_bank)
    only = floor_captures(first, small_bank, {("alpha", "alarm")})
    assert [(one.item_id, one.variant_id) for one in only] == [("alpha", None), ("alpha", "alarm"), ("alpha", "alarm")]


def test_a_bank_without_such_standing_actions_says_so(small_bank: Bank) -> None:
    bare = replace(small_bank, info=BankInfo(standing_actions=()))
    found = floor_report(bare)
    assert set(found.what) & {"always-escalate", "always-clarify"} == set()
    assert [line.split(":")[0] for line in found.absent] == ["always-escalate", "always-clarify"]
    assert "Not on this bank: always-escalate" in floor_tables(found)[0].caption


def test_a_report_marks_what_a_floor_meets(
    write_run: Callable[..., Path], make_listener: Callable[..., list[Capture]], small_bank: Bank
) -> None:
    everything: Sequence[str] = ("alpha", "beta", "gamma", "delta")
    run = write_run(
        make_listener("ears") + make_listener("words", deaf_on=everything) + make_listener("deaf", deaf_on=everything),
        targets={
            "ears": {"role": "contestant"}, "words": {"role": "words_only"}, "deaf": {"role": "contestant"}
        },
    )  # fmt: skip
    report = build_report([run])
    assert report_json(report)["floors"] is None
    found = floors_beside(report, scored_runs([run]))
    met = {(one.target, one.measure): one for one in found.met}
    # Waiting on a calm call is what the words ask for; acting on an alarm is no floor's doing but by luck.
    assert met["ears", "credit, neutral"].floor_mean == 1.0
    assert met["deaf", "both right"].floor_mean >= met["deaf", "both right"].mean == 0.0
    assert met["deaf", "null gain"].mean == 0.0
    assert ("ears", "both right") not in met
    assert ("ears", "null gain") not in met
    with_floors = replace(report, floors=found)
    assert report_json(with_floors)["floors"]["met"]
    shown = render_markdown(with_floors)
    assert "Measures that a floor meets or beats" in shown
    assert "nan" not in json.dumps(report_json(with_floors)["floors"]).lower()


def test_the_command_prints_tables_markdown_or_json(small_bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    print_floors(str(small_bank.root), as_json=True, markdown=False)
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["bank"], found["met"]) == (1, "bank", [])
    assert found["floors"]["never-acts"]["measures"]["null gain"] is None
    print_floors(str(small_bank.root), as_json=False, markdown=True)
    assert capsys.readouterr().out.startswith("## Floors: bank")
    print_floors("demo", as_json=False, markdown=False)
    shown = capsys.readouterr().out
    assert "words-default-oracle: what the words ask for" in shown.replace("\n", " ")
