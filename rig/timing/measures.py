"""All figures of one recording. Plain data, ready for a table, JSON or CSV; what was not measured is None."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rig.audio.resample import resample
from rig.audio.voice import METHOD, RATE_HZ, Stretch, speech
from rig.timing.recording import Recording
from rig.timing.sound import Ranges, ranges
from rig.timing.turns import (
    SLOW_S,
    Reply,
    TakeRate,
    dead_air_s,
    overlap_s,
    pauses_s,
    quantile,
    replies,
    take_rates,
    utterances,
)
from rig.timing.words import Word, first_word_s, looks_swapped

SMALLEST_N_P90 = 10


@dataclass(frozen=True, slots=True)
class Voice:
    """One side of the call."""

    speech_s: float
    utterances: int
    pauses: int
    pause_p50_s: float | None
    sound: Ranges


@dataclass(frozen=True, slots=True)
class CallTiming:
    """One recording."""

    duration_s: float
    caller: Voice
    agent: Voice
    replies: int
    unanswered: int
    """Utterances of the caller without a reply before the next one."""
    latency_p50_s: float | None
    latency_p90_s: float | None
    """None below ten replies."""
    slow_share: float | None
    """Of replies, later than 1 s."""
    interruptions: int
    """Replies begun inside the caller's speech."""
    first_word_p50_s: float | None
    """To the first word that is no filler; None without a transcript."""
    filler_share: float | None
    """Of the agent's words; None without a transcript."""
    take_rates: tuple[TakeRate, ...]
    overlap_s: float
    dead_air_s: float
    dead_air_stretches: int
    method: str
    each: tuple[Reply, ...]
    caller_speech: tuple[Stretch, ...]
    agent_speech: tuple[Stretch, ...]

    @property
    def talk_ratio(self) -> float | None:
        """The agent's seconds of speech over the caller's; None where the caller does not speak."""
        return self.agent.speech_s / self.caller.speech_s if self.caller.speech_s else None

    @property
    def interruption_rate(self) -> float | None:
        """Of replies; None without one."""
        return self.interruptions / self.replies if self.replies else None


def measure(recording: Recording, words: Sequence[Word] | None = None) -> CallTiming:
    """All figures of `recording`, with those that need words where a transcript is given.

    Raises ChannelsError when its words sound on the other side's channel, or nobody speaks on one.
    """
    caller_pcm, agent_pcm = (resample(side, RATE_HZ).samples for side in (recording.caller, recording.agent))
    caller_speech, agent_speech = speech(caller_pcm), speech(agent_pcm)
    for name, stretches in (("caller", caller_speech), ("agent", agent_speech)):
        if not stretches:
            raise ChannelsError(f"nobody speaks on the {name}'s channel: noise alone, or the wrong channel")
    if words and looks_swapped(words, caller_speech, agent_speech):
        raise ChannelsError("the channels look swapped: the transcript's words sound on the other one; see --caller")
    asked, said = utterances(caller_speech), utterances(agent_speech)
    found = replies(asked, said)
    latencies = [reply.latency_s for reply in found]
    first_words = [s for reply in found if (s := first_word_s(reply, words or ())) is not None]
    own = [word for word in words or () if word.side == "agent"]
    silences = dead_air_s(caller_speech, agent_speech)
    return CallTiming(
        duration_s=recording.duration_s,
        caller=_voice(caller_pcm, caller_speech, asked),
        agent=_voice(agent_pcm, agent_speech, said),
        replies=len(found),
        unanswered=len(asked) - len(found),
        latency_p50_s=quantile(latencies, 0.5),
        latency_p90_s=quantile(latencies, 0.9) if len(latencies) >= SMALLEST_N_P90 else None,
        slow_share=float(np.mean([s > SLOW_S for s in latencies])) if latencies else None,
        interruptions=sum(reply.interrupts for reply in found),
        first_word_p50_s=quantile(first_words, 0.5),
        filler_share=float(np.mean([word.filler for word in own])) if own else None,
        take_rates=tuple(take_rates(caller_speech, agent_speech, recording.duration_s)),
        overlap_s=overlap_s(caller_speech, agent_speech),
        dead_air_s=sum(silences),
        dead_air_stretches=len(silences),
        method=METHOD,
        each=tuple(found),
        caller_speech=tuple(caller_speech),
        agent_speech=tuple(agent_speech),
    )


class ChannelsError(ValueError):
    """The two sides are not what they are taken for; one line."""


def _voice(pcm: np.ndarray[tuple[int], np.dtype[np.int16]], stretches: list[Stretch], said: list[Stretch]) -> Voice:
    gaps = pauses_s(stretches)
    seconds = sum(stretch.length_s for stretch in stretches)
    return Voice(seconds, len(said), len(gaps), quantile(gaps, 0.5), ranges(pcm, stretches))
