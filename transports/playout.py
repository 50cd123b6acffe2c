"""What a sound card is fed from: caller audio, written in pieces by one clock and taken in blocks by another. Pure.

Before the first piece plays, so much is gathered that the two may be out of step by as much. Thread-safe: the card's
own thread takes the blocks.
"""

from __future__ import annotations

import threading
from collections import deque


class Playout:
    """One stream of PCM16 mono to a card."""

    def __init__(self, gather_bytes: int, most_bytes: int) -> None:
        self._gather = gather_bytes
        self._most = most_bytes
        self._lock = threading.Lock()
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._flowing = False
        self._dry = False
        self.ran_dry = 0
        """How often more audio came after the card had run out of it: silence was heard within the caller's audio."""
        self.dropped_bytes = 0
        """Written faster than the card takes it, beyond what is kept."""

    def write(self, pcm: bytes) -> None:
        """Queue a piece."""
        with self._lock:
            if self._dry:
                self._dry = False
                self.ran_dry += 1
            if self._size + len(pcm) > self._most:
                self.dropped_bytes += len(pcm)
                return
            self._pieces.append(pcm)
            self._size += len(pcm)

    def read(self, size: int) -> bytes:
        """The next block of exactly `size` bytes; silence where there is nothing to play."""
        with self._lock:
            if not self._flowing and self._size < self._gather:
                return bytes(size)
            self._flowing = True
            block = bytearray()
            while self._pieces and len(block) < size:
                piece = self._pieces.popleft()
                room = size - len(block)
                if len(piece) > room:
                    self._pieces.appendleft(piece[room:])
                    piece = piece[:room]
                block += piece
            self._size -= len(block)
            if len(block) < size:
                self._flowing, self._dry = False, True
            return bytes(block.ljust(size, b"\0"))

    @property
    def waiting_bytes(self) -> int:
        """Written and not yet taken."""
        with self._lock:
            return self._size
