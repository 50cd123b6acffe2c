"""Barge-in: the caller begins to speak while the agent does, and the time until the agent falls silent is taken.

What a caller hears is the playback of what was received: an agent sends its speech faster than it is heard. Playback
drops what it has in store once the peer says that it yields (it heard speech begin, or its answer was interrupted), as
vendors ask of their clients; in manual turns, where no peer listens during its own answer, once we cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

import anyio

from adapters.dialect import ClientDialect, TurnMode
from adapters.session import Session
from captures.capture import Mark
from captures.clock import Clock
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Interrupted,
    SpeechStarted,
    TimedEvent,
    ToolCall,
)
from captures.playback import first_audible
from turn_control.answer import Content
from turn_control.heard_speech import HeardSpeech
from turn_control.limits import Limits
from turn_control.pacing import audio_ns
from turn_control.ticker import Ticker
from turn_control.turn import CallerTurn, SpokenTurn, TurnRecord, play_turn

StoppedBy = Literal["us", "peer", "itself"]


@dataclass(frozen=True, slots=True)
class BargeInRecord:
    """What a barge-in showed. Times in monotonic ns."""

    interrupted: TurnRecord
    """The turn that was cut in on, up to the cut: `unfinished` unless its answer had ended."""
    not_played: str = ""
    """Why there was no barge-in; then nothing below is set."""
    onset_ns: int | None = None
    """The clip's first piece left us; before it, in manual turns, our cancel did."""
    last_audible_ns: int | None = None
    """End of the last audible speech of the interrupted answer, as it would be heard."""
    stopped_by: StoppedBy | None = None
    """`us`: playback was cut by our cancel; `peer`: by its sign; `itself`: it came to its end."""
    cancelled: bool = False
    """A cancel was sent: there was a running answer, and the dialect has such a message."""
    truncated_ms: int | None = None
    """How much of its speech we said was heard; None where the dialect has no such message."""
    calls_after_onset: int = 0
    """Calls of the interrupted answer that came all the same; in no record of a turn."""
    answer: TurnRecord | None = None
    """The turn of the barging clip."""

    @property
    def stop_latency_s(self) -> float | None:
        """From the onset to the last audible sample after it; 0 or less when nothing was heard after the onset."""
        if self.onset_ns is None or self.last_audible_ns is None:
            return None
        return (self.last_audible_ns - self.onset_ns) / 1e9


async def barge_in(
    session: Session,
    into: CallerTurn,
    clip: SpokenTurn,
    *,
    after_s: float,
    ticker: Ticker,
    clock: Clock,
    limits: Limits | None = None,
    mode: TurnMode = TurnMode.MANUAL,
    pace: float = 1.0,
) -> BargeInRecord:
    """Play `into`, and `clip` once the agent's answer has been audible for `after_s` seconds.

    Paced and bounded as two turns of `play_turn`, which see. An agent that does not speak, or not for so long, is not
    cut in on.
    """
    plays = partial(play_turn, session, ticker=ticker, clock=clock, limits=limits, mode=mode, pace=pace)
    known = len(session.events)
    first = await plays(into, cut_in_s=after_s)
    if first.closed is not None or not first.ending.scored:
        return BargeInRecord(first, "the session failed before it")
    heard_ns = first_audible(first.reply_pieces, first.reply_rate_hz) if first.reply_rate_hz else None
    if heard_ns is None or first.reply_rate_hz is None:
        return BargeInRecord(first, "the agent said nothing audible")
    if not session.dialect.capabilities.streams_audio:
        return BargeInRecord(first, "in file mode an answer comes whole, and nothing is said into it")
    watch = InterruptedAnswer(session, first.reply_rate_hz, known)
    await _until(heard_ns + round(after_s * 1e9), ticker, clock)
    if not watch.still_speaks(clock.now_ns()):
        return BargeInRecord(first, f"the agent's speech was over before it had lasted {after_s:g} s")
    cut_ns = watch.cut_in(audio_ns(clip.clip.samples, clip.clip.rate_hz), manual=mode is TurnMode.MANUAL)
    answer = await plays(clip, belongs_before=watch.takes)
    onset_ns = cut_ns or answer.marks.get(Mark.FIRST_CHUNK)
    if onset_ns is None:
        return BargeInRecord(first, "the session failed before it", answer=answer)
    return BargeInRecord(
        first,
        onset_ns=onset_ns,
        last_audible_ns=watch.speech.playback().last_audible_ns,
        stopped_by=watch.stopped_by,
        cancelled=watch.cancelled,
        truncated_ms=watch.truncated_ms,
        calls_after_onset=watch.calls,
        answer=answer,
    )


class Conversation(Protocol):
    """What is needed of a session; a stored one will do."""

    dialect: ClientDialect
    clock: Clock
    events: list[TimedEvent]

    def cancel(self) -> int | None:
        """See `Session.cancel`."""
        ...

    def truncate(self, audio_ms: int) -> int | None:
        """See `Session.truncate`."""
        ...


class InterruptedAnswer:
    """Follows the interrupted answer to its end: what of it is heard, and which events are still its own."""

    def __init__(self, session: Conversation, rate_hz: int, known: int) -> None:
        """`known`: how many events the session had before the answer."""
        self.speech = HeardSpeech(rate_hz)
        self.stopped_by: StoppedBy = "itself"
        self.cancelled = False
        self.truncated_ms: int | None = None
        self.calls = 0
        self._session = session
        self._running = True
        self._item_id: str | None = None
        self._started_ns: int | None = None
        self._clip_end_ns: int | None = None
        for timed in session.events[known:]:
            if isinstance(timed.event, AudioDelta):
                self._running = True  # an end before it was not this answer's
            self._take(timed)
        self._read = len(session.events)

    def still_speaks(self, now_ns: int) -> bool:
        """Something is still to be heard, or may still come."""
        self._catch_up()
        return self._running or self.speech.plays_at(now_ns)

    def cut_in(self, clip_ns: int, *, manual: bool) -> int | None:
        """A clip that lasts `clip_ns` is about to be played. The stamp of our cut, where the caller's side makes it.

        It does in manual turns. A running answer that the dialect cannot cancel is left to the peer, whom the clip's
        own start tells.
        """
        self._started_ns = self._session.clock.now_ns()
        if self._session.dialect.capabilities.ends_by_silence_s is not None:
            # No event will end the answer. What is said after the clip answers the clip.
            self._clip_end_ns = self._started_ns + clip_ns
        if not manual:
            return None
        if self._running:
            sent_ns = self._session.cancel()
            if sent_ns is None:
                return None
            self.cancelled = True
        self._cut(self._started_ns, "us")
        return self._started_ns

    def takes(self, timed: TimedEvent) -> bool:
        """True for an event that belongs to the interrupted answer."""
        return self._catch_up()

    def _catch_up(self) -> bool:
        """Read all events that are new; whether the last of them belongs to the interrupted answer."""
        its_own = False
        while self._read < len(self._session.events):
            its_own = self._take(self._session.events[self._read])
            self._read += 1
        return its_own

    def _take(self, timed: TimedEvent) -> bool:
        t_ns, event = timed.t_ns, timed.event
        if self._clip_end_ns is not None and t_ns >= self._clip_end_ns:
            self._running = False
        was_running = self._running
        if isinstance(event, AnswerEnded):
            self._running = False
            if event.reason is AnswerEnd.CANCELLED:
                self._peer_yields(t_ns)
        elif isinstance(event, SpeechStarted | Interrupted):
            self._peer_yields(t_ns)
        elif was_running and isinstance(event, AudioDelta):
            self._hear(t_ns, event)
        elif was_running and isinstance(event, ToolCall):
            self.calls += self._started_ns is not None
        return was_running and isinstance(event, Content | AnswerEnded | Interrupted)

    def _hear(self, t_ns: int, event: AudioDelta) -> None:
        self.speech.add(t_ns, event.pcm, event.item_id)
        self._item_id = event.item_id

    def _peer_yields(self, t_ns: int) -> None:
        if self._started_ns is not None and self.stopped_by == "itself" and self.speech.plays_at(t_ns):
            self._cut(t_ns, "peer")

    def _cut(self, t_ns: int, by: StoppedBy) -> None:
        self.stopped_by = by
        self.speech.cut(t_ns)
        heard_ms = self.speech.heard_ms(t_ns, self._item_id)
        if self._session.truncate(heard_ms) is not None:
            self.truncated_ms = heard_ms


async def _until(due_ns: int, ticker: Ticker, clock: Clock) -> None:
    """Wait by the ticker, whose loop lag is recorded."""
    if due_ns <= clock.now_ns():
        return
    reached = anyio.Event()
    scheduled = ticker.add(due_ns, reached.set, lambda error: reached.set())
    try:
        await reached.wait()
    finally:
        scheduled.cancel()
