"""Alarms in a recording: repeated beeps of one pitch and the pattern they keep, and sirens. NumPy, pure.

A beep's pitch is found frame by frame; then the level at that pitch, against the bands beside it, is followed over the
whole utterance and compared with the patterns of known alarms. A siren is the strongest slowly gliding line.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]

_FRAME_S = 0.04
_HOP_S = 0.02
_LOWEST_HZ = 880.0
"""Below, a harmonic inside a vowel's first formant looks like a tone."""
_HIGHEST_HZ = 3900.0
_PEAK_SHARE = 0.35
"""A tone holds at least this share of its frame's energy between 500 and 4000 Hz, within 50 Hz."""
_LEAST_DBFS = -60.0
_STANDS_OUT_DB = 8.0
_SAME_HZ = 30.0
_CANDIDATES = 3
_LEAST_BEEPS = 3
# On and off times of one round, seconds. Temporal-three: ISO 8201, NFPA 72; temporal-four: UL 2034, NFPA 72.
TEMPORAL_THREE_S = (0.5, 0.5, 0.5, 0.5, 0.5, 1.5)
TEMPORAL_FOUR_S = (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 5.0)
_MONITOR_ON_S = (0.08, 0.12, 0.2)
_MONITOR_PERIODS_S = np.arange(0.4, 1.5, 0.04)
"""40 to 150 beeps a minute, as a bedside monitor follows a pulse."""
_REPEATED_PERIODS_S = np.arange(0.3, 2.1, 0.1)

_SIREN_HZ = (500.0, 1800.0)
_SIREN_HOP_S = 0.04
_SIREN_FRAME_S = 0.08
_SIREN_STEP_HZ = 25.0
_GLIDE_STEPS = 2
"""A siren's line moves at most this many steps from frame to frame: 1250 Hz in a second."""
_SIREN_PART_S = 2.0


def find(samples: Samples, rate_hz: int) -> dict[str, float]:
    """How well the best tone keeps the best pattern (correlation of on and off, up to 1), and what a siren leaves.

    `temporal_four`, `temporal_three`, `monitor`, `repeated` (any other regular beeping): the best one's, others are 0;
    `tone_hz`: that tone, 0 for none; `siren_db`: how far a slowly gliding line stands above its surroundings in the
    best two seconds; `siren_cents`: how far that line moves.
    """
    result = dict.fromkeys(("temporal_four", "temporal_three", "monitor", "repeated", "tone_hz"), 0.0)
    width, hop = round(_FRAME_S * rate_hz), round(_HOP_S * rate_hz)
    if samples.size >= 10 * width:
        power, hertz = _spectra(samples, rate_hz, width, hop)
        loud = power.sum(axis=1) > power.sum(axis=1).max() * 1e-6
        loud &= 10.0 * np.log10(_frame_power(samples, width, hop) + 1e-12) > _LEAST_DBFS
        for tone_hz in _tones(power, hertz, loud):
            on = _stands_out(power, hertz, tone_hz) & loud
            found = _patterns(on)
            best = max(found, key=lambda name: found[name])
            if found[best] > max(result[name] for name in found):
                result |= dict.fromkeys(found, 0.0) | {best: found[best], "tone_hz": tone_hz}
    return result | _siren(samples, rate_hz)


def _frame_power(samples: Samples, width: int, hop: int) -> Samples:
    frames = np.lib.stride_tricks.sliding_window_view(samples, width)[::hop]
    return np.asarray(np.mean(np.square(frames), axis=1))


def _spectra(samples: Samples, rate_hz: int, width: int, hop: int) -> tuple[Samples, Samples]:
    """Power per frame from 400 to 4300 Hz, and the frequencies."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, width)[::hop]
    size = 2 * width
    hertz = np.asarray(np.fft.rfftfreq(size, 1.0 / rate_hz), dtype=np.float64)
    band = (hertz >= 400) & (hertz <= 4300)
    return np.square(np.abs(np.fft.rfft(frames * np.hanning(width), size, axis=1)[:, band])), hertz[band]


def _tones(power: Samples, hertz: Samples, loud: NDArray[np.bool_]) -> list[float]:
    """Pitches at which frames hold a tone, the most frequent first."""
    reach = max(1, round(50.0 / float(hertz[1] - hertz[0])))
    sums = np.cumsum(np.pad(power, ((0, 0), (reach + 1, reach))), axis=1)
    around = sums[:, 2 * reach + 1 :] - sums[:, : -2 * reach - 1]
    best = np.argmax(power, axis=1)
    share = around[np.arange(best.size), best] / (np.sum(power, axis=1) + 1e-12)
    pitch = hertz[best]
    pitch = pitch[(share > _PEAK_SHARE) & loud & (pitch > _LOWEST_HZ) & (pitch < _HIGHEST_HZ)]
    found: list[float] = []
    while pitch.size >= _LEAST_BEEPS and len(found) < _CANDIDATES:
        near = np.abs(pitch[:, None] - pitch[None, :]) < _SAME_HZ
        center = int(np.argmax(near.sum(axis=1)))
        found.append(float(np.median(pitch[near[center]])))
        pitch = pitch[~near[center]]
    return found


def _stands_out(power: Samples, hertz: Samples, tone_hz: float) -> NDArray[np.bool_]:
    """Frames in which the tone's band rises above the bands on either side."""
    away = np.abs(hertz - tone_hz)
    tone = np.max(power[:, away < _SAME_HZ], axis=1)
    beside = np.max(power[:, (away > 90) & (away < 260)], axis=1)
    level = 10.0 * np.log10((tone + 1e-12) / (beside + 1e-12))
    return np.asarray((level > _STANDS_OUT_DB) & (tone > 0.02 * tone.max()))


def _patterns(on: NDArray[np.bool_]) -> dict[str, float]:
    result = {
        "temporal_four": _likeness(on, _rounds(TEMPORAL_FOUR_S)),
        "temporal_three": _likeness(on, _rounds(TEMPORAL_THREE_S)),
        "monitor": max(_likeness(on, cycle) for cycle in _monitor_rounds()),
        "repeated": max(_likeness(on, cycle) for cycle in _repeated_rounds()),
    }
    beeps = int(np.count_nonzero(np.diff(np.concatenate(([False], on)).astype(np.int8)) == 1))
    return result if beeps >= _LEAST_BEEPS else dict.fromkeys(result, 0.0)


@cache
def _monitor_rounds() -> tuple[Samples, ...]:
    return tuple(_rounds((on_s, float(period_s) - on_s)) for period_s in _MONITOR_PERIODS_S for on_s in _MONITOR_ON_S)


@cache
def _repeated_rounds() -> tuple[Samples, ...]:
    return tuple(_rounds((share * period, (1 - share) * period)) for period, share in _repeats())


def _repeats() -> Iterator[tuple[float, float]]:
    for period_s in _REPEATED_PERIODS_S.tolist():
        for share in (0.3, 0.5, 0.7):
            yield period_s, share


@cache
def _rounds(times_s: tuple[float, ...]) -> Samples:
    """One round of a pattern by hops, 1 where it sounds: a row for each phase that the recording may begin with."""
    edges = np.round(np.cumsum((0.0, *times_s)) / _HOP_S).astype(int)
    cycle = np.zeros(int(edges[-1]))
    for start, stop in zip(edges[0:-1:2], edges[1::2], strict=True):
        cycle[start:stop] = 1.0
    # A frame catches a beep that it only touches.
    cycle = np.maximum(cycle, np.roll(cycle, -1))
    places = (np.arange(cycle.size)[None, :] + np.arange(cycle.size)[:, None]) % cycle.size
    return np.asarray(cycle[places])


def _likeness(on: NDArray[np.bool_], phases: Samples) -> float:
    """Highest correlation of what sounds with the pattern at any of its phases; 0 where nothing changes.

    Frames a whole round apart meet the same place of the pattern, so they are added up first.
    """
    place = np.arange(on.size) % len(phases)
    sounding = np.bincount(place, weights=on, minlength=len(phases))
    frames = np.bincount(place, minlength=len(phases))
    expected = phases @ frames
    share = np.count_nonzero(on) / on.size
    spread = (expected - expected**2 / on.size) * on.size * share * (1 - share)
    scores = np.zeros(len(phases))
    np.divide(phases @ sounding - expected * share, np.sqrt(np.maximum(spread, 0.0)), out=scores, where=spread > 1e-9)
    return float(np.max(scores))


def _siren(samples: Samples, rate_hz: int) -> dict[str, float]:
    width, hop = round(_SIREN_FRAME_S * rate_hz), round(_SIREN_HOP_S * rate_hz)
    least = round(_SIREN_PART_S / _SIREN_HOP_S)
    if samples.size < width + least * hop:
        return {"siren_db": 0.0, "siren_cents": 0.0}
    frames = np.lib.stride_tricks.sliding_window_view(samples, width)[::hop]
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(width), axis=1)))
    at = np.fft.rfftfreq(width, 1.0 / rate_hz)
    lines_hz = np.arange(_SIREN_HZ[0], _SIREN_HZ[1], _SIREN_STEP_HZ)
    line = np.stack([power[:, np.abs(at - hz) <= 13.0].max(axis=1) for hz in lines_hz], axis=1)
    around = np.stack(
        [power[:, (np.abs(at - hz) >= 50.0) & (np.abs(at - hz) <= 150.0)].mean(axis=1) for hz in lines_hz], axis=1
    )
    above = np.clip(10.0 * np.log10((line + 1e-12) / (around + 1e-12)), -5.0, 20.0)
    path = _smoothest(above)
    along = above[np.arange(path.size), path]
    sums = np.convolve(along, np.full(least, 1.0 / least), mode="valid")
    start = int(np.argmax(sums))
    part = lines_hz[path[start : start + least]]
    return {"siren_db": float(sums[start]), "siren_cents": float(1200.0 * np.log2(part.max() / part.min()))}


def _smoothest(above: Samples) -> NDArray[np.intp]:
    """The line through the frames that stands out most and never jumps (dynamic programming)."""
    count, lines = above.shape
    reach = 2 * _GLIDE_STEPS + 1
    best = above[0]
    came = np.zeros((count, lines), dtype=np.intp)
    for frame in range(1, count):
        padded = np.pad(best, _GLIDE_STEPS, constant_values=-1e9)
        options = np.lib.stride_tricks.sliding_window_view(padded, lines)[:reach]
        choice = np.argmax(options, axis=0)
        came[frame] = np.arange(lines) + choice - _GLIDE_STEPS
        best = above[frame] + options[choice, np.arange(lines)]
    path = np.zeros(count, dtype=np.intp)
    path[-1] = int(np.argmax(best))
    for frame in range(count - 1, 0, -1):
        path[frame - 1] = came[frame, path[frame]]
    return path
