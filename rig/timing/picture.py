"""A picture of a call: both sides' levels over time, their speech, and each reply's latency."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rig.audio.reader import Clip
from rig.timing.measures import CallTiming
from rig.timing.recording import Recording

CALLER, AGENT = "#0072b2", "#d55e00"
"""Told apart with every common kind of colour blindness (Okabe and Ito)."""
_LONGEST_IN = 60.0
_SECONDS_PER_IN = 5.0


def draw(recording: Recording, timing: CallTiming, path: Path) -> None:
    """Write the picture to `path`, as its suffix says (SVG, PNG, PDF). Raises OSError, and ValueError for another."""
    from matplotlib.figure import Figure

    width_in = min(_LONGEST_IN, max(8.0, timing.duration_s / _SECONDS_PER_IN))
    figure = Figure(figsize=(width_in, 3.2), layout="constrained")
    axes = figure.add_subplot()
    sides = (
        (1.0, recording.caller, timing.caller_speech, CALLER),
        (-1.0, recording.agent, timing.agent_speech, AGENT),
    )
    for middle, clip, stretches, colour in sides:
        seconds, level = _envelope(clip)
        axes.fill_between(seconds, middle - level, middle + level, color=colour, linewidth=0)
        for stretch in stretches:
            axes.axvspan(
                stretch.start_s, stretch.end_s, 0.5 if middle > 0 else 0.0, 1.0 if middle > 0 else 0.5,
                color=colour, alpha=0.12, linewidth=0,
            )  # fmt: skip
    for reply in timing.each:
        low, high = sorted((reply.caller.end_s, reply.agent.start_s))
        axes.plot((low, high), (0, 0), color="#444444", linewidth=1.5)
        axes.annotate(f"{reply.latency_s:.2f} s", ((low + high) / 2, 0.06), ha="center", fontsize=7, color="#444444")
    axes.set_yticks((1.0, -1.0), ("caller", "agent"))
    axes.set_ylim(-2.05, 2.05)
    axes.set_xlim(0, timing.duration_s)
    axes.set_xlabel("seconds")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=120)


def _envelope(clip: Clip, steps: int = 4000) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], ...]:
    """Seconds, and peak level 0 to 1 of each step."""
    step = max(1, len(clip.samples) // steps)
    cut = len(clip.samples) // step * step
    peaks = np.abs(clip.samples[:cut].astype(np.float64)).reshape(-1, step).max(axis=1)
    return (np.arange(len(peaks)) + 0.5) * step / clip.rate_hz, peaks / max(float(peaks.max()), 1.0)
