"""When an answer has ended, and how: a state machine over events and times. Pure; reads no clock.

An answer never ends at its first call, since a second may contradict it.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapters.dialect import Capabilities
from captures.capture import Ending, ErrorInfo, Mark, ObservedCall
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioCleared,
    AudioDelta,
    Delegated,
    Event,
    Failed,
    FailureKind,
    Interrupted,
    Refused,
    SpeechStopped,
    TextDelta,
    TimedEvent,
    ToolCall,
    ToolCallArguments,
    ToolCallStarted,
    TranscriptDelta,
    Unrecognised,
    Warned,
)
from captures.frames import ClosedBy
from captures.playback import is_loud
from turn_control.calls import CallBook
from turn_control.limits import Limits
from turn_control.notes import Notes

Content = ToolCallStarted | ToolCallArguments | ToolCall | TextDelta | TranscriptDelta | AudioDelta
"""Events that are a part of an answer."""

_SHOWN_CHARS = 500


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an answer ended."""

    ending: Ending
    detail: str = ""
    error: ErrorInfo | None = None
    answer_end_ns: int | None = None
    """End of the agent's turn; None when it was never seen to end."""


class AnswerTracker:
    """Follows one turn of one session and decides its ending."""

    def __init__(self, capabilities: Capabilities, limits: Limits, notes: Notes) -> None:
        """What a reader of the record should know, and no field of it says, goes into `notes`."""
        self._waits = capabilities.waits_for_tool_result
        self._without_call = Ending.DECLINED if capabilities.sees_tools else Ending.ANSWERED
        self._continuous = capabilities.continuous_audio
        self._silence_s = capabilities.ends_by_silence_s
        self._grace_ns = round(capabilities.late_call_grace_s * 1e9)
        self._quiet_ns = round(limits.quiet_s * 1e9)
        self._limits = limits
        self._notes = notes
        self._calls = CallBook(limits, notes)
        self._marks: dict[Mark, int] = {}
        self._caller_done_ns: int | None = None
        self._last_content_ns: int | None = None
        self._heard_until_ns = 0
        """End of what arrived so far as it would be heard: speech may come faster than it plays."""
        self._speech_end_ns: int | None = None
        self._open_work: set[str] = set()
        self._work_ended_ns = 0
        self._end: tuple[int, AnswerEnded] | None = None
        self._end_is_early = False
        self._complaint: Warned | None = None
        self._unread: Unrecognised | None = None
        self._failure: tuple[int, Failed | Refused] | None = None
        self._closed: ClosedBy | None = None
        self._verdict: Verdict | None = None

    # --- what happened

    def caller_done(self, t_ns: int, speech_end_ns: int | None = None) -> None:
        """The caller's turn is over (commit, or end of the clip where the peer detects it): the turn limit starts.

        `speech_end_ns` is the end of the caller's speech, where it is known to lie before that.
        """
        if self._caller_done_ns is None:
            self._caller_done_ns = t_ns
            self._speech_end_ns = t_ns if speech_end_ns is None else speech_end_ns

    def feed(self, timed: TimedEvent) -> None:
        """Take one event, in order of arrival. After the verdict, nothing counts."""
        if self._verdict is not None:
            return
        t_ns, event = timed.t_ns, timed.event
        if isinstance(event, Content):
            if self._is_content(event):
                self._take_content(t_ns, event)
        elif isinstance(event, AudioCleared):
            self._heard_until_ns = min(self._heard_until_ns, t_ns)
        elif isinstance(event, Delegated):
            self._take_work(t_ns, event)
        elif isinstance(event, AnswerEnded):
            self._take_end(t_ns, event)
        elif isinstance(event, Refused | Failed):
            if self._failure is None:
                self._failure = (t_ns, event)
        elif isinstance(event, SpeechStopped):
            if self._last_content_ns is None or self._caller_done_ns is None:
                self._marks[Mark.SERVER_SPEECH_STOPPED] = t_ns
        elif isinstance(event, Warned):
            self._notes.add(f"{event.code}: {event.message}")
            if event.spoils_turn and self._caller_done_ns is not None and self._complaint is None:
                self._complaint = event
        elif isinstance(event, Unrecognised):
            if event.unreadable and self._unread is None:
                self._notes.add(f"unreadable: {event.summary}")
                self._unread = event
        elif isinstance(event, Interrupted) and self._last_content_ns is not None:
            self._notes.add("the agent's speech was interrupted")

    def came_late(self, event: Event) -> None:
        """Note what is no part of the answer, since its end had come."""
        if self._end is not None and isinstance(event, Content):
            self._notes.add(f"{type(event).__name__} after the end of the answer is not kept")

    def closed(self, closed: ClosedBy) -> None:
        """The connection has ended."""
        if self._closed is None:
            self._closed = closed

    def _is_content(self, event: Content) -> bool:
        """False for the silence of an agent whose audio never pauses."""
        return self._silence_s is None or not isinstance(event, AudioDelta) or is_loud(event.pcm, event.rate_hz)

    def _take_work(self, t_ns: int, event: Delegated) -> None:
        if not event.open:
            self._open_work.discard(event.work_id)
            self._work_ended_ns = t_ns
        elif len(self._open_work) < self._limits.max_calls:
            self._open_work.add(event.work_id)

    def _take_content(self, t_ns: int, event: Content) -> None:
        if self._end is not None:
            if self._end_is_early:
                self._end = None  # that answer was to half a question; this one goes on
            elif t_ns > self._end[0] + self._grace_ns:
                self.came_late(event)
                return
        self._last_content_ns = t_ns
        if isinstance(event, AudioDelta):
            length_ns = len(event.pcm) // 2 * 1_000_000_000 // event.rate_hz
            self._heard_until_ns = max(self._heard_until_ns, t_ns) + length_ns
        # What comes beside the connection may have an earlier stamp than what came before it.
        self._marks[Mark.FIRST_EVENT] = min(t_ns, self._marks.get(Mark.FIRST_EVENT, t_ns))
        if isinstance(event, TextDelta):
            self._marks.setdefault(Mark.FIRST_TEXT, t_ns)
        elif isinstance(event, AudioDelta):
            if event.pcm:
                self._marks.setdefault(Mark.FIRST_AUDIO, t_ns)
        elif isinstance(event, ToolCallStarted | ToolCallArguments | ToolCall):
            self._calls.feed(t_ns, event)
            if isinstance(event, ToolCall) and self._caller_done_ns is None and not self._continuous:
                self._notes.add("a tool call came before the end of the caller's turn; the audio stopped there")
                self.caller_done(t_ns)

    def _take_end(self, t_ns: int, event: AnswerEnded) -> None:
        if self._end is not None and not self._end_is_early:
            return
        early = self._caller_done_ns is None
        if early and self._last_content_ns is None:
            self._notes.add("an end of an answer without content came while the caller was speaking; it ended nothing")
            return
        self._marks.setdefault(Mark.FIRST_EVENT, t_ns)
        self._end, self._end_is_early = (t_ns, event), early

    # --- what it means

    def deadline_ns(self) -> int | None:
        """When the verdict is due unless something arrives before; None while the caller is speaking."""
        broken_ns = self._broken_ns()
        if broken_ns is not None:
            return broken_ns
        due = []
        if self._end is not None and not self._end_is_early:
            due.append(self._end[0] + self._grace_ns)
        if self._waits and self._calls.last_complete_ns is not None:
            assert self._last_content_ns is not None
            due.append(self._last_content_ns + self._quiet_ns)
        silent_ns = self._silent_ns()
        if silent_ns is not None:
            due.append(silent_ns)
        if self._caller_done_ns is not None:
            due.append(self._caller_done_ns + round(self._limits.turn_s * 1e9))
        return min(due, default=None)

    def verdict(self, now_ns: int) -> Verdict | None:
        """The ending, once decided; the first one stays."""
        if self._verdict is None:
            due_ns = self.deadline_ns()
            if due_ns is not None and now_ns >= due_ns:
                self._verdict = self._decide(now_ns)
        return self._verdict

    def cut_in(self, detail: str) -> Verdict:
        """The ending when the caller speaks again now: an answer whose end has come stands, any other is unfinished."""
        if self._verdict is None:
            has_ended = self._end is not None and not self._end_is_early
            self._verdict = self._ended(*self._end) if self._end and has_ended else Verdict(Ending.UNFINISHED, detail)
        return self._verdict

    def calls(self) -> tuple[ObservedCall, ...]:
        """All calls, the lowest output index first, incomplete ones included."""
        return self._calls.calls()

    def marks(self) -> dict[Mark, int]:
        """Marks of the answer so far (monotonic ns)."""
        marks = dict(self._marks)
        first = next(iter(self.calls()), None)
        if first is not None and first.named_ns is not None:
            marks[Mark.FIRST_CALL_NAMED] = first.named_ns
        if first is not None and first.complete_ns is not None:
            marks[Mark.FIRST_CALL_COMPLETE] = first.complete_ns
        if self._verdict is not None and self._verdict.answer_end_ns is not None:
            marks[Mark.ANSWER_END] = self._verdict.answer_end_ns
        return marks

    def _silent_ns(self) -> int | None:
        """When the agent's silence ends its turn; None while it may still begin to answer, or has work open.

        What it said while the caller spoke (a listener's "mhm") is no answer yet; a call is one whenever it came.
        """
        if self._silence_s is None or self._caller_done_ns is None or self._open_work or self._last_content_ns is None:
            return None
        assert self._speech_end_ns is not None
        if self._last_content_ns < self._speech_end_ns and self._calls.last_complete_ns is None:
            return None
        since_ns = max(self._last_content_ns, self._heard_until_ns, self._caller_done_ns, self._work_ended_ns)
        return since_ns + round(self._silence_s * 1e9)

    def _broken_ns(self) -> int | None:
        times = [self._failure[0]] if self._failure is not None else []
        times += [self._closed.t_ns] if self._closed is not None else []
        return min(times, default=None)

    def _decide(self, now_ns: int) -> Verdict:
        if self._end is not None and not self._end_is_early:
            return self._ended(self._end[0], self._end[1])
        if self._broken_ns() is not None:
            return self._broken()
        complete_ns, content_ns = self._calls.last_complete_ns, self._last_content_ns
        if self._waits and complete_ns is not None and content_ns is not None and now_ns >= content_ns + self._quiet_ns:
            return Verdict(Ending.CALLED, "the agent waits for the result", answer_end_ns=content_ns)
        silent_ns = self._silent_ns()
        if silent_ns is not None and content_ns is not None and now_ns >= silent_ns:
            return self._ended(content_ns, AnswerEnded(AnswerEnd.COMPLETED), f"{self._silence_s:g} s of silence")
        return self._out_of_time()

    def _ended(self, t_ns: int, end: AnswerEnded, note: str = "") -> Verdict:
        detail = "; ".join(part for part in (end.detail[:_SHOWN_CHARS], note) if part)
        if end.reason is AnswerEnd.COMPLETED and self._unread is not None and not self._calls:
            return self._unreadable(self._unread)
        if end.reason is AnswerEnd.COMPLETED:
            # A call that never became whole is a wrong call, never a declined one.
            return Verdict(Ending.CALLED if self._calls else self._without_call, detail, answer_end_ns=t_ns)
        reason = f"{end.reason.value}: {detail}" if detail else end.reason.value
        return Verdict(Ending.UNFINISHED, reason, answer_end_ns=t_ns)

    def _broken(self) -> Verdict:
        failure = self._failure[1] if self._failure is not None else None
        if isinstance(failure, Refused):
            error = ErrorInfo(kind="refused", code=failure.code, message=failure.message, where=failure.where)
            return Verdict(Ending.CONFIGURATION_ERROR, error=error)
        if failure is not None:
            error = ErrorInfo(
                kind=failure.kind.value,
                code=failure.code,
                message=failure.message,
                retry_after_s=failure.retry_after_s,
            )
        else:
            assert self._closed is not None
            code = "connection_lost" if self._closed.code is None else str(self._closed.code)
            said = self._closed.reason or "no reason given"
            error = ErrorInfo(
                kind=FailureKind.TRANSIENT.value,
                code=code,
                message=f"the connection ended before the answer did: {said}",
            )
        if self._waits and self._calls.last_complete_ns is not None:
            # Such a peer owed nothing more after its call.
            return Verdict(
                Ending.CALLED,
                f"then {error.code}: {error.message}"[:_SHOWN_CHARS],
                answer_end_ns=self._last_content_ns,
            )
        return Verdict(Ending.INFRASTRUCTURE_ERROR, error=error)

    def _out_of_time(self) -> Verdict:
        if self._end is not None:
            return self._ended(*self._end, note="answered before the caller had finished")
        if self._unread is not None and not self._calls:
            return self._unreadable(self._unread)
        limit = f"{self._limits.turn_s:g} s"
        if self._open_work:
            return Verdict(Ending.UNFINISHED, f"turn limit of {limit} passed with delegated work open")
        if self._last_content_ns is not None and not self._only_listened():
            return Verdict(Ending.UNFINISHED, f"turn limit of {limit} passed while answering")
        if self._complaint is not None:
            message = f"{self._complaint.message} (and no answer followed within {limit})"
            error = ErrorInfo(kind=FailureKind.PROTOCOL.value, code=self._complaint.code, message=message)
            return Verdict(Ending.INFRASTRUCTURE_ERROR, error=error)
        return Verdict(Ending.NO_ANSWER, f"nothing within {limit}")

    def _unreadable(self, unread: Unrecognised) -> Verdict:
        """What could not be read may have been a call: nothing shows that the agent declined, or said nothing."""
        message = f"the answer holds a message that cannot be read, and no call: {unread.summary}"
        error = ErrorInfo(kind=FailureKind.PROTOCOL.value, code="unreadable", message=message[:_SHOWN_CHARS])
        return Verdict(Ending.INFRASTRUCTURE_ERROR, error=error)

    def _only_listened(self) -> bool:
        """True when a peer without an end of its turn said something while the caller spoke, and nothing since."""
        return self._silence_s is not None and self._silent_ns() is None
