"""Audio as a template's wire has it: PCM16, or G.711 µ-law, as bytes or as base64."""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass
from typing import Final

import numpy as np

_BIAS: Final = 132
_CLIP: Final = 32635
_NAMED: Final = re.compile(r"(pcm|pcm16|linear16|ulaw|mulaw)_(8000|16000|22050|24000|32000|44100|48000)")


@dataclass(frozen=True, slots=True)
class Format:
    """How audio is coded."""

    encoding: str
    """`pcm16` (little-endian, mono) or `mulaw`."""
    rate_hz: int

    def encode(self, pcm: bytes) -> bytes:
        """PCM16 mono as this format has it."""
        return _to_mulaw(pcm) if self.encoding == "mulaw" else pcm

    def decode(self, coded: bytes) -> bytes:
        """The PCM16 mono in `coded`; PCM may end in the middle of a sample."""
        return _FROM_MULAW[np.frombuffer(coded, "u1")].tobytes() if self.encoding == "mulaw" else coded


def named_format(name: str) -> Format | None:
    """A format as vendors name it, e.g. `pcm_16000` or `ulaw_8000`; None for any other."""
    match = _NAMED.fullmatch(name)
    return Format("mulaw" if "ulaw" in match[1] else "pcm16", int(match[2])) if match else None


def from_base64(text: str) -> bytes | None:
    """The bytes in standard base64; None when it is none."""
    try:
        return binascii.a2b_base64(text.encode("ascii"), strict_mode=True) if text else b""
    except (ValueError, UnicodeEncodeError):
        return None


def to_base64(data: bytes) -> str:
    """`data` as standard base64 on one line."""
    return binascii.b2a_base64(data, newline=False).decode()


def _to_mulaw(pcm: bytes) -> bytes:
    """ITU-T G.711 µ-law of PCM16: sign, three bits of segment, four of step, all inverted."""
    samples = np.frombuffer(pcm, "<i2").astype(np.int32)
    sign = np.where(samples < 0, 0x80, 0)
    size = np.minimum(np.abs(samples), _CLIP) + _BIAS
    segment = np.floor(np.log2(size)).astype(np.int32) - 7
    step = (size >> (segment + 3)) & 0x0F
    coded: bytes = (~(sign | (segment << 4) | step) & 0xFF).astype("u1").tobytes()
    return coded


def _mulaw_table() -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    code = ~np.arange(256) & 0xFF
    size = ((((code & 0x0F) << 3) + _BIAS) << ((code >> 4) & 0x07)) - _BIAS
    return np.where(code & 0x80, -size, size).astype("<i2")


_FROM_MULAW: Final = _mulaw_table()
