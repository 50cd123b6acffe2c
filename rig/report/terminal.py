"""A report on the terminal. All text goes out as text, never as markup, so that nothing an agent said can style it."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from rig.report.layout import Table, plain
from rig.report.model import Report
from rig.report.tables import notes, tables

_VERDICTS = {"above": "bold green", "below": "bold red"}


def print_report(report: Report, console: Console, *, full: bool) -> None:
    """Print the tables and lists of `report`; without `full`, those that a first look needs."""
    console.print(Text(f"Bank {plain(report.bank)}; runs: {plain(', '.join(report.runs))}", style="bold"))
    for table in tables(report, full=full):
        print_table(table, console)
    for heading, lines in notes(report):
        console.print()
        console.print(Text(heading, style="bold"))
        for line in lines:
            console.print(Text(f"  {line}"))


def print_table(table: Table, console: Console) -> None:
    """One table and its caption, after an empty line."""
    console.print()
    console.print(_rich(table))
    console.print(Text(table.caption, style="dim"))


def _rich(table: Table) -> RichTable:
    made = RichTable(
        title=Text(table.title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for index, column in enumerate(table.columns):
        made.add_column(Text(column), overflow="fold", no_wrap=index == 0)
    for row in table.rows:
        made.add_row(*(Text(cell, style=_VERDICTS.get(cell, "")) for cell in row))
    return made
