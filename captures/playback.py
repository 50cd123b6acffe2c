"""The reply as it would be heard: pieces laid out in time, and where in it the first audible sample lies. Pure.

A piece starts at its arrival or at the end of what precedes it, whichever is later. Loudness is judged in steps of
10 ms, counted from the start of playback: a stretch is audible where three steps in a row (30 ms) each have an RMS
above −50 dBFS, the mean of each step removed. So neither a click, nor an offset, nor faint hiss counts as speech.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

AUDIBLE_VERSION = 1
"""Raised with any change of what counts as audible."""
AUDIBLE_DBFS = -50.0
"""RMS in dB relative to a full-scale of 1.0 (a sine at full scale has −3)."""
STEP_S = 0.010
AUDIBLE_STEPS = 3

_FULL_SCALE = 32768.0
_STEPS_AT_ONCE = 100
"""One second of audio: keeps the float copy small, however long the reply."""

_Samples = np.ndarray[Any, np.dtype[np.int16]]


@dataclass(frozen=True, slots=True)
class Playback:
    """A reply laid out in time. Times are on the clock of the pieces' stamps; None where there was nothing."""

    start_ns: int | None
    """First sample heard, audible or not."""
    end_ns: int | None
    """End of the last sample heard."""
    first_audible_ns: int | None
    last_audible_ns: int | None
    """End of the last audible stretch."""
    received_s: float
    """Length of all audio received, gaps not counted."""
    stray_bytes: int
    """Bytes at the end that make no whole sample."""
    gaps: int = 0
    """How often playback ran dry before the last piece: the next one came after all before it had been heard."""
    gaps_s: float = 0.0
    """Seconds of all gaps together."""

    @property
    def leading_silence_s(self) -> float | None:
        """From `start_ns` to `first_audible_ns`."""
        if self.start_ns is None or self.first_audible_ns is None:
            return None
        return (self.first_audible_ns - self.start_ns) / 1e9


def play(pieces: Iterable[tuple[int, bytes]], rate_hz: int) -> Playback:
    """Lay out `pieces`: (arrival in ns, PCM16 little-endian mono), in order of arrival.

    A sample cut between two pieces is heard with the later one. Rates are 100 Hz or more.
    """
    runs, stray = _laid_out(pieces, rate_hz)
    if not runs:
        return Playback(None, None, None, None, 0.0, stray)
    start_ns = runs[0][0]
    line = _timeline(runs, rate_hz)
    end_ns = runs[-1][0] + _ns(len(runs[-1][1]), rate_hz)
    first, last = _audible(line, rate_hz // 100)
    return Playback(
        start_ns=start_ns,
        end_ns=end_ns,
        first_audible_ns=None if first is None else start_ns + _ns(first, rate_hz),
        last_audible_ns=None if last is None else start_ns + _ns(last, rate_hz),
        received_s=sum(len(samples) for _, samples in runs) / rate_hz,
        stray_bytes=stray,
        gaps=len(runs) - 1,
        gaps_s=sum(
            (after - before - _ns(len(samples), rate_hz)) / 1e9 for (before, samples), (after, _) in pairwise(runs)
        ),
    )


def laid_out(pieces: Iterable[tuple[int, bytes]], rate_hz: int) -> tuple[int, _Samples] | None:
    """The reply as it would be heard: start of playback in ns, and its samples, gaps filled with zeros."""
    runs, _ = _laid_out(pieces, rate_hz)
    return (runs[0][0], _timeline(runs, rate_hz)) if runs else None


def first_audible(pieces: Iterable[tuple[int, bytes]], rate_hz: int) -> int | None:
    """When the first audible sample is heard, in ns; None when nothing audible was received."""
    return play(pieces, rate_hz).first_audible_ns


def heard_by(pieces: Iterable[tuple[int, bytes]], rate_hz: int, t_ns: int) -> tuple[list[tuple[int, bytes]], float]:
    """The pieces, or parts of them, that were heard before `t_ns`; and how many seconds were not."""
    kept: list[tuple[int, bytes]] = []
    end_ns, dropped = 0, 0
    for arrived_ns, piece in pieces:
        begins_ns = max(arrived_ns, end_ns)
        end_ns = begins_ns + _ns(len(piece) // 2, rate_hz)
        whole = max(0, min(len(piece) // 2, (t_ns - begins_ns) * rate_hz // 1_000_000_000))
        dropped += len(piece) // 2 - whole
        if whole:
            kept.append((arrived_ns, piece[: 2 * whole]))
    return kept, dropped / rate_hz


def is_loud(pcm: bytes, rate_hz: int) -> bool:
    """True when any step of a piece is as loud as audible speech; a piece shorter than a step counts as one."""
    samples = np.frombuffer(pcm, "<i2", count=len(pcm) // 2)
    step = min(rate_hz // 100, len(samples))
    return step > 0 and any(_loud_steps(chunk, step).any() for chunk in _chunks(samples, step))


def whole_samples(pieces: Iterable[bytes]) -> tuple[bytes, int]:
    """All pieces as one PCM16 string of whole samples, and how many stray bytes were left over (0 or 1)."""
    pcm = b"".join(pieces)
    return pcm[: len(pcm) // 2 * 2], len(pcm) % 2


def _laid_out(pieces: Iterable[tuple[int, bytes]], rate_hz: int) -> tuple[list[tuple[int, _Samples]], int]:
    """Runs without gaps, each (start in ns, samples), and the number of stray bytes."""
    runs: list[tuple[int, list[bytes]]] = []
    held = b""
    length = 0
    for t_ns, piece in pieces:
        whole, odd = whole_samples([held, piece])
        held = (held + piece)[-1:] if odd else b""
        if not whole:
            continue
        if not runs or t_ns > runs[-1][0] + _ns(length // 2, rate_hz):
            runs.append((t_ns, []))
            length = 0
        runs[-1][1].append(whole)
        length += len(whole)
    return [(start, np.frombuffer(b"".join(parts), "<i2")) for start, parts in runs], len(held)


def _timeline(runs: list[tuple[int, _Samples]], rate_hz: int) -> _Samples:
    """All runs as one array from the start of playback, gaps filled with zeros."""
    parts: list[_Samples] = []
    filled = 0
    for start_ns, samples in runs:
        at = round((start_ns - runs[0][0]) * rate_hz / 1e9)
        parts += [np.zeros(max(0, at - filled), np.int16), samples]
        filled = max(at, filled) + len(samples)
    return np.concatenate(parts)


def _audible(line: _Samples, step: int) -> tuple[int | None, int | None]:
    """Sample positions of the first audible sample and of the end of the last audible stretch.

    In its first step a stretch begins at the first sample that is itself above the limit.
    """
    loud = np.concatenate([_loud_steps(chunk, step) for chunk in _chunks(line, step)] or [np.zeros(0, np.bool_)])
    if len(loud) < AUDIBLE_STEPS:
        return None, None
    starts = np.flatnonzero(np.lib.stride_tricks.sliding_window_view(loud, AUDIBLE_STEPS).all(axis=1))
    if not len(starts):
        return None, None
    at = int(starts[0]) * step
    opening = line[at : at + step].astype(np.float32)
    above = np.abs(opening - opening.mean()) > _FULL_SCALE * 10 ** (AUDIBLE_DBFS / 20)
    return at + int(above.argmax()), (int(starts[-1]) + AUDIBLE_STEPS) * step


def _chunks(line: _Samples, step: int) -> Iterable[_Samples]:
    size = step * _STEPS_AT_ONCE
    return (line[at : at + size] for at in range(0, len(line) - step + 1, size))


def _loud_steps(chunk: _Samples, step: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    steps = chunk[: len(chunk) // step * step].reshape(-1, step).astype(np.float32) / np.float32(_FULL_SCALE)
    loud: np.ndarray[Any, np.dtype[np.bool_]] = steps.var(axis=1) > 10 ** (AUDIBLE_DBFS / 10)
    return loud


def _ns(samples: int, rate_hz: int) -> int:
    return round(samples * 1e9 / rate_hz)
