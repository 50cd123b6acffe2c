"""One caller turn on an open session, or the results of calls, and the answer to it.

Neither opens nor closes the session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from adapters.dialect import EncodedClip, TurnMode
from adapters.session import Session
from captures.capture import Ending, ErrorInfo, Mark, ObservedCall, Pacing
from captures.clock import Clock
from captures.events import (
    AnswerEnded,
    AudioDelta,
    Failed,
    Refused,
    SpeechStopped,
    TimedEvent,
    ToolCall,
    TurnCommitted,
)
from captures.frames import ClosedBy
from captures.playback import first_audible
from turn_control.answer import AnswerTracker, Content, Verdict
from turn_control.limits import Limits
from turn_control.notes import Notes
from turn_control.pacing import Lateness
from turn_control.player import ClipPlayer
from turn_control.reply import Reply
from turn_control.ticker import Scheduled, Ticker

_ENDS_CALLER_TURN = SpeechStopped | TurnCommitted | AnswerEnded | Content


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """A caller turn as audio."""

    clip: EncodedClip
    speech_end_s: float | None = None
    """End of the caller's speech from the start of the clip; None when unknown (then no mark is made of it)."""


@dataclass(frozen=True, slots=True)
class TextTurn:
    """A caller turn as text (text twin)."""

    text: str


@dataclass(frozen=True, slots=True)
class ResultTurn:
    """No turn of the caller: results of calls go back, and the agent goes on."""

    results: Mapping[str, str]
    """Call id → output, of every call that is open: many vendors go on only once each has its result."""


CallerTurn = SpokenTurn | TextTurn | ResultTurn


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """All that one turn showed; the turn's part of a capture."""

    ending: Ending
    detail: str
    error: ErrorInfo | None
    calls: tuple[ObservedCall, ...]
    """Lowest output index first, incomplete ones included."""
    marks: dict[Mark, int]
    """Marks of the turn, without the session's own (monotonic ns)."""
    pacing: Pacing
    reply_pieces: tuple[tuple[int, bytes], ...]
    """Reply audio as it arrived: (stamp in monotonic ns, PCM16 mono bytes)."""
    reply_rate_hz: int | None
    """Of the reply audio; None when there was none."""
    reply_text: str
    reply_transcript: str
    input_transcript: str | None
    input_tags: tuple[str, ...] | None
    usage: dict[str, Any] | None
    served: dict[str, Any] | None
    warnings: tuple[str, ...]
    closed: ClosedBy | None
    """How the connection ended, if it did during the turn."""


async def play_turn(
    session: Session,
    turn: CallerTurn,
    *,
    ticker: Ticker,
    clock: Clock,
    limits: Limits | None = None,
    mode: TurnMode = TurnMode.MANUAL,
    pace: float = 1.0,
    cut_in_s: float | None = None,
    belongs_before: Callable[[TimedEvent], bool] | None = None,
) -> TurnRecord:
    """Play one caller turn in real time and wait for the end of the answer.

    `session` is open; `clock` is the one that stamps its frames and drives `ticker`. `mode` says who ends the caller's
    turn (a spoken one). `pace` divides every interval: 1.0 is real time, 0 sends all at once. Takes at most the clip's
    length plus `limits.turn_s`, and may be cancelled at any time. With `cut_in_s` it ends as well once the agent's
    speech has been audible for that many seconds. Events for which `belongs_before` is true are an earlier answer's.

    Raises:
        ValueError: a clip without frames, or a negative pace.
    """
    capabilities = session.dialect.capabilities
    if isinstance(turn, SpokenTurn) and not turn.clip.frames:
        raise ValueError("the clip has no audio")
    if pace < 0:
        raise ValueError(f"pace is {pace:g}; it must be 0 or more")
    running = _Turn(session, turn, ticker, clock, limits or Limits(), mode, pace, cut_in_s, belongs_before)
    spoken_as = TurnMode.PUSH_TEXT if isinstance(turn, TextTurn) else mode
    if isinstance(turn, SpokenTurn) and (mode is TurnMode.PUSH_TEXT or mode not in capabilities.turn_modes):
        offered = ", ".join(sorted(capabilities.turn_modes))
        return running.refused(f"turn control {spoken_as.value!r} is not possible here for speech (offered: {offered})")
    if isinstance(turn, TextTurn) and not capabilities.text_twin:
        return running.refused("this dialect takes no caller turn as text")
    if isinstance(turn, ResultTurn) and not capabilities.second_turn:
        return running.refused("this dialect takes no result of a call")
    return await running.play()


class _Turn:
    def __init__(
        self,
        session: Session,
        turn: CallerTurn,
        ticker: Ticker,
        clock: Clock,
        limits: Limits,
        mode: TurnMode,
        pace: float,
        cut_in_s: float | None,
        belongs_before: Callable[[TimedEvent], bool] | None,
    ) -> None:
        self._session = session
        self._turn = turn
        self._ticker = ticker
        self._clock = clock
        self._pace = pace
        self._detects = mode is not TurnMode.MANUAL
        self._notes = Notes(limits.max_warnings)
        self._tracker = AnswerTracker(session.dialect.capabilities, limits, self._notes)
        capabilities = session.dialect.capabilities
        self._reply = Reply(limits, self._notes, from_first_sound=capabilities.ends_by_silence_s is not None)
        self._ends_audio = Failed | Refused if capabilities.continuous_audio else ToolCall | Failed | Refused
        self._player: ClipPlayer | None = None
        if isinstance(turn, SpokenTurn):
            self._player = ClipPlayer(
                session,
                turn.clip,
                speech_end_s=turn.speech_end_s,
                mode=mode,
                pace=pace,
                limits=limits,
                caller_done=self._caller_done,
            )
        self._text_marks: dict[Mark, int] = {}
        self._started_ns = 0
        self._woken = anyio.Event()
        self._fault: Exception | None = None
        self._timer: Scheduled | None = None
        self._timer_ns = 0
        self._cut_in_s = cut_in_s
        self._cut_in_ns: int | None = None
        self._belongs_before = belongs_before

    async def play(self) -> TurnRecord:
        self._started_ns = self._clock.now_ns()
        self._session.listen(self._on_event, self._on_closed)
        try:
            if self._session.failure is not None:
                self._on_event(TimedEvent(self._started_ns, self._session.failure))
            if self._session.closed is not None:
                self._on_closed(self._session.closed)
            if self._tracker.deadline_ns() is None:
                self._begin()
            while (verdict := self._verdict()) is None:
                await self._woken.wait()
                if self._fault is not None:
                    raise self._fault
                self._woken = anyio.Event()
                self._review()
        finally:
            self._session.listen(None)
            if self._player is not None:
                self._player.stop(self._clock.now_ns())
            if self._timer is not None:
                self._timer.cancel()
        record = self._record(verdict)
        self._player = None  # it refers back to this turn: the two would wait for the garbage collector
        return record

    def refused(self, message: str) -> TurnRecord:
        """The record of a turn that was never played."""
        error = ErrorInfo(kind="refused", code="turn_control", message=message)
        return self._record(Verdict(Ending.CONFIGURATION_ERROR, error=error))

    def _begin(self) -> None:
        if isinstance(self._turn, TextTurn):
            self._sent_at_once(self._session.text(self._turn.text))
        elif isinstance(self._turn, ResultTurn):
            sent_ns = self._started_ns
            for call_id, output in self._turn.results.items():
                sent_ns = self._session.tool_result(call_id, output)
            self._sent_at_once(sent_ns)
        elif self._player is not None and self._session.dialect.capabilities.streams_audio:
            self._player.start(self._ticker, self._clock, self._failed)
        elif self._player is not None:
            self._player.play_at_once()

    def _sent_at_once(self, sent_ns: int) -> None:
        self._text_marks[Mark.COMMIT] = sent_ns
        self._caller_done(sent_ns)

    # --- called on the event loop, between awaits

    def _on_event(self, timed: TimedEvent) -> None:
        event = timed.event
        if self._belongs_before is not None and self._belongs_before(timed):
            return
        due_ns = self._due_ns()
        if due_ns is not None and due_ns < timed.t_ns:
            # The turn was over before this came, though a busy loop has not said so yet.
            self._tracker.came_late(event)
            self._woken.set()
            return
        self._tracker.feed(timed)
        self._reply.feed(timed)
        if self._cut_in_s is not None and self._cut_in_ns is None and isinstance(event, AudioDelta):
            heard_ns = first_audible(self._reply.pieces, event.rate_hz)
            self._cut_in_ns = None if heard_ns is None else heard_ns + round(self._cut_in_s * 1e9)
        if self._player is not None:
            if isinstance(event, self._ends_audio):
                self._player.stop(timed.t_ns)
            elif self._detects and isinstance(event, _ENDS_CALLER_TURN):
                self._player.turn_taken(timed.t_ns)
        self._review()

    def _on_closed(self, closed: ClosedBy) -> None:
        self._tracker.closed(closed)
        if self._player is not None:
            self._player.stop(closed.t_ns)
        self._review()

    def _caller_done(self, t_ns: int) -> None:
        if self._player is not None and self._player.backlog_bytes and self._pace:
            self._notes.add(
                f"{self._player.backlog_bytes} bytes of audio were still unsent at the commit: slow peer or net"
            )
        marks = self._player.finished_marks() if self._player is not None else {}
        self._tracker.caller_done(t_ns, marks.get(Mark.CALLER_SPEECH_END))
        self._review()

    def _failed(self, error: Exception) -> None:
        self._fault = error
        self._woken.set()

    def _review(self) -> None:
        """Wake the turn if its verdict is due, or set the ticker to the moment when it will be.

        The verdict itself is read a little later, after all events of the same frame.
        """
        due_ns = self._due_ns()
        if due_ns is None:
            return
        if due_ns <= self._clock.now_ns():
            self._woken.set()
        elif self._timer is None or not self._timer.active or due_ns < self._timer_ns:
            if self._timer is not None:
                self._timer.cancel()
            self._timer, self._timer_ns = self._ticker.add(due_ns, self._on_timer, self._failed), due_ns

    def _due_ns(self) -> int | None:
        return min((ns for ns in (self._tracker.deadline_ns(), self._cut_in_ns) if ns is not None), default=None)

    def _verdict(self) -> Verdict | None:
        now_ns = self._clock.now_ns()
        verdict = self._tracker.verdict(now_ns)
        if verdict is None and self._cut_in_ns is not None and now_ns >= self._cut_in_ns:
            return self._tracker.cut_in(f"the caller cut in after {self._cut_in_s:g} s of speech")
        return verdict

    def _on_timer(self) -> int | None:
        due_ns = self._due_ns()
        if due_ns is None or due_ns <= self._clock.now_ns():
            self._woken.set()
            return None
        self._timer_ns = due_ns
        return due_ns

    # --- the record

    def _record(self, verdict: Verdict) -> TurnRecord:
        marks = {**self._text_marks, **self._tracker.marks()}
        if self._player is not None:
            marks |= self._player.finished_marks()
        return TurnRecord(
            ending=verdict.ending,
            detail=verdict.detail,
            error=verdict.error,
            calls=self._tracker.calls(),
            marks=marks,
            pacing=self._pacing(marks),
            reply_pieces=tuple(self._reply.pieces),
            reply_rate_hz=self._reply.rate_hz,
            reply_text=self._reply.text,
            reply_transcript=self._reply.transcript,
            input_transcript=self._reply.input_transcript,
            input_tags=self._reply.input_tags,
            usage=self._reply.usage,
            served=self._reply.served,
            warnings=self._notes.kept(),
            closed=self._session.closed,
        )

    def _pacing(self, marks: dict[Mark, int]) -> Pacing:
        origin_ns = marks.get(Mark.COMMIT, marks.get(Mark.CALLER_SPEECH_END, self._started_ns))
        lags = self._ticker.lags_between(origin_ns, marks.get(Mark.ANSWER_END, self._clock.now_ns()))
        if self._player is None or not isinstance(self._turn, SpokenTurn):
            return Lateness().pacing(pace=self._pace, chunk_ms=0, loop_lags=lags)
        return self._player.lateness.pacing(
            pace=self._pace,
            chunk_ms=self._turn.clip.chunk_ms,
            padded_s=self._player.padded_s,
            trailing_silence_s=self._player.trailing_silence_s,
            loop_lags=lags,
        )
