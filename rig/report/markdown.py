"""A report as Markdown. What agents and configs put into it is escaped."""

from __future__ import annotations

import re

from rig.report.layout import plain
from rig.report.model import Report
from rig.report.tables import notes, tables

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def render_markdown(report: Report) -> str:
    """The whole report; ends with a newline."""
    lines = [f"# Report on {_escaped(report.bank)}", "", f"Runs: {_escaped(plain(', '.join(report.runs)))}"]
    for table in tables(report):
        lines += ["", f"## {_escaped(table.title)}", "", _row(table.columns), "|" + " --- |" * len(table.columns)]
        lines += [_row(row) for row in table.rows]
        lines += ["", _escaped(table.caption)]
    for heading, entries in notes(report):
        lines += ["", f"## {_escaped(heading)}", "", *(f"- {_escaped(entry)}" for entry in entries)]
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_escaped(cell.replace("\n", " ")) for cell in cells) + " |"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
