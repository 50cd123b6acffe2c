"""Pitch and level of one side's speech: the ranges in which it moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rig.agents.pitch import track
from rig.audio.reader import Samples
from rig.audio.voice import RATE_HZ, Stretch

_HOP_S = 0.01
_STEP_S = 0.05
_LONGEST_S = 20.0
"""Pitch is tracked in pieces, so that memory does not grow with the call."""
_FEWEST = 20


@dataclass(frozen=True, slots=True)
class Ranges:
    """5th to 95th percentile; None where there is too little speech."""

    f0_hz: tuple[float, float] | None
    level_dbfs: tuple[float, float] | None


def ranges(samples: Samples, stretches: Sequence[Stretch]) -> Ranges:
    """Of one side's speech; `samples` at 16 kHz."""
    pitches: list[float] = []
    levels: list[float] = []
    for stretch in stretches:
        for start_s in np.arange(stretch.start_s, stretch.end_s, _LONGEST_S).tolist():
            end_s = min(stretch.end_s, start_s + _LONGEST_S)
            part = samples[round(start_s * RATE_HZ) : round(end_s * RATE_HZ)].astype(np.float64) / 32_768
            found = track(part, RATE_HZ, _HOP_S).f0_hz
            pitches += found[found > 0].tolist()
            step = round(_STEP_S * RATE_HZ)
            steps = part[: len(part) // step * step].reshape(-1, step)
            levels += (10 * np.log10(np.square(steps).mean(axis=1) + 1e-12)).tolist()
    return Ranges(_range(pitches), _range(levels))


def _range(values: Sequence[float]) -> tuple[float, float] | None:
    if len(values) < _FEWEST:
        return None
    low, high = np.quantile(values, (0.05, 0.95)).tolist()
    return float(low), float(high)
