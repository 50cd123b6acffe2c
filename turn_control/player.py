"""Plays one clip into a session, piece by piece in real time, and ends the caller's turn.

The whole course of a turn is one generator: it yields the time of the next piece and goes on once that has come.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from adapters.dialect import EncodedClip, TurnMode
from adapters.session import Session
from captures.capture import Mark
from captures.clock import Clock
from captures.frames import OutFrame
from turn_control.limits import Limits
from turn_control.pacing import Lateness, audio_ns, chunk_ns, next_silence_due_ns, padding_ms, pieces_ms
from turn_control.ticker import Scheduled, Ticker

_PING_EVERY_MS = 1000
"""While the caller speaks the way to the peer is measured about so often, from the middle of the first interval on."""


class ClipPlayer:
    """Sends one clip: paced by the ticker or, in file mode and at pace 0, as fast as the ticker lets it."""

    def __init__(
        self,
        session: Session,
        clip: EncodedClip,
        *,
        speech_end_s: float | None,
        mode: TurnMode,
        pace: float,
        limits: Limits,
        caller_done: Callable[[int], None],
    ) -> None:
        """`caller_done` is called with the stamp of the commit, or with the end of the clip where we send none."""
        self._session = session
        self._clip = clip
        self._speech_end_s = speech_end_s
        self._commits = mode is TurnMode.MANUAL
        self._continuous = session.dialect.capabilities.continuous_audio
        self._pace = pace
        self._limits = limits
        self._caller_done = caller_done
        self._scheduled: Scheduled | None = None
        self._origin_ns = 0
        self._audio_end_ns: int | None = None
        """End of the clip, once its last piece has left."""
        self._stopped_ns: int | None = None
        self._taken = False
        self.marks: dict[Mark, int] = {}
        self.lateness = Lateness()
        self.padded_s = 0.0
        self.trailing_silence_s = 0.0
        self.backlog_bytes = 0
        """Audio that the operating system had not taken when the commit was due: the peer does not read."""

    # --- control

    def start(self, ticker: Ticker, clock: Clock, failed: Callable[[Exception], None]) -> None:
        """Begin within one chunk length, at a random moment of it. `failed` is given what goes wrong in between."""
        steps = self._steps()
        first_ns = clock.now_ns() + ticker.phase_ns(chunk_ns(self._clip.chunk_ms, self._pace))
        next(steps)
        self._scheduled = ticker.add(first_ns, lambda: next(steps, None), failed)

    def play_at_once(self) -> None:
        """File mode: hand every piece over, to be held, and commit."""
        self._session.start_turn()
        for frame in self._clip.frames:
            self._session.send_chunk(frame)
        for frame, duration_ms in self._padding():
            self._session.send_chunk(frame)
            self.padded_s += duration_ms / 1000
        self._commit()

    def stop(self, t_ns: int) -> None:
        """No audio and no commit from now on. Markers owed for what was sent are the dialect's, at close."""
        if self._scheduled is not None and self._stopped_ns is None:
            self._stopped_ns = t_ns
            self._scheduled.cancel()
            self._scheduled = None

    def turn_taken(self, t_ns: int) -> None:
        """The peer ended the caller's turn, or began to answer it, at `t_ns`: no more trailing silence.

        Before the end of the caller's speech it means nothing: the caller speaks on.
        """
        speech_end_ns = self._speech_end_ns()
        if speech_end_ns is not None and t_ns >= speech_end_ns:
            self._taken = True

    def finished_marks(self) -> dict[Mark, int]:
        """Marks of the caller's turn; ends of speech and audio only if they were reached, and pace is not 0."""
        marks = dict(self.marks)
        reached_ns = self._audio_end_ns or self._stopped_ns or 0
        for mark, end_ns in (
            (Mark.CALLER_SPEECH_END, self._speech_end_ns() if self._speech_end_s is not None else None),
            (Mark.CALLER_AUDIO_END, self._end_ns()),
        ):
            if self._pace and Mark.FIRST_CHUNK in marks and end_ns is not None and end_ns <= reached_ns:
                marks[mark] = end_ns
        return marks

    # --- the course of a turn

    def _steps(self) -> Generator[int, None, None]:
        step_ns = chunk_ns(self._clip.chunk_ms, self._pace)
        yield 0  # the ticker knows when
        self._session.start_turn()
        frames = iter(self._clip.frames)
        # Time counts from the first piece: a wait before it is never made up for with a burst.
        self._origin_ns = self.marks[Mark.FIRST_CHUNK] = self.marks[Mark.LAST_CHUNK] = self._session.send_chunk(
            next(frames)
        )
        self.lateness.each_ns.append(0)
        pieces_per_ping = max(1, _PING_EVERY_MS // self._clip.chunk_ms)
        for k, frame in enumerate(frames, start=1):
            due_ns = self._origin_ns + k * step_ns
            yield due_ns
            self.marks[Mark.LAST_CHUNK] = self._send(frame, due_ns)
            if self._pace and k % pieces_per_ping == pieces_per_ping // 2:
                self._session.ping()
        self.lateness.last_chunk_ns = self.lateness.each_ns[-1]
        self._audio_end_ns = self._end_ns()
        if self._commits:
            yield from self._pad_and_commit(self._audio_end_ns)
        else:
            yield from self._trail(self._audio_end_ns)

    def _pad_and_commit(self, due_ns: int) -> Generator[int, None, None]:
        for frame, duration_ms in self._padding():
            yield due_ns
            self._send(frame, due_ns)
            self.padded_s += duration_ms / 1000
            due_ns += chunk_ns(duration_ms, self._pace)
        yield due_ns
        self.backlog_bytes = self._session.backlog_bytes()
        sent_ns = self._commit()
        self.lateness.commit_ns = sent_ns - due_ns if self._pace else None

    def _trail(self, due_ns: int) -> Generator[int, None, None]:
        """Silence at the pace of the clip (real time at pace 0) until the turn is taken, `stop`, or the limit.

        Where audio is continuous it goes on while the agent answers, and the turn limit bounds it.
        """
        yield due_ns
        self._caller_done(due_ns if self._pace else self._session.clock.now_ns())
        if self._clip.filler_samples:
            due_ns += audio_ns(self._clip.filler_samples, self._clip.rate_hz, self._pace)
            yield due_ns
        chunk_ms = self._clip.chunk_ms
        silence = self._session.dialect.encode_silence(self._clip.rate_hz, chunk_ms)
        step_ns = chunk_ns(chunk_ms, self._pace or 1.0)
        limit_s = self._limits.turn_s if self._continuous else self._limits.trailing_silence_s
        for _ in range(int(limit_s * 1000) // chunk_ms):
            if self._taken and not self._continuous:
                return
            sent_ns = self._send(silence, due_ns)
            self.trailing_silence_s += chunk_ms / 1000
            due_ns = next_silence_due_ns(due_ns, sent_ns, step_ns)
            yield due_ns

    def _send(self, frame: OutFrame, due_ns: int) -> int:
        sent_ns = self._session.send_chunk(frame)
        self.lateness.each_ns.append(sent_ns - due_ns if self._pace else 0)
        return sent_ns

    def _commit(self) -> int:
        sent_ns = self.marks[Mark.COMMIT] = self._session.commit_turn()
        self._caller_done(sent_ns)
        return sent_ns

    def _padding(self) -> list[tuple[OutFrame, int]]:
        clip = self._clip
        missing_ms = padding_ms(clip.samples, clip.rate_hz, self._session.dialect.capabilities.min_commit_s)
        return [
            (self._session.dialect.encode_silence(clip.rate_hz, piece_ms), piece_ms)
            for piece_ms in pieces_ms(missing_ms, clip.chunk_ms)
        ]

    def _end_ns(self) -> int:
        return self._origin_ns + audio_ns(self._clip.samples, self._clip.rate_hz, self._pace)

    def _speech_end_ns(self) -> int | None:
        """End of the caller's speech, else of the clip; None before the first piece."""
        if Mark.FIRST_CHUNK not in self.marks:
            return None
        if self._speech_end_s is None or not self._pace:
            return self._end_ns()
        return min(self._origin_ns + round(self._speech_end_s * 1e9 / self._pace), self._end_ns())
