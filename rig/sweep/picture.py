"""The frontier as a plot: added latency against false cut-offs, one colour per target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rig.config import ConfigError
from rig.sweep.measure import PointFigures

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_MARKERS = {"server_vad": "o", "semantic_vad": "s", "manual": "^"}


def draw(found: Sequence[PointFigures], path: Path) -> None:
    """Write the picture to `path`, as its suffix says (SVG, PNG, PDF). Raises ConfigError."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("--picture", ["needs matplotlib: pip install 'voice-agent-rig[report]'"]) from None
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    targets = list(dict.fromkeys(one.point.target for one in found))
    for number, target in enumerate(targets):
        colour = _COLOURS[number % len(_COLOURS)]
        own = [
            (one.added_p50_s, 100 * one.cut_off.mean, one)
            for one in found
            if one.point.target == target and one.added_p50_s is not None and one.cut_off is not None
        ]
        frontier = sorted((x, y) for x, y, one in own if one.on_frontier)
        axes.plot([x for x, _ in frontier], [y for _, y in frontier], "-", color=colour, linewidth=1)
        for x, y, one in own:
            marker = _MARKERS.get(one.point.mode, "o")
            axes.plot([x], [y], marker, color=colour, fillstyle="full" if one.on_frontier else "none")
            axes.annotate(one.point.label, (x, y), fontsize=6, xytext=(4, 4), textcoords="offset points")
        axes.plot([], [], "o", color=colour, label=target)
    axes.set_xlabel("added latency, median seconds after the end of the caller's speech")
    axes.set_ylabel("% of calls cut off")
    axes.set_title("Endpointing (filled, joined: the frontier of each target)", loc="left", fontsize=10)
    axes.legend(fontsize=7, frameon=False)
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise ConfigError("--picture", [f"{path}: cannot be written ({error})"]) from None
