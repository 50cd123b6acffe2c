"""Reads a two-channel recording of a call, caller on one side and agent on the other, or says why it is none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import soundfile

from rig.audio.reader import MAX_RATE_HZ, MIN_RATE_HZ, Clip, InputError, Samples

MAX_DURATION_S = 2 * 3600.0
MAX_BYTES = 2 << 30
SILENT_DBFS = -70.0
"""A channel whose loudest second stays below this holds nobody."""
ALIKE = 0.98
"""Correlation of the two channels above which they hold the same sound."""

Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Recording:
    """One call, both sides of equal length and rate."""

    caller: Clip
    agent: Clip

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self.caller.duration_s


def read_recording(path: Path, caller: Side = "left") -> Recording:
    """The recording at `path` (WAV, FLAC or what else libsndfile knows), `caller` naming the caller's channel.

    Raises InputError: unreadable, not of two channels, over two hours, a silent channel, or one sound on both.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"recording is larger than {MAX_BYTES >> 30} GiB", path, "cut it into calls")
        with soundfile.SoundFile(path) as file:
            samples = _samples(file, path)
            rate_hz = int(file.samplerate)
    except OSError as error:
        raise InputError(f"recording cannot be read ({error.strerror or error})", path, "check the path") from None
    except soundfile.SoundFileError as error:
        reason = str(error).rsplit(": ", 1)[-1].rstrip(".")
        raise InputError(f"unreadable audio ({reason})", path, "export it again as WAV or FLAC") from None
    for side, name in enumerate(("left", "right")):
        if _loudest_second_dbfs(samples[:, side], rate_hz) < SILENT_DBFS:
            remedy = "record both sides on channels of their own"
            raise InputError(f"the {name} channel is silent (below {SILENT_DBFS:g} dBFS throughout)", path, remedy)
    if _correlation(samples[:, 0], samples[:, 1]) > ALIKE:
        raise InputError("both channels hold the same sound", path, "record both sides on channels of their own")
    order = (0, 1) if caller == "left" else (1, 0)
    ours, theirs = (Clip(np.ascontiguousarray(samples[:, side]), rate_hz) for side in order)
    return Recording(ours, theirs)


def _samples(file: Any, path: Path) -> Samples:
    if file.channels != 2:
        what = "one channel" if file.channels == 1 else f"{file.channels} channels"
        raise InputError(f"recording has {what}; two are needed", path, "record caller and agent on channels apart")
    if not MIN_RATE_HZ <= file.samplerate <= MAX_RATE_HZ:
        raise InputError(f"sample rate {file.samplerate} Hz", path, f"resample to {MIN_RATE_HZ} to {MAX_RATE_HZ} Hz")
    most = round(MAX_DURATION_S * file.samplerate)
    samples: Samples = file.read(most + 1, dtype="int16", always_2d=True)
    if len(samples) > most:
        raise InputError(f"recording is longer than {MAX_DURATION_S / 3600:g} hours", path, "cut it into calls")
    if not len(samples):
        raise InputError("recording holds no samples", path, "record it again")
    return samples


def _loudest_second_dbfs(channel: Samples, rate_hz: int) -> float:
    squares = np.square(channel.astype(np.float32) / 32_768)
    starts = np.arange(0, len(squares), rate_hz)
    loudest = float((np.add.reduceat(squares, starts) / np.diff([*starts.tolist(), len(squares)])).max())
    return 10 * float(np.log10(max(loudest, 1e-12)))


def _correlation(left: Samples, right: Samples) -> float:
    a, b = left.astype(np.float64), right.astype(np.float64)
    a -= a.mean()
    b -= b.mean()
    size = float(np.sqrt(np.square(a).sum() * np.square(b).sum()))
    return abs(float(a @ b)) / size if size else 0.0
