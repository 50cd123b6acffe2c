"""A report as Markdown. What agents and configs put into it is escaped."""

from __future__ import annotations

from rig.report.escape import markdown_escaped
from rig.report.layout import Table, plain
from rig.report.model import Report
from rig.report.tables import notes, tables


def render_markdown(report: Report) -> str:
    """The whole report; ends with a newline."""
    lines = [
        f"# Report on {markdown_escaped(report.bank)}",
        "",
        f"Runs: {markdown_escaped(plain(', '.join(report.runs)))}",
    ]
    for table in tables(report):
        lines += ["", *table_lines(table)]
    for heading, entries in notes(report):
        lines += ["", f"## {markdown_escaped(heading)}", "", *(f"- {markdown_escaped(entry)}" for entry in entries)]
    lines += ["", "## Provenance"]
    for target in report.targets:
        lines += ["", f"### {markdown_escaped(target.name)}", ""]
        lines += [f"- {what}: {markdown_escaped(told)}" for what, told in target.provenance]
    return "\n".join(lines) + "\n"


def table_lines(table: Table) -> list[str]:
    """One table under its title, with its caption below."""
    return [
        f"## {markdown_escaped(table.title)}",
        "",
        _row(table.columns),
        "|" + " --- |" * len(table.columns),
        *(_row(row) for row in table.rows),
        "",
        markdown_escaped(table.caption),
    ]


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(markdown_escaped(cell.replace("\n", " ")) for cell in cells) + " |"
