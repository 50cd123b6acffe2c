"""Tables on the terminal: every cell is there in every width, and no line is longer than the terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from rig.report.layout import Table, table
from rig.report.terminal import print_table

_ROWS = tuple((f"name-{row}", *(f"0.{row}{column} [0.10, 0.90]" for column in range(9))) for row in range(3))
WIDE = table("Wide", ("target", *(f"measure {column}" for column in range(9))), _ROWS, "How.")
PROSE = table(
    "Departures",
    ("rule", "clips", "departing", "half or more"),
    [("A rule of many words that somebody cites at length, " * 4, "13", "25", "2"), ("x" * 230, "9", "8", "117")],
    "How.",
)


def printed(shown: Table, width: int) -> list[str]:
    written = io.StringIO()
    print_table(shown, Console(file=written, width=width))
    return written.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 120, 400])
@pytest.mark.parametrize("shown", [WIDE, PROSE], ids=["wide", "prose"])
def test_nothing_is_cut(shown: Table, width: int) -> None:
    lines = printed(shown, width)
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)
    letters = re.sub(r"\s", "", "".join(lines))
    for cell in (*shown.columns, *(cell for row in shown.rows for cell in row[1:])):
        assert re.sub(r"\s", "", cell) in letters
    assert letters.count("x") >= (230 if shown is PROSE else 0)


def test_columns_that_go_below_stand_beside_their_names_again() -> None:
    lines = printed(WIDE, 80)
    rows = [line for line in lines if line.strip().startswith("name-1")]
    assert len(rows) == 3
    assert [len(re.findall(r"\[", line)) for line in rows] == [3, 3, 3]
    assert len([line for line in printed(WIDE, 400) if line.strip().startswith("name-1")]) == 1


def test_figures_are_right_aligned_and_the_rest_is_not() -> None:
    assert PROSE.right_aligned() == (False, True, True, True)
    assert WIDE.right_aligned() == (False,) * 10
    (line,) = [line for line in printed(PROSE, 120) if line.rstrip().endswith(" 2")]
    assert line.rstrip().endswith("13         25             2")
    assert table("Empty", ("a", "b"), [], "").right_aligned() == (False, True)
