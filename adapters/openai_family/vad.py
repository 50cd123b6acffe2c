"""Ends turns for the server half by level alone: speech is loud, a turn ends after a length of quiet.

A stand-in for the vendor's detection, counted in samples and not in time; `threshold` and `eagerness` have no effect.
Noise above the level holds a turn open until the noise stops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

BLOCK_MS: Final = 20
SPEECH_DBFS: Final = -50.0
"""Level of a block, mean removed, from which it counts as speech (0 dBFS: a full-scale square wave)."""
_SPEECH_RMS: Final = 32768 * 10 ** (SPEECH_DBFS / 20)


@dataclass(frozen=True, slots=True)
class Edge:
    """Speech began or a turn ended, at a position in all audio so far, milliseconds."""

    speaking: bool
    at_ms: int


class LevelDetector:
    """State of the detection over one connection's audio."""

    def __init__(self, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self.speaking = False
        self._block_bytes = 2 * (rate_hz * BLOCK_MS // 1000)
        self._rest = b""
        self._position_ms = 0
        self._quiet_ms = 0

    def feed(self, pcm: bytes, silence_ms: int) -> Iterator[Edge]:
        """Edges in the next piece of audio; a turn ends once `silence_ms` were quiet."""
        audio = self._rest + pcm
        whole = len(audio) - len(audio) % self._block_bytes
        self._rest = audio[whole:]
        for at in range(0, whole, self._block_bytes):
            block = np.frombuffer(audio, dtype="<i2", count=self._block_bytes // 2, offset=at)
            loud = float(np.std(block)) >= _SPEECH_RMS
            self._position_ms += BLOCK_MS
            self._quiet_ms = 0 if loud else self._quiet_ms + BLOCK_MS
            if loud and not self.speaking:
                self.speaking = True
                yield Edge(True, self._position_ms - BLOCK_MS)
            elif self.speaking and self._quiet_ms >= silence_ms:
                self.speaking = False
                yield Edge(False, self._position_ms)
