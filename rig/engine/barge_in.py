"""A barge-in as a part of an attempt: what is planned, and what a capture keeps of it. Playing is `turn_control`'s."""

from __future__ import annotations

from dataclasses import dataclass

from captures.capture import BargeIn
from rig.engine.clips import PreparedClip
from rig.engine.heard import later_turn
from turn_control.barge_in import BargeInRecord


@dataclass(frozen=True, slots=True)
class PlannedBargeIn:
    """The caller cuts in with `clip` once the agent's speech has been audible for `after_s` seconds."""

    name: str
    """`self`, or item/variant."""
    clip: PreparedClip
    after_s: float

    def identity(self) -> list[object]:
        """Its part of the cell's identity."""
        return [self.clip.pcm_sha256, self.clip.source_rate_hz, self.after_s]


async def kept(planned: PlannedBargeIn, record: BargeInRecord) -> BargeIn:
    """The capture's part on it."""
    return BargeIn(
        clip=planned.name,
        after_s=planned.after_s,
        not_played=record.not_played,
        onset_ns=record.onset_ns,
        last_audible_ns=record.last_audible_ns,
        stop_latency_s=record.stop_latency_s,
        stopped_by=record.stopped_by,
        cancelled=record.cancelled,
        truncated_ms=record.truncated_ms,
        calls_after_onset=record.calls_after_onset,
        answer=await later_turn(record.answer) if record.answer is not None else None,
    )
