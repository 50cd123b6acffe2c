"""Judged limits as lines, JSON, GitHub-flavoured Markdown and JUnit XML. What configs and runs put in is escaped."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rig.checks.judge import Judged, Outcome
from rig.report.escape import markdown_escaped
from rig.report.layout import plain

_HOW = "A bound is tested by the 95 % interval of what was measured."
_WORDS = {0: "passed", 1: "failed", 2: "could not be measured"}


def lines(judged: Sequence[Judged]) -> list[str]:
    """One line per limit."""
    return [f"{one.outcome.value.upper():<12}  " + plain(f"{one.target}: {one.limit}: {one.detail}") for one in judged]


def summed_up(judged: Sequence[Judged], code: int) -> str:
    """`failed: 1 fail, 3 pass`."""
    counts = Counter(one.outcome for one in judged)
    return f"{_WORDS[code]}: " + ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])


def as_json(judged: Sequence[Judged], code: int, warnings: Sequence[str]) -> dict[str, Any]:
    """Plain data; `estimate` is null where nothing was estimated."""
    return {
        "format": 1,
        "exit_code": code,
        "checks": [
            {
                "target": one.target,
                "limit": one.limit,
                "outcome": one.outcome.value,
                "detail": one.detail,
                "estimate": None
                if one.estimate is None
                else {name: getattr(one.estimate, name) for name in ("mean", "lo", "hi", "n", "items", "method", "p")},
            }
            for one in judged
        ],
        "warnings": list(warnings),
    }


def markdown(
    judged: Sequence[Judged], code: int, run: str, warnings: Sequence[str], name: str = "rig check", how: str = _HOW
) -> str:
    """A section for a job summary; ends with a newline. `name` is the command's, `how` says how limits are judged."""
    written = [
        f"## {name}: {_WORDS[code]}",
        "",
        f"Run: {markdown_escaped(plain(run))}. {how}",
        "",
        "| outcome | target | limit | measured |",
        "| --- | --- | --- | --- |",
    ]
    written += [
        f"| {one.outcome.value} | "
        + " | ".join(markdown_escaped(plain(t)) for t in (one.target, one.limit, one.detail))
        + " |"
        for one in judged
    ]
    if warnings:
        written += ["", *(f"- {markdown_escaped(plain(warning))}" for warning in warnings)]
    return "\n".join(written) + "\n"


def junit(judged: Sequence[Judged], inconclusive_passes: bool, name: str = "rig check") -> str:
    """One suite per target, one case per limit. Inconclusive is an error, or skipped where the limits let it pass."""
    root = ET.Element("testsuites", name=name)
    totals = Counter[str]()
    for target in dict.fromkeys(one.target for one in judged):
        own = [one for one in judged if one.target == target]
        suite = ET.SubElement(root, "testsuite", name=plain(target))
        counts = Counter[str](tests=len(own), failures=0, errors=0, skipped=0)
        for one in own:
            case = ET.SubElement(
                suite, "testcase", classname=f"{name.replace(' ', '.')}.{plain(target)}", name=plain(one.limit)
            )
            element = _junit_kind(one.outcome, inconclusive_passes)
            if element:
                ET.SubElement(case, element, message=plain(one.detail), type=one.outcome.value)
                counts[{"failure": "failures", "error": "errors", "skipped": "skipped"}[element]] += 1
            ET.SubElement(case, "system-out").text = plain(one.detail)
        for kind, count in counts.items():
            suite.set(kind, str(count))
        totals += counts
    for kind in ("tests", "failures", "errors", "skipped"):
        root.set(kind, str(totals[kind]))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _junit_kind(outcome: Outcome, inconclusive_passes: bool) -> str | None:
    if outcome is Outcome.INCONCLUSIVE:
        return "skipped" if inconclusive_passes else "error"
    return {Outcome.PASS: None, Outcome.FAIL: "failure", Outcome.UNMEASURED: "error"}[outcome]
