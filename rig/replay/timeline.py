"""A call as stereo: left the caller as sent, right the agent as it would have been heard, with its marks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from adapters.dialect import EncodedClip
from captures.capture import Mark
from captures.events import AudioDelta, TimedEvent
from captures.frames import Direction, LoggedFrame
from captures.playback import laid_out
from rig.audio.reader import Clip, Samples
from rig.audio.resample import resample
from rig.replay.source import ReplayError

MAX_S = 1800.0


@dataclass(frozen=True, slots=True)
class Timeline:
    """One call. Sample n was heard at `origin_ns` + n / `rate_hz`."""

    samples: Samples
    """Shape (n, 2): caller, agent."""
    rate_hz: int
    origin_ns: int
    marks: Mapping[Mark, int]
    """As sample positions."""


def sent_pieces(frames: Iterable[LoggedFrame], clip: EncodedClip) -> list[int]:
    """When each piece of the caller's clip left (ns); fewer than the clip has where the call ended before.

    Raises ReplayError when what was sent is not this clip.
    """
    if clip.frames[0].held:
        raise ReplayError("a whole-clip request has no timeline: nothing was streamed")
    payloads = [frame.payload for frame in clip.frames]
    sent: list[int] = []
    for frame in frames:
        if len(sent) < len(payloads) and frame.direction is Direction.SENT and frame.payload == payloads[len(sent)]:
            sent.append(frame.t_ns)
    if not sent:
        raise ReplayError("the clip at hand is not the one that was sent; was the bank rendered again?")
    return sent


def timeline(
    sent_ns: list[int], caller: Clip, chunk_ms: int, events: Iterable[TimedEvent], marks: Mapping[Mark, int]
) -> Timeline:
    """Lay out a call whose clip `caller` left in pieces of `chunk_ms` at `sent_ns`.

    The caller is laid out as a peer hears it that buffers one piece: pieces that left less than one piece late are
    where they were due, later ones and what follows them are later by the rest. At the agent's sample rate, the
    caller's where it did not speak. Raises ReplayError for a call of over half an hour.
    """
    deltas = [(timed.t_ns, timed.event) for timed in events if isinstance(timed.event, AudioDelta)]
    rate_hz = deltas[0][1].rate_hz if deltas else caller.rate_hz
    pcm = resample(caller, rate_hz).pcm
    piece = 2 * (rate_hz * chunk_ms // 1000)
    step_ns = chunk_ms * 1_000_000
    due = [sent_ns[0] + max(k * step_ns, t_ns - sent_ns[0] - step_ns) for k, t_ns in enumerate(sent_ns)]
    spoken = laid_out(((t_ns, pcm[k * piece : (k + 1) * piece]) for k, t_ns in enumerate(due)), rate_hz)
    heard = laid_out(((t_ns, event.pcm) for t_ns, event in deltas if event.rate_hz == rate_hz), rate_hz)
    sides = [side for side in (spoken, heard) if side is not None]
    origin_ns = min(start_ns for start_ns, _ in sides)
    ends = [_at(start_ns, origin_ns, rate_hz) + len(samples) for start_ns, samples in sides]
    if max(ends) > MAX_S * rate_hz:
        raise ReplayError(f"the call is longer than {MAX_S:g} s")
    both = np.zeros((max(ends), 2), np.int16)
    for column, side in enumerate((spoken, heard)):
        if side is not None:
            at = _at(side[0], origin_ns, rate_hz)
            both[at : at + len(side[1]), column] = side[1]
    return Timeline(both, rate_hz, origin_ns, {mark: _at(t_ns, origin_ns, rate_hz) for mark, t_ns in marks.items()})


def _at(t_ns: int, origin_ns: int, rate_hz: int) -> int:
    return round((t_ns - origin_ns) * rate_hz / 1e9)
