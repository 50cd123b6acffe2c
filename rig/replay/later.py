"""Turns after the first one, derived anew: the answers to a call's result, to the scripted reply, to a barge-in.

Which turns were played, and when we spoke, cut in or sent a result, is observed and stays; what the agent did then
follows from the frames. A spoken turn began at a random moment of the chunk before its first piece: what arrived within
that chunk, and was of no earlier answer, is taken as its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapters.dialect import Capabilities, ClientDialect, TurnMode
from captures.capture import BargeIn, Capture, Ending, LaterTurn, Mark
from captures.clock import Clock
from captures.events import TimedEvent
from captures.frames import ClosedBy
from rig.replay.source import ReplayError
from rig.replay.turns import DerivedTurn
from turn_control.barge_in import InterruptedAnswer
from turn_control.limits import Limits


@dataclass(frozen=True, slots=True)
class _Stopped:
    """A clock at the moment of the cut."""

    at_ns: int

    def now_ns(self) -> int:
        return self.at_ns


@dataclass(slots=True)
class _StoredCall:
    """A stored call in place of a session: what we sent then is not sent again."""

    events: list[TimedEvent]
    dialect: ClientDialect
    clock: Clock
    _barge_in: BargeIn

    def cancel(self) -> int | None:
        return self.clock.now_ns() if self._barge_in.cancelled else None

    def truncate(self, audio_ms: int) -> int | None:
        return None if self._barge_in.truncated_ms is None else self.clock.now_ns()


class LaterTurns:
    """Derives the later turns of one stored call."""

    def __init__(
        self,
        capture: Capture,
        events: Sequence[TimedEvent],
        taken: int,
        client: ClientDialect,
        limits: Limits,
        step_ns: int,
    ) -> None:
        """`events` of the whole call, by their stamps, of which the first turn took `taken`.

        `step_ns` is one chunk at the run's pace.
        """
        self._capture = capture
        self._events = events
        self._taken = taken
        self._client = client
        self._able: Capabilities = client.capabilities
        self._limits = limits
        self._step_ns = step_ns

    def second_turn(self) -> dict[str, LaterTurn]:
        """The answers of the second turn that were stored, by field. Raises ReplayError when one does not end."""
        second = self._capture.second_turn
        if second is None:
            return {}
        stored = {"after_result": second.after_result, "answer": second.answer}
        played = [(name, turn) for name, turn in stored.items() if turn is not None]
        last = played[-1][0] if played else ""
        return {name: self._derived(name, turn, self._closed(turn, name == last)) for name, turn in played}

    def _derived(
        self,
        name: str,
        stored: LaterTurn,
        closed: ClosedBy | None,
        belongs_before: Callable[[TimedEvent], bool] = lambda timed: False,
    ) -> LaterTurn:
        began_ns = self._began_ns(stored)
        if began_ns is None:
            return stored  # nothing of it was ever said
        turn = DerivedTurn(self._able, self._limits, stored.marks)
        for timed in self._events[self._taken :]:
            if timed.t_ns >= began_ns and not belongs_before(timed) and not turn.feed(timed):
                break
            self._taken += 1
        verdict = turn.end(closed, self._client)
        if verdict is None:
            if stored.ending is Ending.INFRASTRUCTURE_ERROR:
                return stored  # how a connection broke is in no frame
            raise ReplayError(f"the stored frames hold no end of the answer ({name})")
        return stored.model_copy(update=turn.fields(verdict))

    def _began_ns(self, stored: LaterTurn) -> int | None:
        first_ns = stored.marks.get(Mark.FIRST_CHUNK)
        return stored.marks.get(Mark.COMMIT) if first_ns is None else first_ns - self._step_ns

    def _closed(self, stored: LaterTurn, last: bool) -> ClosedBy | None:
        capture = self._capture
        if not last or capture.close_code is None:
            return None
        return ClosedBy(stored.marks.get(Mark.ANSWER_END, 0), capture.close_code, capture.close_reason, True)

    def barge_in(self, first: DerivedTurn, mode: TurnMode, clip_ns: int) -> BargeIn | None:
        """What the agent did when it was cut in on, in its answer `first`, for `clip_ns`; None where it was not.

        Raises ReplayError when its answer to the clip does not end, or `first` holds no speech.
        """
        stored = self._capture.barge_in
        if stored is None or stored.onset_ns is None or stored.answer is None:
            return None
        if first.cut_in_ns is None or first.reply_rate_hz is None:
            raise ReplayError("the stored frames hold no speech that could have been cut in on")
        manual = mode is TurnMode.MANUAL
        cut_ns = stored.onset_ns if manual and stored.stopped_by == "us" else min(first.cut_in_ns, stored.onset_ns)
        ready_ns = self._capture.marks.get(Mark.SESSION_READY, 0)
        before = [timed for timed in self._events if timed.t_ns <= cut_ns]
        self._taken = len(before)
        call = _StoredCall(list(before), self._client, _Stopped(cut_ns), stored)
        known = sum(timed.t_ns <= ready_ns for timed in before)
        watch = InterruptedAnswer(call, first.reply_rate_hz, known)
        watch.cut_in(clip_ns, manual=manual)

        def belongs_before(timed: TimedEvent) -> bool:
            call.events.append(timed)
            return watch.takes(timed)

        closed = self._closed(stored.answer, True)
        answer = self._derived("barge_in.answer", stored.answer, closed, belongs_before)
        last_ns = watch.speech.playback().last_audible_ns
        return stored.model_copy(
            update={
                "last_audible_ns": last_ns,
                "stop_latency_s": None if last_ns is None else (last_ns - stored.onset_ns) / 1e9,
                "stopped_by": watch.stopped_by,
                "calls_after_onset": watch.calls,
                "answer": answer,
            }
        )
