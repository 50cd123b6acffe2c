"""Tables of plain text, and how figures are written into their cells. Which tables there are is `rig.report.tables`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from rig.stats.bootstrap import Estimate

ABSENT = "–"
"""Does not apply, or was not measured."""

_LONGEST_LINE = 240
_FIGURE = re.compile(r"[+−<]? ?\d+(\.\d+)?( %)?|–|n too small")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of plain text; a cell or heading may have several lines. `caption` says what was measured how."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str

    def right_aligned(self) -> tuple[bool, ...]:
        """Per column, whether it holds single figures alone; the first, which names the row, never does."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        return (False, *(all(_FIGURE.fullmatch(cell) for cell in column) for column in columns[1:]))


def plain(text: str) -> str:
    """`text` on one line, without control, formatting or unassigned characters, cut at 240: fit to be shown."""
    kept = (character if unicodedata.category(character)[0] != "C" else " " for character in text[:2_000])
    line = " ".join("".join(kept).split())
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]], caption: str) -> Table:
    """A table whose cells are made fit to be shown."""
    return Table(
        title,
        tuple(_lines(column) for column in columns),
        tuple(tuple(_lines(cell) for cell in row) for row in rows),
        plain_caption(caption),
    )


def _lines(text: str) -> str:
    return "\n".join(plain(line) for line in text.split("\n"))


def plain_caption(text: str) -> str:
    """Our own words with target names in them: control characters off, never cut."""
    return " ".join("".join(c if unicodedata.category(c)[0] != "C" else " " for c in text).split())


def mean(estimate: Estimate | None, signed: bool = False) -> str:
    """`0.75 [0.25, 1.00]` and n; says why where there is no interval."""
    if estimate is None:
        return ABSENT
    shown = number(estimate.mean, signed=signed)
    if estimate.lo is None or estimate.hi is None:
        why = "one item" if estimate.items < 2 else "items all alike"
        if "undefined" in estimate.method:
            why = "undefined in too many draws"
        return f"{shown} [no interval]\n{why}, n {estimate.n}"
    how = "Wilson, " if estimate.method.startswith("Wilson") else ""
    lo, hi = number(estimate.lo, signed=signed), number(estimate.hi, signed=signed)
    return f"{shown} [{lo}, {hi}]\n{how}n {estimate.n}"


def number(value: float | None, digits: int = 2, signed: bool = False) -> str:
    """With a true minus sign, and no minus before zero."""
    if value is None:
        return ABSENT
    rounded = round(value, digits) + 0.0  # no "-0.00"
    return f"{rounded:{'+' if signed else ''}.{digits}f}".replace("-", "−")


def p_value(value: float | None) -> str:
    """Three digits, or that it is below them."""
    if value is None:
        return ABSENT
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def seconds(value: float | None, n: int) -> str:
    """A percentile; where it is refused, that `n` is too small."""
    if value is None:
        return "n too small" if n else ABSENT
    return number(value, 3)
