"""A report on the terminal. All text goes out as text, never as markup, so that nothing an agent said can style it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from rig.report.layout import Table, plain
from rig.report.model import Report
from rig.report.tables import notes, tables

_GAP = 2
"""Between two columns."""
_PROSE = 44
"""Widest column; longer text is wrapped."""
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
    """One table and its caption, after an empty line; columns that do not fit go below, beside the rows' names."""
    widths = _widths(table, console.width)
    console.print()
    console.print(Text(table.title, style="bold"))
    for columns in _groups(widths, console.width):
        console.print(_rich(table, columns, widths))
    console.print(Text(table.caption, style="dim"))


def _rich(table: Table, columns: Sequence[int], widths: Sequence[int]) -> RichTable:
    made = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    right = table.right_aligned()
    for index in columns:
        justify: Literal["left", "right"] = "right" if right[index] else "left"
        made.add_column(Text(table.columns[index]), overflow="fold", justify=justify, width=widths[index])
    for row in table.rows:
        made.add_row(*(Text(row[index], style=_VERDICTS.get(row[index], "")) for index in columns))
    return made


def _groups(widths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Columns that fit side by side; the first, which names the row, begins every group."""
    group, used = [0], _GAP + widths[0]
    for index in range(1, len(widths)):
        if used + _GAP + widths[index] > most and len(group) > 1:
            yield group
            group, used = [0], _GAP + widths[0]
        group.append(index)
        used += _GAP + widths[index]
    yield group


def _widths(table: Table, most: int) -> list[int]:
    """Of every column, as its longest line needs it; prose is wrapped, and so is a name longer than half the line."""
    cells = zip(table.columns, *table.rows, strict=True)
    needed = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in cells]
    prose = max(1, min(_PROSE, most // 2 - _GAP))
    return [max(1, min(width, prose)) for width in needed]
