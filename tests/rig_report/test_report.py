"""Reports over small runs: numbers, JSON shape, what was not measured, hostile text."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from captures.capture import Capture, Condition, Ending, ErrorInfo, LoopLag
from rig.bank.models import Bank
from rig.report.as_json import report_json
from rig.report.build import build_report
from rig.report.markdown import render_markdown
from rig.report.model import Report
from rig.report.runs import ReportError
from rig.report.terminal import print_report

WriteRun = Callable[..., Path]
MakeCaptures = Callable[..., list[Capture]]
MakeCapture = Callable[..., Capture]

TARGETS = {
    "ears": {"role": "contestant", "adapter": "openai_realtime", "embedded_agent": "local-acoustic"},
    "ears-file": {"role": "contestant", "adapter": "chat_audio", "embedded_agent": "local-acoustic"},
    "words": {"role": "words_only", "adapter": "rig_socket", "embedded_agent": "local-cascade"},
}


def on_terminal(report: Report, width: int = 200) -> str:
    out = StringIO()
    print_report(report, Console(file=out, width=width, force_terminal=False), full=True)
    return out.getvalue()


@pytest.fixture
def report(write_run: WriteRun, make_listener: MakeCaptures) -> Report:
    captures = (
        make_listener("ears", deaf_on=["delta"])
        + make_listener("ears-file")
        + make_listener("words", deaf_on=["alpha", "beta", "gamma", "delta"])
    )
    return build_report([write_run(captures, targets=TARGETS)])


def test_json_has_the_shape_that_scripts_rely_on(report: Report) -> None:
    found = json.loads(json.dumps(report_json(report), allow_nan=False))
    assert list(found["targets"]) == ["ears", "ears-file", "words"]
    ears = found["targets"]["ears"]
    estimate = {"mean", "lo", "hi", "n", "items", "method"}
    assert ears["credit"]["cue_bearing"].keys() == estimate
    assert (ears["credit"]["cue_bearing"]["mean"], ears["credit"]["cue_bearing"]["n"]) == (0.75, 4)
    assert ears["credit"]["neutral"]["mean"] == 1.0
    assert ears["credit"]["neutral"]["method"] == "Wilson on 4 items"
    assert ears["credit"]["control"]["n"] == 2
    assert ears["audio_minus_twin"]["mean"] == 0.75
    assert ears["null_gain"].keys() >= estimate | {"p", "holm_p", "family", "verdict"}
    assert (ears["null_gain"]["mean"], ears["null_gain"]["null"]) == (0.75, "words")
    assert ears["level_contrast"] is None
    assert ears["both_right"]["mean"] == 0.75
    assert ears["both_right"]["text_twin"]["mean"] == 0.0
    assert ears["probe"].keys() == {"strict_wrong", "strict_missing", "lenient_wrong", "lenient_missing"}
    assert ears["probe"]["strict_missing"]["n"] == 7
    assert ears["probe"]["strict_wrong"]["mean"] == 7 / 8
    assert ears["endings"] == {ending.value: 0 for ending in Ending} | {"called": 15, "declined": 10}
    assert ears["latency"]["commit_to_tool_call"] == {
        "p50": 0.5,
        "p90": 0.5,
        "p95": None,
        "p99": None,
        "n": 10,
        "void": 0,
        "p50_lo": None,
        "p50_hi": None,
        "p50_method": "no interval: all values are equal",
    }
    assert ears["latency"]["request_to_tool_call"] is None
    assert ears["pacing"] == {"p50_ms": 0.4, "p99_ms": 2.0, "max_ms": 3.0, "captures": 20}
    words = found["targets"]["words"]
    assert (words["probe"], words["null_gain"]) == (None, None)
    assert found["families"]["null gain"] == {"tested": ["ears", "ears-file"], "missing": []}


def test_agreement_lists_the_differing_cells(report: Report) -> None:
    (agreement,) = report.agreements
    assert (agreement.targets, agreement.agree, agreement.cells) == (("ears", "ears-file"), 23, 25)
    assert [(cell.item_id, cell.variant_id, cell.condition) for cell in agreement.differing] == [
        ("delta", "alarm", Condition.AUDIO),
        ("delta", "alarm", Condition.PROBE),
    ]
    assert agreement.differing[0].answers == {"ears": "wait {}", "ears-file": "act {}"}


def test_terminal_and_markdown_show_the_numbers_and_their_definitions(report: Report) -> None:
    shown = on_terminal(report)
    for part in (
        "0.75 [0.25, 1.00]",
        "1.00 [0.51, 1.00]",
        "Wilson, n 4",
        "+0.75 [+0.25, +1.00]",
        "commit_to_tool_call",
        "from caller speech end",
        "invariant control",
        "is the null",
        "23 of 25 cells agree",
        "n too small",
        "0.500",
        "words only: it cannot hear",
        "Void: our own lateness passed 20 ms",
        "rule version 1",
        "8 by reply text",
        "environmental sound",
    ):
        assert part in shown, part
    assert "nan" not in shown.lower()
    assert all(len(line) <= 100 for line in on_terminal(report, 100).splitlines())
    markdown = render_markdown(report)
    assert "| ears | contestant | 0.75 \\[0.25, 1.00\\] n 4 |" in markdown


def test_what_was_not_measured_is_null_and_said(write_run: WriteRun, make_capture: MakeCapture) -> None:
    refused = make_capture(
        "ears",
        "alpha",
        "calm",
        Condition.AUDIO,
        ending=Ending.CONFIGURATION_ERROR,
        finished=False,
        marks={},
        pacing=None,
        error=ErrorInfo(kind="refused", code="401", message="key rejected"),
    )
    folder = write_run(
        [refused, refused.model_copy(update={"attempt": 2})],
        not_planned=[
            {"target": "ears", "condition": "text_twin", "cells": 5, "reason": "the adapter has no text turn"}
        ],
        input_errors=["audio/x.wav: empty"],
        planned={"ears": {"audio": 10}},
    )
    report = build_report([folder])
    ears = report_json(report)["targets"]["ears"]
    for name in ("audio_minus_twin", "null_gain", "level_contrast", "both_right", "probe", "pacing"):
        assert ears[name] is None, name
    assert ears["credit"]["cue_bearing"] is None
    assert set(ears["latency"].values()) == {None}
    assert (ears["endings"]["configuration_error"], ears["attempts"], ears["retried"]) == (1, 2, 1)
    assert report.not_run == (
        "ears: 5 text_twin cells not run: the adapter has no text turn",
        "ears: 10 of 10 planned cells have no finished capture",
        "ears: configuration error in 1 cell: 401 key rejected",
        "input: audio/x.wav: empty",
    )
    shown = on_terminal(report)
    assert "key rejected" in shown
    assert "nan" not in shown.lower()


def test_a_run_without_captures_is_a_report_without_numbers(write_run: WriteRun) -> None:
    report = build_report([write_run([], targets=TARGETS)])
    assert report_json(report)["targets"]["ears"]["credit"]["neutral"] is None
    assert "nan" not in on_terminal(report).lower()


def test_void_latencies_are_counted_and_enter_no_percentile(write_run: WriteRun, make_capture: MakeCapture) -> None:
    late = make_capture("ears", "alpha", "calm", Condition.AUDIO, "wait")
    assert late.pacing is not None
    lag = LoopLag(t_ns=1_200_000_000, lag_ns=30_000_000)
    late = late.model_copy(update={"pacing": late.pacing.model_copy(update={"loop_lags": (lag,)})})
    found = report_json(build_report([write_run([late])]))["targets"]["ears"]
    assert found["latency"]["commit_to_tool_call"] == {
        "p50": None, "p90": None, "p95": None, "p99": None, "n": 0, "void": 1,
        "p50_lo": None, "p50_hi": None, "p50_method": "no valid value",
    }  # fmt: skip
    assert found["credit"]["neutral"]["mean"] == 1.0


def test_a_target_without_text_path_has_a_level_contrast(write_run: WriteRun, make_listener: MakeCaptures) -> None:
    ears = [capture for capture in make_listener("ears") if capture.condition is not Condition.TEXT_TWIN]
    words = make_listener("words", deaf_on=["alpha", "beta", "gamma", "delta"])
    found = report_json(build_report([write_run(ears + words, targets=TARGETS)]))["targets"]["ears"]
    assert (found["audio_minus_twin"], found["null_gain"]) == (None, None)
    assert (found["level_contrast"]["mean"], found["level_contrast"]["family"]) == (1.0, "level contrast")


def test_runs_are_joined_and_equal_names_told_apart(write_run: WriteRun, make_listener: MakeCaptures) -> None:
    first = write_run(make_listener("ears"), "first")
    second = write_run(make_listener("ears", deaf_on=["alpha"]), "second")
    report = build_report([first, second], nulls=["ears@second"])
    assert [target.name for target in report.targets] == ["ears@first", "ears@second"]
    gain = report.target("ears@first").null_gain
    assert gain is not None
    assert gain.estimate.mean == 0.25
    with pytest.raises(ReportError, match="no such target; there are: ears@first, ears@second"):
        build_report([first, second], nulls=["ears"])
    with pytest.raises(ReportError, match="given twice"):
        build_report([first, first])


def test_targets_whose_turns_nobody_can_commit_are_named(write_run: WriteRun, make_listener: MakeCaptures) -> None:
    targets = {
        name: {"role": "contestant", "capabilities": {"deterministic_turns": name != "duplex"}}
        for name in ("duplex", "manual")
    }
    folder = write_run([*make_listener("duplex"), *make_listener("manual")], "run", targets=targets)
    (warning,) = build_report([folder]).warnings
    assert warning.startswith("turns are not deterministic on duplex: ")


def test_a_changed_bank_is_said(write_run: WriteRun, make_listener: MakeCaptures, small_bank: Bank) -> None:
    folder = write_run(make_listener("ears"))
    path = small_bank.root / "alpha.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("A call.", "Another call."), encoding="utf-8")
    (warning,) = build_report([folder]).warnings
    assert "its bank has changed since the run" in warning
    with pytest.raises(ReportError, match="its bank 'nowhere' is not here"):
        build_report([write_run([], "other", bank={"path": "nowhere"})])


def test_only_the_last_settings_of_a_cell_count(write_run: WriteRun, make_capture: MakeCapture) -> None:
    old = make_capture("ears", "alpha", "alarm", Condition.AUDIO, "wait", identity="old")
    new = make_capture("ears", "alpha", "alarm", Condition.AUDIO, "act", identity="new")
    report = build_report([write_run([old, new])])
    estimate = report.target("ears").credit_cue_bearing
    assert estimate is not None
    assert (estimate.mean, estimate.n) == (1.0, 1)
    assert "different settings" in report.warnings[0]


def test_what_an_agent_says_can_neither_style_nor_steer_the_terminal(
    write_run: WriteRun, make_capture: MakeCapture
) -> None:
    hostile: dict[str, Any] = {"evil": "[red]\x1b[31mboo\x07[/red] \u202e|<script>"}
    captures = []
    for target in ("ears", "ears-file"):
        captured = make_capture(target, "alpha", "alarm", Condition.AUDIO, "act")
        if target == "ears":
            call = captured.calls[0].model_copy(update={"arguments": hostile, "name": "[bold]act\x1b]0;x\x07"})
            captured = captured.model_copy(update={"calls": (call,)})
        captures.append(captured)
    report = build_report([write_run(captures, targets=TARGETS)])
    shown = on_terminal(report)
    assert "[bold]act" in shown
    assert "[red]" in shown
    assert not any(ord(character) < 32 and character != "\n" for character in shown)
    assert "\u202e" not in shown
    markdown = render_markdown(report)
    assert "<script>" not in markdown.replace("\\<script\\>", "")


def test_a_report_needs_a_run() -> None:
    with pytest.raises(ReportError, match="no run given"):
        build_report([])
