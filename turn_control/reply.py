"""What the agent said in one turn: its audio pieces, words and transcripts, bounded. Pure."""

from __future__ import annotations

from typing import Any

from captures.events import (
    AudioCleared,
    AudioDelta,
    InputTranscript,
    Served,
    TextDelta,
    TimedEvent,
    TranscriptDelta,
    Usage,
)
from captures.playback import heard_by, is_loud
from turn_control.limits import Limits
from turn_control.notes import Notes


class _Words:
    def __init__(self, limit: int, notes: Notes, what: str) -> None:
        self._parts: list[str] = []
        self._room = limit
        self._notes = notes
        self._what = what

    def add(self, text: str) -> None:
        self._parts.append(text[: self._room])
        if len(text) > self._room:
            self._notes.add(f"{self._what} cut: it passed the limit of characters kept")
        self._room = max(0, self._room - len(text))

    def joined(self, between: str = "") -> str:
        return between.join(self._parts)


class Reply:
    """Collects what an agent says in one turn."""

    def __init__(self, limits: Limits, notes: Notes, *, from_first_sound: bool = False) -> None:
        """`from_first_sound`: silence that arrives before the first sound is no part of what the agent says."""
        self.pieces: list[tuple[int, bytes]] = []
        """Audio as it arrived: (stamp in monotonic ns, PCM16 bytes)."""
        self.rate_hz: int | None = None
        """Of the audio; None when there was none."""
        self.usage: dict[str, Any] | None = None
        self.served: dict[str, Any] | None = None
        """How the answer was served; None where nothing tells."""
        self._notes = notes
        self._waits_for_sound = from_first_sound
        self._silent_until_ns = 0
        """End of that silence as it would be heard: what was queued behind it waits its turn."""
        self._audio_room = limits.max_reply_bytes
        self._text = _Words(limits.max_text_chars, notes, "reply text")
        self._transcript = _Words(limits.max_text_chars, notes, "reply transcript")
        self._heard = _Words(limits.max_text_chars, notes, "input transcript")
        self._heard_parts = _Words(limits.max_text_chars, notes, "input transcript")
        self._heard_any = False
        self.input_tags: tuple[str, ...] | None = None
        """What was measured in the caller's audio; None where nothing measures."""

    def feed(self, timed: TimedEvent) -> None:
        """Take one event, in order of arrival."""
        event = timed.event
        if isinstance(event, AudioDelta):
            self._add_audio(timed.t_ns, event)
        elif isinstance(event, AudioCleared):
            self._clear(timed.t_ns)
        elif isinstance(event, TextDelta):
            self._text.add(event.text)
        elif isinstance(event, TranscriptDelta):
            self._transcript.add(event.text)
        elif isinstance(event, InputTranscript):
            self._heard_any = True
            self.input_tags = event.tags if event.tags is not None else self.input_tags
            (self._heard if event.final else self._heard_parts).add(event.text)
        elif isinstance(event, Usage):
            self.usage = {**(self.usage or {}), **event.counts}
        elif isinstance(event, Served):
            self.served = {**(self.served or {}), **event.details}

    @property
    def text(self) -> str:
        """The agent's answer as text."""
        return self._text.joined()

    @property
    def transcript(self) -> str:
        """The vendor's transcript of its own speech."""
        return self._transcript.joined()

    @property
    def input_transcript(self) -> str | None:
        """The peer's final transcripts of the caller, else its partial ones; None when it gave none."""
        if not self._heard_any:
            return None
        return self._heard.joined(" ") or self._heard_parts.joined()

    def _clear(self, t_ns: int) -> None:
        """What has not been heard by now never will be."""
        self._silent_until_ns = min(self._silent_until_ns, t_ns)
        if self.rate_hz is None:
            return
        self.pieces, cleared_s = heard_by(self.pieces, self.rate_hz, t_ns)
        if cleared_s > 0:
            self._notes.add(f"the agent cleared {cleared_s:.2f} s of its speech before it was heard")

    def _add_audio(self, t_ns: int, event: AudioDelta) -> None:
        if not event.pcm:
            return
        if self._waits_for_sound:
            t_ns = max(t_ns, self._silent_until_ns)
            if not is_loud(event.pcm, event.rate_hz):
                self._silent_until_ns = t_ns + len(event.pcm) // 2 * 1_000_000_000 // event.rate_hz
                return
            self._waits_for_sound = False
        if self.rate_hz is None:
            self.rate_hz = event.rate_hz
        if event.rate_hz != self.rate_hz:
            self._notes.add(
                f"reply audio changed its rate from {self.rate_hz} to {event.rate_hz} Hz; the rest is dropped"
            )
        elif len(event.pcm) > self._audio_room:
            self._audio_room = 0
            self._notes.add("reply audio passed the limit of bytes kept; the rest is dropped")
        else:
            self._audio_room -= len(event.pcm)
            self.pieces.append((t_ns, event.pcm))
