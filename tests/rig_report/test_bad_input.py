"""Reports on whatever was left of a run: never a crash, a NaN, or an interval of no width."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from captures.capture import Capture, Condition, Ending
from rig.report.as_json import report_json
from rig.report.build import build_report
from rig.report.leaderboard import leaderboard
from rig.report.markdown import render_markdown
from rig.report.runs import ReportError
from rig.scoring.cells import BankMismatchError

WriteRun = Callable[..., Path]
MakeCapture = Callable[..., Capture]

BOUNDS = (("lo", "hi"), ("lo90", "hi90"), ("p50_lo", "p50_hi"), ("rho_lo", "rho_hi"))


def without_width(found: Any, path: str = "") -> Iterator[str]:
    """Where an interval has no width."""
    if isinstance(found, dict):
        for low, high in BOUNDS:
            if found.get(low) is not None and found[low] == found.get(high):
                yield f"{path}.{low}"
        for name, value in found.items():
            yield from without_width(value, f"{path}.{name}")
    elif isinstance(found, list):
        for index, value in enumerate(found):
            yield from without_width(value, f"{path}[{index}]")


@pytest.mark.parametrize("seed", range(16))
def test_remains_of_runs(seed: int, write_run: WriteRun, make_capture: MakeCapture) -> None:
    draw = random.Random(seed)
    items = draw.sample(("alpha", "beta", "gamma", "delta", "control"), draw.randint(1, 5))
    kept, alike = draw.choice((1.0, 0.7, 0.3)), draw.choice((None, None, "wait", "act"))
    roles = {name: {"role": draw.choice(("contestant", "contestant", "words_only"))} for name in ("a", "b", "c", "d")}
    captures = []
    for name in roles:
        for item in items:
            for condition in Condition:
                for variant in (None,) if condition is Condition.TEXT_TWIN else ("calm", "alarm"):
                    for repeat in range(draw.randint(0, 2)):
                        more: dict[str, Any] = {
                            "repeat": repeat,
                            "identity": f"{name}{item}{variant}{condition}{repeat}",
                        }
                        if draw.random() < 0.1:
                            more["ending"] = draw.choice(list(Ending))
                        text = draw.choice(("nothing", "an alarm", "hm", ""))
                        tool = alike or draw.choice(("wait", "act", "launch", None))
                        probe = condition is Condition.PROBE
                        if draw.random() < kept:
                            made = make_capture(name, item, variant, condition, None if probe else tool, text, **more)
                            captures.append(made)
    report = build_report([write_run(captures, targets=roles)])
    found = report_json(report)
    json.dumps(found, allow_nan=False)
    assert list(without_width(found)) == []
    told = render_markdown(report) + " ".join(cell for row in leaderboard(report).rows for cell in row)
    assert not re.search(r"\b(nan|inf)\b", told.lower())


def test_runs_over_other_banks_or_other_versions_of_items_are_refused_in_words(
    write_run: WriteRun, make_capture: MakeCapture
) -> None:
    one = make_capture("a", "alpha", "calm", Condition.AUDIO, "wait")
    first = write_run([one], "first")
    described = json.loads((first / "run.json").read_text(encoding="utf-8"))
    changed = write_run([one], "second", bank=described["bank"] | {"digest": "0" * 64})
    with pytest.raises(ReportError, match="different banks"):
        build_report([first, changed])
    elsewhere = first.parent / "elsewhere"
    elsewhere.mkdir()
    unknown = write_run([one], "unknown", bank={"path": str(elsewhere)})
    with pytest.raises(ReportError, match="names another bank than"):
        build_report([first, unknown])
    report = build_report([changed])
    assert any("its bank has changed since the run" in line for line in report.warnings)
    other = write_run([make_capture("a", "no-such-item", "calm", Condition.AUDIO, "wait")], "third")
    with pytest.raises(BankMismatchError, match="no-such-item"):
        build_report([other])
