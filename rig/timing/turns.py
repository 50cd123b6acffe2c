"""Who speaks when in a call, and the figures that follow: pure arithmetic over stretches of speech.

Words used: an *utterance* is speech of one side whose gaps are shorter than 0.3 s. A *reply* is the first utterance of
the agent that begins after the caller began and before the caller's next one, or inside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rig.audio.voice import Stretch

UTTERANCE_GAP_S = 0.3
YIELD_THRESHOLDS_S = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
SLOW_S = 1.0
DEAD_AIR_S = 2.0
"""Both sides silent for longer."""
LONGEST_PAUSE_S = 2.0
"""A longer silence of one side is no pause within its speech."""
MARGIN_S = 0.1
"""Speech begun less than this before the other's end is not inside it: detectors are no finer."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The agent's answer to one utterance of the caller."""

    caller: Stretch
    agent: Stretch

    @property
    def latency_s(self) -> float:
        """From the end of the caller's utterance to the start of the agent's; negative inside it, never clamped."""
        return self.agent.start_s - self.caller.end_s

    @property
    def interrupts(self) -> bool:
        """Begun inside the caller's speech."""
        return self.caller.start_s + MARGIN_S < self.agent.start_s < self.caller.end_s - MARGIN_S


@dataclass(frozen=True, slots=True)
class TakeRate:
    """How often the agent had taken the turn once the caller had been silent for `threshold_s`."""

    threshold_s: float
    points: int
    taken: int
    agent_spoke: int
    """Points, not among the others, at which the agent was speaking already when the caller stopped."""


def utterances(stretches: Sequence[Stretch], gap_s: float = UTTERANCE_GAP_S) -> list[Stretch]:
    """Stretches of one side with gaps shorter than `gap_s` closed."""
    joined: list[Stretch] = []
    for stretch in stretches:
        if joined and stretch.start_s - joined[-1].end_s < gap_s:
            joined[-1] = Stretch(joined[-1].start_s, max(joined[-1].end_s, stretch.end_s))
        else:
            joined.append(stretch)
    return joined


def replies(caller: Sequence[Stretch], agent: Sequence[Stretch]) -> list[Reply]:
    """The reply to each utterance of the caller that has one; both given as utterances."""
    found = []
    for index, utterance in enumerate(caller):
        until_s = caller[index + 1].start_s if index + 1 < len(caller) else float("inf")
        begun = (one for one in agent if utterance.start_s + MARGIN_S < one.start_s < until_s)
        first = next(begun, None)
        if first is not None:
            found.append(Reply(utterance, first))
    return found


def take_rates(
    caller: Sequence[Stretch],
    agent: Sequence[Stretch],
    duration_s: float,
    thresholds_s: Sequence[float] = YIELD_THRESHOLDS_S,
) -> list[TakeRate]:
    """How readily the agent takes a turn that the caller yields, for each length of silence that counts as yielding.

    A point is an end of the caller's speech followed by at least that much of the caller's silence. Both are given as
    utterances of gap 0: any pause may be one.
    """
    found = []
    for threshold_s in thresholds_s:
        points = taken = spoke = 0
        for index, stretch in enumerate(caller):
            until_s = caller[index + 1].start_s if index + 1 < len(caller) else duration_s
            if until_s - stretch.end_s < threshold_s:
                continue
            if any(one.start_s < stretch.end_s < one.end_s for one in agent):
                spoke += 1
                continue
            points += 1
            taken += any(0 <= one.start_s - stretch.end_s <= threshold_s for one in agent)
        found.append(TakeRate(threshold_s, points, taken, spoke))
    return found


def pauses_s(stretches: Sequence[Stretch]) -> list[float]:
    """Silences between stretches of one side, up to 2 s."""
    gaps = (after.start_s - before.end_s for before, after in pairwise(stretches))
    return [gap for gap in gaps if gap <= LONGEST_PAUSE_S]


def dead_air_s(caller: Sequence[Stretch], agent: Sequence[Stretch]) -> list[float]:
    """Silences of both sides longer than 2 s, between the first and the last speech of the call."""
    both = utterances(sorted([*caller, *agent], key=lambda one: one.start_s), gap_s=0.0)
    gaps = (after.start_s - before.end_s for before, after in pairwise(both))
    return [gap for gap in gaps if gap > DEAD_AIR_S]


def overlap_s(caller: Sequence[Stretch], agent: Sequence[Stretch]) -> float:
    """Seconds in which both speak."""
    return sum(
        max(0.0, min(one.end_s, other.end_s) - max(one.start_s, other.start_s)) for one in caller for other in agent
    )


def quantile(values: Sequence[float], share: float) -> float | None:
    """None without values."""
    return float(np.quantile(values, share)) if values else None
