"""From the stored calls of a sweep to its frontier: added latency against false cut-offs, per way of ending turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from captures.capture import Capture, Mark
from captures.events import AudioDelta, SpeechStopped, TimedEvent, ToolCall, ToolCallStarted, TurnCommitted
from captures.latency import latencies
from captures.playback import is_loud
from rig.stats.bootstrap import Estimate, Sample, proportion
from rig.sweep.expand import Point
from rig.timing.turns import quantile

MARGIN_S = 0.1
"""An end of turn less than this before the end of the caller's speech cuts nothing off."""


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How one call's caller turn was ended."""

    item: str
    repeat: int
    cut_off: bool
    """The peer ended the turn, or answered, while the caller had more to say."""
    added_s: float | None
    """From the end of the caller's speech to the end of the turn; None where the turn was cut off, or never ended."""
    voice_to_voice_s: float | None


@dataclass(frozen=True, slots=True)
class PointFigures:
    """One way of ending turns on one target."""

    point: Point
    calls: int
    failed: int
    """Calls of which nothing was measured."""
    cut_off: Estimate | None
    added_p50_s: float | None
    added_p90_s: float | None
    """None below ten values."""
    voice_to_voice_p50_s: float | None
    never_ended: int
    """Calls whose turn the peer did not end within the bound."""
    on_frontier: bool = False
    """No other way on this target is better in one and as good in the other."""


def call_end(capture: Capture, events: Iterable[TimedEvent], speech_end_s: float, void_limit_s: float) -> CallEnd:
    """How the turn of `capture` ended; `events` are all of the call, `speech_end_s` from the clip's start."""
    origin_ns = capture.marks.get(Mark.FIRST_CHUNK)
    assert origin_ns is not None, "only streamed calls have an end of turn"
    speech_end_ns = origin_ns + round(speech_end_s * 1e9)
    ours_ns = capture.marks.get(Mark.COMMIT)
    ends = [timed.t_ns for timed in events if timed.t_ns >= origin_ns and _ends_turn(timed)]
    early = [t_ns for t_ns in ends if t_ns < speech_end_ns - MARGIN_S * 1e9]
    cut_off = bool(early)
    later = [ours_ns] if ours_ns is not None else [t_ns for t_ns in ends if t_ns not in early]
    added_s = None if cut_off or not later else (later[0] - speech_end_ns) / 1e9
    heard = [
        latency.seconds
        for latency in latencies(capture, void_limit_s)
        if latency.name == "speech_end_to_first_audible" and not latency.void
    ]
    return CallEnd(capture.item_id, capture.repeat, cut_off, added_s, heard[0] if heard and not cut_off else None)


def _ends_turn(timed: TimedEvent) -> bool:
    event = timed.event
    if isinstance(event, AudioDelta):
        return is_loud(event.pcm, event.rate_hz)
    return isinstance(event, SpeechStopped | TurnCommitted | ToolCallStarted | ToolCall)


def figures(point: Point, ends: Sequence[CallEnd], failed: int) -> PointFigures:
    """One point, without its place on the frontier."""
    added = [end.added_s for end in ends if end.added_s is not None]
    heard = [end.voice_to_voice_s for end in ends if end.voice_to_voice_s is not None]
    return PointFigures(
        point=point,
        calls=len(ends),
        failed=failed,
        cut_off=proportion([Sample(float(end.cut_off), end.item, end.repeat) for end in ends]) if ends else None,
        added_p50_s=quantile(added, 0.5),
        added_p90_s=quantile(added, 0.9) if len(added) >= 10 else None,
        voice_to_voice_p50_s=quantile(heard, 0.5),
        never_ended=sum(end.added_s is None and not end.cut_off for end in ends),
    )


def with_frontier(found: Sequence[PointFigures]) -> list[PointFigures]:
    """The same points, those marked that no other way on the same target beats."""
    return [replace(one, on_frontier=_unbeaten(one, found)) for one in found]


def _unbeaten(one: PointFigures, found: Sequence[PointFigures]) -> bool:
    own = _place(one)
    if own is None:
        return False
    others = (_place(other) for other in found if other.point.target == one.point.target)
    return not any(place is not None and place != own and place[0] <= own[0] and place[1] <= own[1] for place in others)


def _place(one: PointFigures) -> tuple[float, float] | None:
    if one.added_p50_s is None or one.cut_off is None:
        return None
    return one.added_p50_s, one.cut_off.mean
