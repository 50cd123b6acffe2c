"""One turn's answer, decided by the stamps of its events: what `turn_control.turn` does, without its clock. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.dialect import Capabilities, ClientDialect
from captures.capture import Mark, ReplyAudio
from captures.events import AudioDelta, TimedEvent
from captures.frames import ClosedBy
from captures.playback import first_audible, play
from turn_control.answer import AnswerTracker, Verdict
from turn_control.limits import Limits
from turn_control.notes import Notes
from turn_control.reply import Reply

DERIVED_MARKS = (
    Mark.SERVER_SPEECH_STOPPED,
    Mark.FIRST_EVENT,
    Mark.FIRST_TEXT,
    Mark.FIRST_AUDIO,
    Mark.FIRST_AUDIBLE,
    Mark.FIRST_CALL_NAMED,
    Mark.FIRST_CALL_COMPLETE,
    Mark.ANSWER_END,
)
"""Marks that follow from what was received; the others are our own doing, and observed."""
_AFTER_ALL = 2**63 - 1


class DerivedTurn:
    """Takes the events of a turn in the order of their stamps, until its answer has ended."""

    def __init__(
        self, able: Capabilities, limits: Limits, marks: Mapping[Mark, int], cut_in_s: float | None = None
    ) -> None:
        """`marks` are the turn's stored ones. `cut_in_s`: the caller cut in after so much audible speech."""
        notes = Notes(limits.max_warnings)
        self._tracker = AnswerTracker(able, limits, notes)
        self._reply = Reply(limits, notes, from_first_sound=able.ends_by_silence_s is not None)
        self._marks = marks
        self._cut_in_s = cut_in_s
        self._cut_in_ns: int | None = None
        self._caller_done = False
        self._verdict: Verdict | None = None

    @property
    def cut_in_ns(self) -> int | None:
        """When the caller was due to cut in; None while nothing audible was said."""
        return self._cut_in_ns

    @property
    def reply_rate_hz(self) -> int | None:
        """Of the reply's audio; None when there was none."""
        return self._reply.rate_hz

    def feed(self, timed: TimedEvent) -> bool:
        """Take one event; False when the answer had ended before it."""
        if self._over(timed.t_ns):
            return False
        self._caller_may_be_done(timed.t_ns)
        if self._over(timed.t_ns):
            return False
        self._tracker.feed(timed)
        self._reply.feed(timed)
        if self._cut_in_s is not None and self._cut_in_ns is None and isinstance(timed.event, AudioDelta):
            heard_ns = first_audible(self._reply.pieces, timed.event.rate_hz)
            self._cut_in_ns = None if heard_ns is None else heard_ns + round(self._cut_in_s * 1e9)
        return True

    def end(self, closed: ClosedBy | None, client: ClientDialect) -> Verdict | None:
        """The verdict after the last event; None where nothing ended the answer.

        `closed` is how the peer ended the connection, where it did.
        """
        self._caller_may_be_done(_AFTER_ALL)
        if not self._over(_AFTER_ALL) and closed is not None:
            event = client.closed(closed)
            if event is not None:
                self._tracker.feed(TimedEvent(closed.t_ns, event))
            self._tracker.closed(closed)
            self._over(_AFTER_ALL)
        return self._verdict

    def fields(self, verdict: Verdict, file: str | None = None) -> dict[str, Any]:
        """What follows from the answer, by the names of `Capture` and `LaterTurn`. `file`: of the reply's audio."""
        reply = self._reply
        marks = {mark: ns for mark, ns in self._marks.items() if mark not in DERIVED_MARKS} | self._tracker.marks()
        audio: ReplyAudio | None = None
        if reply.rate_hz is not None:
            heard = play(reply.pieces, reply.rate_hz)
            if heard.first_audible_ns is not None:
                marks[Mark.FIRST_AUDIBLE] = heard.first_audible_ns
            audio = ReplyAudio(
                rate_hz=reply.rate_hz,
                received_s=heard.received_s,
                leading_silence_s=heard.leading_silence_s,
                stray_bytes=heard.stray_bytes,
                gaps=heard.gaps,
                gaps_s=heard.gaps_s,
                file=file,
            )
        return {
            "ending": verdict.ending,
            "ending_detail": verdict.detail,
            "error": verdict.error,
            "calls": self._tracker.calls(),
            "reply_text": reply.text,
            "reply_transcript": reply.transcript,
            "input_transcript": reply.input_transcript,
            "input_tags": reply.input_tags,
            "usage": reply.usage,
            "marks": marks,
            "reply_audio": audio,
        }

    def _caller_may_be_done(self, now_ns: int) -> None:
        """Tell of the end of the caller's turn, once it lies before `now_ns`."""
        done_ns = self._marks.get(Mark.COMMIT, self._marks.get(Mark.CALLER_AUDIO_END))
        if not self._caller_done and done_ns is not None and done_ns <= now_ns:
            self._caller_done = True
            self._tracker.caller_done(done_ns, self._marks.get(Mark.CALLER_SPEECH_END))

    def _over(self, now_ns: int) -> bool:
        """True once the answer had ended before `now_ns`."""
        if self._verdict is None:
            due_ns = self._tracker.deadline_ns()
            cut_ns = self._cut_in_ns
            if due_ns is not None and due_ns < now_ns and (cut_ns is None or due_ns <= cut_ns):
                self._verdict = self._tracker.verdict(due_ns)
            elif cut_ns is not None and cut_ns < now_ns:
                self._verdict = self._tracker.cut_in(f"the caller cut in after {self._cut_in_s:g} s of speech")
        return self._verdict is not None
