"""Reads one clip of a caller's audio, whatever recorded it, as 16-bit mono; or says in one line why it cannot.

Decoding is libsndfile's; wrong lengths in WAV headers are mended before (`rig.audio.riff`). Every change made to the
audio is a note on the clip. It neither resamples (`rig.audio.resample`) nor plays.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import soundfile

from rig.audio import riff

MAX_BYTES = 256 * 1024 * 1024
MAX_DURATION_S = 600.0
MIN_RATE_HZ = 8_000
MAX_RATE_HZ = 192_000
_BLOCK_FRAMES = 65_536
_INTEGER_SUBTYPES = frozenset({"PCM_U8", "PCM_S8", "PCM_16", "PCM_24", "PCM_32", "ULAW", "ALAW"})
_FULL_SCALE = 32_768
"""±1.0 of float audio; +1.0 itself clips to 32,767, as 24-bit full scale does."""
_REMEDY = "export it again as 16-bit PCM WAV or FLAC"

Samples = npt.NDArray[np.int16]


class InputError(ValueError):
    """A clip that cannot be used: what is wrong, in which file, what to do. Found before any connection is made."""

    def __init__(self, what: str, path: Path, remedy: str) -> None:
        shown = str(path) if str(path).isprintable() else repr(str(path))
        super().__init__(f"{what}: {shown}: {remedy}")
        self.path = path


@dataclass(frozen=True, eq=False)
class Clip:
    """A clip in memory: `samples` is int16, shape (n,), read-only."""

    samples: Samples
    rate_hz: int
    notes: tuple[str, ...] = ()
    """What was changed or found while reading, one phrase each."""

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.rate_hz

    @property
    def pcm(self) -> bytes:
        """The samples as little-endian 16-bit PCM."""
        return self.samples.astype("<i2", copy=False).tobytes()

    @cached_property
    def pcm_sha256(self) -> str:
        """SHA-256 of `pcm`: equal for equal samples, whatever file held them (the rate is not in it)."""
        return hashlib.sha256(self.pcm).hexdigest()


def read_clip(path: Path | str, sha256: str | None = None) -> Clip:
    """Read a WAV or FLAC file (or what else libsndfile knows) as 16-bit mono at its own rate.

    Integer formats keep their top 16 bits; float ±1.0 becomes full scale, clipped; channels are averaged. With
    `sha256` (hex, of the file) other contents are refused. Raises InputError for a file that is absent, over 256 MiB,
    unreadable, empty, longer than 10 minutes, of a rate outside 8 to 192 kHz, or that holds NaN or infinity.
    """
    path = Path(path)
    data = _bytes(path)
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256.lower():
        raise InputError("clip is not the one that its manifest names (SHA-256 differs)", path, "restore the file")
    notes: list[str] = []
    if riff.is_wav(data):
        try:
            data, notes = riff.mend(data)
        except riff.HeaderError as error:
            raise InputError(f"unreadable WAV header ({error})", path, _REMEDY) from None
    elif data[:4] == b"fLaC" and _flac_states_no_length(data):
        raise InputError("FLAC written to a pipe, its header states no length", path, _REMEDY)
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            return _decode(file, path, notes)
    except soundfile.SoundFileError as error:
        reason = str(error).rsplit(": ", 1)[-1].rstrip(".")
        raise InputError(f"unreadable audio ({reason})", path, _REMEDY) from None


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"clip cannot be read ({error.strerror or error})", path, "check the path") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"clip is larger than {MAX_BYTES // 2**20} MiB", path, "use a shorter recording")
    if not data:
        raise InputError("clip is an empty file", path, "record it again or leave the variant out")
    return data


def _flac_states_no_length(data: bytes) -> bool:
    """True where STREAMINFO's 36-bit count of samples is 0 (RFC 9639, 8.2), which libsndfile cannot decode."""
    return len(data) >= 26 and int.from_bytes(data[21:26], "big") & (2**36 - 1) == 0


def _decode(file: Any, path: Path, notes: list[str]) -> Clip:
    rate_hz = int(file.samplerate)
    if not MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ:
        raise InputError(f"sample rate {rate_hz} Hz", path, f"resample to between {MIN_RATE_HZ} and {MAX_RATE_HZ} Hz")
    if file.subtype != "PCM_16":
        notes.append(f"{file.subtype} read as 16-bit")
    if file.channels > 1:
        notes.append(f"{file.channels} channels averaged to one")
    parts: list[Samples] = []
    count = clipped = 0
    for block in _blocks(file):
        part, beyond = _to_int16_mono(block, path)
        parts.append(part)
        count += len(part)
        clipped += beyond
        if count > MAX_DURATION_S * rate_hz:
            raise InputError(f"clip is longer than {MAX_DURATION_S:.0f} s", path, "use a shorter recording")
    if not count:
        raise InputError("clip holds no samples", path, "record it again or leave the variant out")
    if clipped:
        notes.append(f"{clipped} samples beyond full scale clipped")
    samples = np.concatenate(parts)
    samples.flags.writeable = False
    return Clip(samples, rate_hz, tuple(notes))


def _blocks(file: Any) -> Iterator[npt.NDArray[Any]]:
    """Frames in bounded pieces, shape (n, channels): a header's idea of the length is not trusted with memory."""
    dtype = "int16" if file.subtype in _INTEGER_SUBTYPES else "float64"
    while len(block := file.read(_BLOCK_FRAMES, dtype=dtype, always_2d=True)):
        yield block


def _to_int16_mono(block: npt.NDArray[Any], path: Path) -> tuple[Samples, int]:
    """The block as int16, shape (n,), and how many samples had to be clipped."""
    if block.dtype == np.int16:
        if block.shape[1] == 1:
            return block[:, 0], 0
        return np.rint(block.mean(axis=1)).astype(np.int16), 0
    if not np.isfinite(block).all():
        raise InputError("clip holds NaN or infinite samples", path, "export it again")
    scaled = np.rint(block.mean(axis=1) * _FULL_SCALE)
    beyond = int(np.count_nonzero((scaled > _FULL_SCALE) | (scaled < -_FULL_SCALE)))
    return np.clip(scaled, -_FULL_SCALE, _FULL_SCALE - 1).astype(np.int16), beyond
