"""A stored call's frames through today's client half: the events it makes of them. Pure.

The client is told of the verbs of the call (open, start of turn, commit) in their order among the received frames,
since some dialects read a frame by what was asked before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from adapters.dialect import ClientDialect, EncodedClip, NamesItself
from captures.capture import Mark
from captures.events import TimedEvent
from captures.frames import Direction, InFrame
from rig.replay.source import StoredCall


@dataclass(frozen=True, slots=True)
class Replayed:
    """What today's code makes of a stored call."""

    events: tuple[TimedEvent, ...]
    clip: EncodedClip | None
    """The caller's clip as frames; None on a text twin."""


def replay(call: StoredCall, client: ClientDialect, chunk_ms: int) -> Replayed:
    """Feed the frames of `call` to `client`, a new one."""
    client.open(call.cell.setup)
    clip = None
    if call.cell.clip is not None:
        rate_hz = call.cell.setup.input_rate_hz
        clip = client.encode_clip(call.cell.clip.pcm_at(rate_hz), rate_hz, chunk_ms)
    verbs = _verbs(call, client, clip)
    events: list[TimedEvent] = []
    for frame in call.frames:
        while verbs and verbs[0][0] <= frame.t_ns:
            verbs.pop(0)[1]()
        if isinstance(client, NamesItself) and frame.direction is Direction.SENT and not frame.binary:
            client.recall(frame.payload)
        if frame.direction is Direction.RECEIVED:
            found, _ = client.receive(InFrame(frame.payload, frame.binary, frame.t_ns))
            events += [TimedEvent(frame.t_ns, event) for event in found]
    return Replayed(tuple(events), clip)


def _verbs(call: StoredCall, client: ClientDialect, clip: EncodedClip | None) -> list[tuple[int, Callable[[], object]]]:
    """Verbs of the first turn with their times (ns), in order."""
    marks = call.capture.marks
    commit_ns = marks.get(Mark.COMMIT)
    verbs: list[tuple[int, Callable[[], object]]] = []
    if clip is not None:
        started_ns = marks.get(Mark.FIRST_CHUNK, commit_ns)
        if started_ns is not None:
            verbs.append((started_ns, client.start_turn))
        if commit_ns is not None:
            verbs += [(commit_ns, partial(client.hold, frame)) for frame in clip.frames if frame.held]
            verbs.append((commit_ns, client.commit_turn))
    elif commit_ns is not None:
        verbs.append((commit_ns, partial(client.text, call.cell.text or "")))
    return verbs
