"""Faults of one answer, whatever the dialect: the reply before it is put into frames, and its frames after. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from adapters.dialect import Setup
from adapters.misbehaviour import Misbehaves
from adapters.server import Reply, ReplyCall
from captures.frames import OutFrame
from rig.agents.faults import SessionFaults

_UNKNOWN: Final = b'{"type":"rig.unknown_event","event_id":"event_unknown","rigUnknownEvent":{"deep":[{"deeper":[]}]}}'


def faulty_replies(faults: SessionFaults, reply: Reply, setup: Setup, speech: Reply) -> tuple[Reply, ...]:
    """The replies to give one after the other instead of `reply`; `speech` is what may be said beside a call."""
    if faults.speech_and_call and reply.calls and not reply.pcm:
        reply = replace(reply, text=speech.text, pcm=speech.pcm, rate_hz=speech.rate_hz)
    if faults.second_call and reply.calls:
        reply = replace(reply, calls=(*reply.calls, _another(reply.calls[0], setup)))
    if faults.leading_silence_s and reply.pcm:
        silence = bytes(2 * round(faults.leading_silence_s * reply.rate_hz))
        reply = replace(reply, pcm=silence + reply.pcm)
    if faults.late_call_s is not None and reply.calls:
        said = reply if reply.pcm else replace(reply, text=speech.text, pcm=speech.pcm, rate_hz=speech.rate_hz)
        return replace(said, calls=()), Reply(calls=reply.calls)
    return (reply,)


def _another(call: ReplyCall, setup: Setup) -> ReplyCall:
    """A call that contradicts the first: of another tool where there is one."""
    others = [tool.name for tool in setup.tools if tool.name != call.name]
    return ReplyCall(others[0], {}) if others else call


def faulty_frames(faults: SessionFaults, frames: Iterable[OutFrame], server: object) -> Iterator[OutFrame]:
    """The frames of one answer as the session's faults have them; lazy where the connection lives on."""
    if faults.cut_before_done is not None:
        frames = _first_half(frames)
    for name in faults.answer_faults:
        assert isinstance(server, Misbehaves), "the plan was checked"
        frames = server.answer_faults[name](frames)
    if faults.duplicate:
        frames = (frame for frame in frames for _ in range(2))
    if faults.unknown:
        frames = _with_unknown(frames)
    if faults.big_frame_bytes:
        frames = _padded(frames, faults.big_frame_bytes)
    return iter(frames)


def _first_half(frames: Iterable[OutFrame]) -> list[OutFrame]:
    """Less than all: some vendors send more after the end of the answer, so the last frame alone would not do."""
    whole = list(frames)
    return whole[: len(whole) // 2]


def _with_unknown(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """An event of no known type before every frame, sent as the dialect sends its JSON."""
    for frame in frames:
        if _is_json(frame):
            yield OutFrame(_UNKNOWN, frame.binary)
        yield frame


def _padded(frames: Iterable[OutFrame], size: int) -> Iterator[OutFrame]:
    """The first and the last frame of an answer filled up to `size` bytes with spaces, which mean nothing in JSON."""
    held: OutFrame | None = None
    for number, frame in enumerate(frames):
        if held is not None:
            yield held
        held = frame if number else _filled(frame, size)
    if held is not None:
        yield _filled(held, size)


def _filled(frame: OutFrame, size: int) -> OutFrame:
    return replace(frame, payload=frame.payload.ljust(size)) if _is_json(frame) else frame


def _is_json(frame: OutFrame) -> bool:
    return frame.payload.startswith(b"{")
