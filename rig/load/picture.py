"""Latency and errors against the number of calls at once, levels at which the harness was saturated marked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rig.config import ConfigError
from rig.load.figures import LoadLevel

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")


def draw(levels: Sequence[LoadLevel], target: str, path: Path) -> None:
    """Write the picture to `path`, as its suffix says (SVG, PNG, PDF). Raises ConfigError."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("--picture", ["needs matplotlib: pip install 'voice-agent-rig[report]'"]) from None
    figure = Figure(figsize=(8, 5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": (3, 1)})
    at = [level.concurrency for level in levels]
    names = sorted({name for level in levels for name in level.latency})
    for name, colour in zip(names, _COLOURS, strict=False):
        for share, style in (("p50", "-"), ("p95", "--")):
            values = [
                getattr(level.latency[name], share) if name in level.latency else None for level in levels
            ]  # fmt: skip
            points = [(x, y) for x, y in zip(at, values, strict=True) if y is not None]
            if points:
                above.plot(*zip(*points, strict=True), style, color=colour, marker="o", label=f"{name} {share}")
    below.plot(at, [100 * level.error_share for level in levels], "-o", color="#d55e00")
    for level in levels:
        if level.own.saturated:
            for axes in (above, below):
                axes.axvline(level.concurrency, color="#8c8c8c", linestyle=":")
    above.set_ylabel("seconds")
    above.set_title(f"{target}: calls at once (dotted: the harness itself was saturated)", loc="left", fontsize=10)
    if names:
        above.legend(fontsize=7, frameon=False)
    below.set_ylabel("% failed")
    below.set_xlabel("calls at once")
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise ConfigError("--picture", [f"{path}: cannot be written ({error})"]) from None
