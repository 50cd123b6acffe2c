"""The page's plots, drawn by matplotlib as SVG that takes its colours from the page, so that light and dark both work.

Nothing is drawn that a table lacks; a plot with nothing to show is None.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from captures.capture import Condition
from captures.latency import latencies
from rig.report.html.evidence import Evidence
from rig.report.layout import plain
from rig.report.model import Report
from rig.report.plots import latency_against_credit
from rig.scoring.cells import ScoredCell
from rig.stats.bootstrap import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _LINE = "#010203", "#040506"
"""Stand for the page's text colour and rule colour; replaced in the SVG."""
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#8c8c8c"
"""Told apart with every common kind of colour blindness (Okabe and Ito)."""
_SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_ROW_IN, _POINTS_PER_INCH = 0.3, 72
_KEY_ROWS, _LONGEST_LABEL = 30, 40
"""Targets in one column of a plot's key; characters of a label that a bank gives."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rig",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.parse_math": False,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _LINE,
    "axes.titlecolor": _INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _LINE,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
}


def plots(report: Report, evidence: Evidence) -> list[tuple[str, str, str]]:
    """Title, SVG, and what is drawn how; only plots that have something to show."""
    import matplotlib

    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # The browser draws the letters, with fonts of its own.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        drawn = [
            ("Gain beyond the words", forest(report), _FOREST),
            ("Unsafe execution against over-trigger", scatter(report), _SCATTER),
            ("Credit by kind of cue", by_cue(report), _HEAT),
            ("Credit by sector", by_sector(report, evidence), _HEAT + " Sector: as the items are annotated."),
            *(
                (f"Latency against credit: {name}", against_credit(report, name), _against_caption(report, name))
                for name in report.origins
            ),
            *(
                (f"Latency: {name}", latency(report, evidence, name), _latency_caption(report, name))
                for name in report.origins
            ),
        ]
    return [(title, svg, caption) for title, svg, caption in drawn if svg is not None]


_FOREST = (
    "Null gain (circle: (audio − twin) minus that of the words-only target) or, without a text path, level contrast "
    "(square); credit on identical cue-bearing cells. Line: 95 % item-clustered bootstrap interval; none is drawn "
    "where none could be estimated. Filled: differs from 0 after Holm. Confirmatory for contestants alone."
)
_SCATTER = (
    "Share of protective clips on which the agent went ahead as the words alone ask, against the share of clean clips "
    "with a needless protective step. Bars: 95 % intervals over items. On the dashed line both are equally frequent. "
    "Exploratory."
)
_HEAT = "Mean action score on cue-bearing audio cells, and number of cells. Blank: not measured. Exploratory."


def _latency_caption(report: Report, name: str) -> str:
    return (
        f"Seconds from {report.origins[name]}. Box: quartiles; line: median; whiskers: 1.5 quartile ranges; points "
        "beyond them. Times that our own lateness spoilt are left out; n says how many are left. Exploratory."
    )


def _against_caption(report: Report, name: str) -> str:
    return (
        f"Median seconds from {report.origins[name]}, against credit on cue-bearing clips. Bars: 95 % intervals, "
        "item-clustered; none where none could be estimated. Right and low is slow and wrong. Exploratory."
    )


def forest(report: Report) -> str | None:
    """Gains with intervals, largest first."""
    rows = [(target, shown) for target in report.targets if (shown := target.null_gain or target.level_contrast)]
    if not rows:
        return None
    rows.sort(key=lambda row: (row[1].estimate.mean, row[0].name))
    figure, axes = _figure(len(rows))
    for place, (target, tested) in enumerate(rows):
        estimate = tested.estimate
        colour = BLUE if estimate.mean >= 0 else ORANGE
        if estimate.lo is not None and estimate.hi is not None:
            axes.plot([estimate.lo, estimate.hi], [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        clear = tested.verdict in ("above", "below")
        marker = "o" if target.null_gain else "s"
        axes.plot(estimate.mean, place, marker, color=colour, markerfacecolor=colour if clear else "none", markersize=7)
    axes.axvline(0, color=_INK, linewidth=1)
    axes.set_yticks(range(len(rows)), [target.name for target, _ in rows])
    axes.set_xlabel("difference in credit")
    return _svg(figure, "Forest plot of gains beyond the words")


def scatter(report: Report) -> str | None:
    """One point per target with both rates."""
    if report.harm is None:
        return None
    points = []
    for name, found in report.harm.targets.items():
        unsafe, over = found.rates.get("unsafe_execution"), found.rates.get("over_trigger")
        if unsafe is not None and over is not None:
            points.append((name, _place(over), _place(unsafe)))
    if not points:
        return None
    figure, axes = _figure(0, width=8.5, height=5.5)
    axes.plot([0, 1], [0, 1], "--", color=_LINE, linewidth=1.2)
    _points(figure, axes, points)
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel="over-trigger", ylabel="unsafe execution")
    axes.grid(linewidth=0.5)
    return _svg(figure, "Scatter of unsafe execution against over-trigger")


def against_credit(report: Report, name: str) -> str | None:
    """One point per target: median of one latency, and credit."""
    points = [
        (point.target, _Place(point.p50, point.lo, point.hi), _place(point.credit))
        for point in latency_against_credit(report)
        if point.latency == name
    ]
    if not points:
        return None
    figure, axes = _figure(0, width=8.5, height=5.5)
    _points(figure, axes, points)
    axes.set(ylim=(-0.03, 1.03), xlabel="seconds, median", ylabel="credit, cue-bearing")
    axes.grid(linewidth=0.5)
    return _svg(figure, f"{name} against credit")


class _Place(NamedTuple):
    """Where a point lies on one axis, with its interval where there is one."""

    mean: float
    lo: float | None
    hi: float | None


def _place(estimate: Estimate) -> _Place:
    return _Place(estimate.mean, estimate.lo, estimate.hi)


def _points(figure: Figure, axes: Axes, points: Sequence[tuple[str, _Place, _Place]]) -> None:
    """Numbered points with both intervals; the key beside them says which target each number is."""
    for number, (name, x, y) in enumerate(points, start=1):
        colour = _SERIES[(number - 1) % len(_SERIES)]
        faint: dict[str, Any] = {"color": colour, "linewidth": 1, "alpha": 0.45, "zorder": 1}
        if x.lo is not None and x.hi is not None:
            axes.plot([x.lo, x.hi], [y.mean, y.mean], **faint)
        if y.lo is not None and y.hi is not None:
            axes.plot([x.mean, x.mean], [y.lo, y.hi], **faint)
        axes.plot(x.mean, y.mean, "o", color=colour, markersize=6, label=f"{number}  {name}")
        beside: dict[str, Any] = {"xytext": (4, 3), "textcoords": "offset points", "fontsize": 8, "color": _INK}
        axes.annotate(str(number), (x.mean, y.mean), **beside)
    figure.legend(loc="outside right upper", fontsize=8, ncols=1 + (len(points) - 1) // _KEY_ROWS, handletextpad=0.2)


def by_cue(report: Report) -> str | None:
    """Targets × kinds of cue."""
    found = {
        target.name: {kind.replace("_", " "): (one.mean, one.n) for kind, one in target.credit_by_cue_kind.items()}
        for target in report.targets
    }
    return _heat(found, "Heat map of credit by kind of cue")


def by_sector(report: Report, evidence: Evidence) -> str | None:
    """Targets × sectors, where items are annotated."""
    found: dict[str, dict[str, tuple[float, int]]] = {}
    for target in report.targets:
        values: dict[str, list[float]] = {}
        for cell in evidence.cells.get(target.name, ()):
            sector = _sector(evidence, cell)
            cued = cell.condition is Condition.AUDIO and cell.headline and not cell.neutral
            if sector and cued and cell.credit is not None:
                values.setdefault(sector, []).append(cell.credit)
        found[target.name] = {name: (float(np.mean(own)), len(own)) for name, own in values.items()}
    return _heat(found, "Heat map of credit by sector")


def latency(report: Report, evidence: Evidence, name: str) -> str | None:
    """Boxes of the valid values of one latency, fastest median first from the top."""
    values = {
        target.name: [
            found.seconds
            for capture in target.captures
            if capture.ending.scored
            for found in latencies(capture, target.run.void_limit_s)
            if found.name == name and not found.void
        ]
        for target in evidence.targets
    }
    rows = sorted(((np.median(own), target, own) for target, own in values.items() if own), reverse=True)
    if not rows:
        return None
    figure, axes = _figure(len(rows))
    ink = {"color": _INK, "linewidth": 1}
    axes.boxplot(
        [own for _, _, own in rows],
        orientation="horizontal",
        positions=range(len(rows)),
        widths=0.6,
        boxprops=ink,
        whiskerprops=ink,
        capprops=ink,
        medianprops={"color": ORANGE, "linewidth": 2},
        flierprops={"marker": ".", "markersize": 4, "markeredgecolor": GREY},
        manage_ticks=False,
    )
    axes.set_yticks(range(len(rows)), [f"{target} (n {len(own)})" for _, target, own in rows])
    axes.set_xlabel("seconds")
    axes.grid(axis="x", linewidth=0.5)
    return _svg(figure, f"Distribution of {name}")


def _sector(evidence: Evidence, cell: ScoredCell) -> str:
    annotation = evidence.bank.annotation(evidence.bank.item(cell.item_id))
    return (annotation.sector or "") if annotation else ""


def _label(text: str) -> str:
    """What a bank says, fit to stand at an axis."""
    line = plain(text)
    return line if len(line) <= _LONGEST_LABEL else f"{line[: _LONGEST_LABEL - 1]}…"


def _heat(found: Mapping[str, Mapping[str, tuple[float, int]]], label: str) -> str | None:
    columns = sorted({name for own in found.values() for name in own})
    rows = [name for name, own in found.items() if own]
    if not rows or not columns:
        return None
    means = np.array([[found[row].get(column, (np.nan, 0))[0] for column in columns] for row in rows])
    labels = [_label(column) for column in columns]
    longest = max(map(len, labels))
    # The labels stand askew above the columns: the longer they are, the more room they take, up and to the right.
    width = max(6.0, 2.5 + 0.85 * len(columns)) + 0.07 * max(0, longest - 20)
    figure, axes = _figure(len(rows), width=width, above=max(1.4, 0.5 + 0.055 * longest))
    axes.pcolormesh(np.ma.masked_invalid(means), cmap="cividis", vmin=0, vmax=1, edgecolors="none")
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            if column in found[row]:
                value, n = found[row][column]
                colour = "#ffffff" if value < 0.55 else "#000000"
                where: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "color": colour}
                axes.text(x + 0.5, y + 0.5, f"{value:.2f} ({n})", **where)
    axes.set(xlim=(0, len(columns)), ylim=(len(rows), 0))
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
    axes.set_xticks(np.arange(len(columns)) + 0.5, labels, rotation=35, ha="left")
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return _svg(figure, label)


def _figure(rows: int, width: float = 8.5, height: float | None = None, above: float = 0.9) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    size = (width, height if height is not None else above + _ROW_IN * rows)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    if height is None:
        axes.set_ylim(-0.7, max(rows, 1) - 0.3)
    return figure, axes


def _svg(figure: Figure, label: str) -> str:
    """The figure as an SVG element that scales with the page; every text in it is escaped by matplotlib."""
    written = io.StringIO()
    metadata: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(written, format="svg", metadata=metadata)
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = svg.replace(_INK, "currentColor").replace(_LINE, "var(--line)")
    opening = _opening(label, figure.get_figwidth() * _POINTS_PER_INCH)
    return re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', opening, svg, count=1)


def _opening(label: str, width_pt: float) -> str:
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return rf'<svg role="img" aria-label="{label}" viewBox="\1" style="width: {width_pt:.0f}pt" {spaces}>'
