"""A stored call's frames through today's client half: the events it makes of them. Pure.

The client is told of the verbs of the call (open, start of turn, commit, result of a call, cancel) in their order among
the received frames, since some dialects read a frame by what was asked before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from adapters.dialect import ClientDialect, EncodedClip, NamesItself
from captures.capture import Mark
from captures.events import TimedEvent
from captures.frames import Direction, InFrame
from rig.engine.clips import PreparedClip
from rig.engine.second_turn import OTHER_RESULT
from rig.replay.source import StoredCall

_Verbs = list[tuple[int, Callable[[], object]]]
"""With their times (ns), in order."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What today's code makes of a stored call."""

    events: tuple[TimedEvent, ...]
    clip: EncodedClip | None
    """The caller's clip as frames; None on a text twin."""


def replay(call: StoredCall, client: ClientDialect, chunk_ms: int) -> Replayed:
    """Feed the frames of `call` to `client`, a new one."""
    client.open(call.cell.setup)
    clip = None if call.cell.clip is None else _encoded(call, client, call.cell.clip, chunk_ms)
    verbs = [*_caller_turn(client, call.capture.marks, clip, call.cell.text), *_later_verbs(call, client, chunk_ms)]
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


def _caller_turn(
    client: ClientDialect, marks: Mapping[Mark, int], clip: EncodedClip | None, text: str | None
) -> _Verbs:
    """Verbs of one turn of the caller: as a clip, or where there is none as text."""
    commit_ns = marks.get(Mark.COMMIT)
    verbs: _Verbs = []
    if clip is not None:
        started_ns = marks.get(Mark.FIRST_CHUNK, commit_ns)
        if started_ns is not None:
            verbs.append((started_ns, client.start_turn))
        if commit_ns is not None:
            verbs += [(commit_ns, partial(client.hold, frame)) for frame in clip.frames if frame.held]
            verbs.append((commit_ns, client.commit_turn))
    elif commit_ns is not None:
        verbs.append((commit_ns, partial(client.text, text or "")))
    return verbs


def _later_verbs(call: StoredCall, client: ClientDialect, chunk_ms: int) -> _Verbs:
    """Verbs of a barge-in, or of the result of a call and the scripted reply."""
    capture, cell = call.capture, call.cell
    verbs: _Verbs = []
    cut_in, second = capture.barge_in, capture.second_turn
    if cut_in is not None and cut_in.answer is not None and cell.barge_in is not None:
        if cut_in.cancelled and cut_in.onset_ns is not None:
            verbs.append((cut_in.onset_ns, client.cancel))
        verbs += _caller_turn(client, cut_in.answer.marks, _encoded(call, client, cell.barge_in.clip, chunk_ms), None)
    if second is not None and second.after_result is not None:
        results = {one.call_id: OTHER_RESULT for one in capture.calls if one.complete} | {second.call_id: second.result}
        sent_ns = second.after_result.marks.get(Mark.COMMIT)
        if sent_ns is not None:
            verbs += [(sent_ns, partial(client.tool_result, call_id, output)) for call_id, output in results.items()]
    if second is not None and second.answer is not None and cell.planned_reply is not None:
        clip = cell.planned_reply.clip
        spoken = None if clip is None else _encoded(call, client, clip, chunk_ms)
        verbs += _caller_turn(client, second.answer.marks, spoken, second.reply)
    return verbs


def _encoded(call: StoredCall, client: ClientDialect, clip: PreparedClip, chunk_ms: int) -> EncodedClip:
    rate_hz = call.cell.setup.input_rate_hz
    return client.encode_clip(clip.pcm_at(rate_hz), rate_hz, chunk_ms)
