"""When a caller would have heard an agent's audio: Twilio's playback queue as a pure model.

Audio is queued and played in order at real time. A mark comes back once the audio queued before it has played, or at
once when `clear` drops that audio (https://www.twilio.com/docs/voice/media-streams/websocket-messages). No clock here.
"""

from __future__ import annotations

from collections import deque
from typing import Final

NS_PER_BYTE: Final = 125_000
"""µ-law at 8 kHz: one byte a sample."""
MAX_QUEUED_NS: Final = 600 * 1_000_000_000
MAX_MARKS: Final = 10_000


class PlaybackFullError(ValueError):
    """The agent queued more audio or marks than any honest turn holds; one line that names the bound."""


class Playback:
    """The playback queue of one call. Times are monotonic ns and never go back."""

    def __init__(self) -> None:
        self.cleared_ns = 0
        """Length of the audio that was queued and dropped by `clear`, never heard."""
        self._played_ns = 0
        self._start_ns = 0
        self._end_ns = 0
        self._marks: deque[tuple[int, str]] = deque()

    def audio(self, size: int, now_ns: int) -> int:
        """Queue `size` bytes of µ-law; when they start to play.

        Raises:
            PlaybackFullError: more than ten minutes would be waiting.
        """
        length_ns = size * NS_PER_BYTE
        if max(self._end_ns - now_ns, 0) + length_ns > MAX_QUEUED_NS:
            raise PlaybackFullError(f"more than {MAX_QUEUED_NS // 1_000_000_000} s of audio queued for playing")
        if now_ns >= self._end_ns:
            self._played_ns += self._end_ns - self._start_ns
            self._start_ns = self._end_ns = now_ns
        starts_ns = self._end_ns
        self._end_ns += length_ns
        return starts_ns

    def mark(self, name: str, now_ns: int) -> None:
        """Queue a mark behind the audio so far.

        Raises:
            PlaybackFullError: too many marks are waiting.
        """
        if len(self._marks) >= MAX_MARKS:
            raise PlaybackFullError(f"more than {MAX_MARKS:,} marks waiting")
        self._marks.append((max(now_ns, self._end_ns), name))

    def clear(self, now_ns: int) -> list[str]:
        """Stop playing and empty the queue; the marks that go back at once, in order."""
        self.cleared_ns += max(self._end_ns - now_ns, 0)
        self._end_ns = min(self._end_ns, now_ns)
        returned = [name for _, name in self._marks]
        self._marks.clear()
        return returned

    def due(self, now_ns: int) -> list[str]:
        """Marks whose audio has played by now, in order; each is returned once."""
        returned = []
        while self._marks and self._marks[0][0] <= now_ns:
            returned.append(self._marks.popleft()[1])
        return returned

    def next_due_ns(self) -> int | None:
        """When the next mark is due; None when none is waiting."""
        return self._marks[0][0] if self._marks else None

    @property
    def end_ns(self) -> int:
        """When all that is queued will have played."""
        return self._end_ns

    def heard_ns(self, now_ns: int) -> int:
        """Length of the audio heard so far."""
        return self._played_ns + min(now_ns, self._end_ns) - self._start_ns
