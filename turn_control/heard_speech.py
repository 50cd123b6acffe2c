"""The agent's speech as a caller would hear it, when its playback can be cut off. Pure.

Pieces are laid out as `captures.playback` does. What is not yet heard at a cut is never heard; what arrives later is.
"""

from __future__ import annotations

from dataclasses import dataclass

from captures.playback import Playback, play


@dataclass(slots=True)
class _Piece:
    start_ns: int
    pcm: bytes
    item_id: str | None


class HeardSpeech:
    """Collects the speech of one answer; stamps in monotonic ns, PCM16 little-endian mono."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._pieces: list[_Piece] = []
        self._odd = b""
        self._end_ns = 0

    def add(self, t_ns: int, pcm: bytes, item_id: str | None = None) -> None:
        """A piece that arrived at `t_ns`; a sample cut between two pieces is heard with the later one."""
        pcm = self._odd + pcm
        whole, self._odd = pcm[: len(pcm) // 2 * 2], pcm[len(pcm) // 2 * 2 :]
        if whole:
            start_ns = max(t_ns, self._end_ns)
            self._pieces.append(_Piece(start_ns, whole, item_id))
            self._end_ns = start_ns + self._ns(len(whole) // 2)

    def cut(self, t_ns: int) -> None:
        """Playback stops at `t_ns`, and what it had in store is dropped."""
        while self._pieces and self._pieces[-1].start_ns >= t_ns:
            self._pieces.pop()
        if self._pieces and self._end_ns > t_ns:
            last = self._pieces[-1]
            last.pcm = last.pcm[: 2 * self._samples(t_ns - last.start_ns)]
        self._end_ns = min(self._end_ns, t_ns)

    def plays_at(self, t_ns: int) -> bool:
        """True while something received is still to be heard at `t_ns`."""
        return self._end_ns > t_ns

    def heard_ms(self, t_ns: int, item_id: str | None) -> int:
        """Whole milliseconds of one item (of the vendor's naming) that were heard up to `t_ns`."""
        samples = 0
        for piece in self._pieces:
            if piece.item_id == item_id and piece.start_ns < t_ns:
                samples += min(len(piece.pcm) // 2, self._samples(t_ns - piece.start_ns))
        return samples * 1000 // self._rate_hz

    def playback(self) -> Playback:
        """All that was heard."""
        return play(((piece.start_ns, piece.pcm) for piece in self._pieces), self._rate_hz)

    def _samples(self, duration_ns: int) -> int:
        return duration_ns * self._rate_hz // 1_000_000_000

    def _ns(self, samples: int) -> int:
        return round(samples * 1e9 / self._rate_hz)
