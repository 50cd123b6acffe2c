"""Changes the rate and the pitch of speech: waveform-similarity overlap-add, then resampling. Pure functions."""

from __future__ import annotations

import numpy as np

from rig.bank.rendering.levels import RATE_HZ, Samples
from rig.bank.rendering.voices import resampled

_WINDOW = round(0.032 * RATE_HZ)
_HOP = _WINDOW // 2
_REACH = round(0.009 * RATE_HZ)
"""How far a piece may be moved to fit its predecessor: half a period of a 55 Hz voice."""


def stretched(samples: Samples, factor: float) -> Samples:
    """The same pitch, `factor` times as long (WSOLA: Verhelst and Roelands, 1993)."""
    if factor == 1.0:
        return samples
    length = round(samples.size * factor)
    frames = length // _HOP + 1
    source = np.pad(samples, (_REACH + _HOP, 2 * _WINDOW + _REACH))
    window = np.hanning(_WINDOW + 1)[:-1]
    out = np.zeros((frames + 1) * _HOP + _WINDOW)
    previous = _REACH
    for frame in range(frames):
        nominal = _REACH + min(round(frame * _HOP / factor), samples.size)
        follower = source[previous + _HOP : previous + _HOP + _WINDOW]
        nearby = source[nominal - _REACH : nominal + _REACH + _WINDOW]
        likeness = np.correlate(nearby, follower, mode="valid") if frame else np.eye(1, 2 * _REACH + 1, _REACH)[0]
        previous = nominal - _REACH + int(np.argmax(likeness))
        out[frame * _HOP : frame * _HOP + _WINDOW] += source[previous : previous + _WINDOW] * window
    return out[_HOP : _HOP + length]


def revoiced(samples: Samples, rate: float, pitch: float) -> Samples:
    """Speech `rate` times as fast, with pitch and formants times `pitch`."""
    return resampled(stretched(samples, pitch / rate), 1.0 / pitch)
