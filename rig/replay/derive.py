"""A stored call derived anew: its frames through today's client half and today's rules of turns, on the stored stamps.

Nothing is sent and nothing waits: what the event loop did in time is done here in the order of the stamps. The first
turn of finished captures is derived; the rest of a call (second turn, the answer to a barge-in) stays as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adapters.dialect import Capabilities, ClientDialect
from captures.capture import BargeIn, Capture, Mark, ReplyAudio
from captures.events import AudioDelta, TimedEvent
from captures.frames import ClosedBy
from captures.playback import first_audible, play
from rig.config import Config
from rig.replay.events import replay
from rig.replay.source import ReplayError, StoredCall
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
COMPARED = (
    "ending",
    "ending_detail",
    "error",
    "calls",
    "reply_text",
    "reply_transcript",
    "input_transcript",
    "input_tags",
    "usage",
    "marks",
    "reply_audio",
)
"""Fields of a capture that are derived."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that today's code derives otherwise."""

    field: str
    stored: Any
    derived: Any


def derive(call: StoredCall, client: ClientDialect, config: Config) -> Capture:
    """The capture that today's code makes of a stored call.

    Raises ReplayError when its answer does not end within the stored frames.
    """
    capture = call.capture
    able = client.capabilities
    replayed = replay(call, client, config.chunk_ms)
    limits = Limits(
        turn_s=config.limits.turn_s,
        quiet_s=config.limits.quiet_s,
        trailing_silence_s=config.limits.trailing_silence_s,
    )
    turn = _Turn(able, limits, capture.barge_in, config)
    for timed in sorted(replayed.events, key=lambda one: one.t_ns):
        if turn.over(timed.t_ns):
            break
        turn.caller_may_be_done(capture, timed.t_ns)
        if turn.over(timed.t_ns):
            break
        turn.take(timed)
    verdict = turn.end(capture, client)
    return capture.model_copy(update=turn.fields(capture, verdict) | {"parser_version": _parser_version(capture)})


def differences(stored: Capture, derived: Capture) -> list[Difference]:
    """Field by field; marks one by one."""
    before, after = stored.model_dump(mode="json"), derived.model_dump(mode="json")
    found = [
        Difference(name, before[name], after[name])
        for name in COMPARED
        if name not in ("marks", "reply_audio") and before[name] != after[name]
    ]
    for group, names in (
        ("marks", [str(mark) for mark in DERIVED_MARKS]),
        ("reply_audio", ["rate_hz", "received_s", "leading_silence_s", "stray_bytes"]),
    ):
        old, new = before[group] or {}, after[group] or {}
        found += [
            Difference(f"{group}.{name}", old.get(name), new.get(name))
            for name in names
            if old.get(name) != new.get(name)
        ]
    return found


def _parser_version(capture: Capture) -> int:
    from adapters import registry

    return registry.dialect(capture.adapter).parser_version


class _Turn:
    """What `turn_control.turn` does with an answer, without its clock."""

    def __init__(self, able: Capabilities, limits: Limits, barge_in: BargeIn | None, config: Config) -> None:
        notes = Notes(limits.max_warnings)
        self._tracker = AnswerTracker(able, limits, notes)
        self._reply = Reply(limits, notes, from_first_sound=able.ends_by_silence_s is not None)
        self._cut_in_s = config.barge_in.after_s if barge_in is not None and config.barge_in is not None else None
        self._cut_in_ns: int | None = None
        self._caller_done = False
        self._verdict: Verdict | None = None

    def caller_may_be_done(self, capture: Capture, now_ns: int) -> None:
        """Tell of the end of the caller's turn, once it lies before `now_ns`."""
        done_ns = capture.marks.get(Mark.COMMIT, capture.marks.get(Mark.CALLER_AUDIO_END))
        if not self._caller_done and done_ns is not None and done_ns <= now_ns:
            self._caller_done = True
            self._tracker.caller_done(done_ns, capture.marks.get(Mark.CALLER_SPEECH_END))

    def take(self, timed: TimedEvent) -> None:
        """One event."""
        self._tracker.feed(timed)
        self._reply.feed(timed)
        if self._cut_in_s is not None and self._cut_in_ns is None and isinstance(timed.event, AudioDelta):
            heard_ns = first_audible(self._reply.pieces, timed.event.rate_hz)
            self._cut_in_ns = None if heard_ns is None else heard_ns + round(self._cut_in_s * 1e9)

    def over(self, now_ns: int) -> bool:
        """True once the answer had ended before `now_ns`."""
        if self._verdict is None:
            due_ns = self._tracker.deadline_ns()
            cut_ns = self._cut_in_ns
            if due_ns is not None and due_ns < now_ns and (cut_ns is None or due_ns <= cut_ns):
                self._verdict = self._tracker.verdict(due_ns)
            elif cut_ns is not None and cut_ns < now_ns:
                self._verdict = self._tracker.cut_in(f"the caller cut in after {self._cut_in_s:g} s of speech")
        return self._verdict is not None

    def end(self, capture: Capture, client: ClientDialect) -> Verdict:
        """The verdict after the last frame."""
        self.caller_may_be_done(capture, 2**63 - 1)
        if not self.over(2**63 - 1) and capture.close_code is not None:
            closed = ClosedBy(capture.marks.get(Mark.ANSWER_END, 0), capture.close_code, capture.close_reason, True)
            event = client.closed(closed)
            if event is not None:
                self._tracker.feed(TimedEvent(closed.t_ns, event))
            self._tracker.closed(closed)
            self.over(2**63 - 1)
        if self._verdict is None:
            raise ReplayError("the stored frames hold no end of the answer")
        return self._verdict

    def fields(self, capture: Capture, verdict: Verdict) -> dict[str, Any]:
        """What of the capture follows from the answer."""
        reply = self._reply
        marks = {mark: ns for mark, ns in capture.marks.items() if mark not in DERIVED_MARKS} | self._tracker.marks()
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
                file=capture.reply_audio.file if capture.reply_audio is not None else None,
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
