"""WAV as it travels inside a JSON body: PCM16 mono in, PCM16 mono out.

Tolerant where servers are known to be sloppy: a header written before the length was known (0 or 0xFFFFFFFF). Not a
reader for clips from disk.
"""

from __future__ import annotations

import struct
from typing import Final

_PCM: Final = 1
_EXTENSIBLE: Final = 0xFFFE
_PCM_SUBFORMAT: Final = b"\x01\x00\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
"""KSDATAFORMAT_SUBTYPE_PCM."""
_RATES_HZ: Final = range(1_000, 192_001)


class WavError(ValueError):
    """Not a PCM16 mono WAV; the text says what it is instead."""


def encode(pcm: bytes, rate_hz: int) -> bytes:
    """PCM16 mono as a WAV file with a plain 44-byte header."""
    return (
        struct.pack(
            "<4sI4s4sIHHIIHH", b"RIFF", 36 + len(pcm), b"WAVE", b"fmt ", 16, _PCM, 1, rate_hz, 2 * rate_hz, 2, 16
        )
        + struct.pack("<4sI", b"data", len(pcm))
        + pcm
    )


def decode(data: bytes) -> tuple[bytes, int]:
    """PCM16 mono samples of a WAV file, and their rate in Hz.

    Raises:
        WavError: another format, or no samples at all.
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise WavError("not a WAV file")
    position, rate_hz = 12, None
    while position + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, position)
        body = position + 8
        if name == b"fmt ":
            rate_hz = _rate_of(data[body : body + size])
        elif name == b"data":
            if rate_hz is None:
                raise WavError("a WAV file without a format before its data")
            # 0 and 0xFFFFFFFF stand for "to the end", as streaming writers leave them.
            end = len(data) if size in (0, 0xFFFFFFFF) else min(body + size, len(data))
            return data[body : end - (end - body) % 2], rate_hz
        position = body + size + size % 2
    raise WavError("a WAV file without data")


def _rate_of(fmt: bytes) -> int:
    if len(fmt) < 16:
        raise WavError("a WAV file with a cut header")
    tag, channels, rate_hz, _, _, bits = struct.unpack_from("<HHIIHH", fmt)
    if tag == _EXTENSIBLE and fmt[24:40] == _PCM_SUBFORMAT:
        tag = _PCM
    if (tag, channels, bits) != (_PCM, 1, 16):
        raise WavError(f"not PCM16 mono (format {tag:#x}, {channels} channels, {bits} bits)")
    if rate_hz not in _RATES_HZ:
        raise WavError(f"a WAV file with a rate of {rate_hz} Hz")
    return int(rate_hz)
