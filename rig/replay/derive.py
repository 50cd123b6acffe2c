"""A stored call derived anew: its frames through today's client half and today's rules of turns, on the stored stamps.

Nothing is sent and nothing waits: what the event loop did in time is done here in the order of the stamps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from adapters import registry
from adapters.dialect import ClientDialect
from captures.capture import Capture, Mark
from captures.frames import ClosedBy, Direction, LoggedFrame
from rig.config import Config
from rig.replay.events import replay
from rig.replay.later import LaterTurns
from rig.replay.source import ReplayError, StoredCall
from rig.replay.turns import DERIVED_MARKS, DerivedTurn
from turn_control.limits import Limits
from turn_control.pacing import chunk_ns

COMPARED = (
    "ending",
    "ending_detail",
    "error",
    "calls",
    "reply_text",
    "reply_transcript",
    "input_transcript",
    "input_tags",
    "usage",
    "marks",
    "reply_audio",
)
"""Fields of a capture that are derived, and of a later turn."""
CUT_IN = ("last_audible_ns", "stop_latency_s", "stopped_by", "calls_after_onset")
"""Fields of a barge-in that are."""
_BY_PART = {
    "marks": tuple(str(mark) for mark in DERIVED_MARKS),
    "reply_audio": ("rate_hz", "received_s", "leading_silence_s", "stray_bytes"),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that today's code derives otherwise."""

    field: str
    stored: Any
    derived: Any


def derive(call: StoredCall, client: ClientDialect, config: Config) -> Capture:
    """The capture that today's code makes of a stored call.

    Raises ReplayError when an answer does not end within the stored frames.
    """
    capture = call.capture if call.cell.stored is None else _with_commit(call.capture, call.frames)
    able = client.capabilities
    events = sorted(replay(replace(call, capture=capture), client, config.chunk_ms).events, key=lambda one: one.t_ns)
    limits = Limits(
        turn_s=config.limits.turn_s,
        quiet_s=config.limits.quiet_s,
        trailing_silence_s=config.limits.trailing_silence_s,
    )
    barge_in = config.barge_in if capture.barge_in is not None else None
    first = DerivedTurn(able, limits, capture.marks, None if barge_in is None else barge_in.after_s)
    taken = 0
    for timed in events:
        if not first.feed(timed):
            break
        taken += 1
    closed = None
    if capture.close_code is not None:
        closed = ClosedBy(capture.marks.get(Mark.ANSWER_END, 0), capture.close_code, capture.close_reason, True)
    verdict = first.end(closed, client)
    if verdict is None:
        raise ReplayError("the stored frames hold no end of the answer")
    found = first.fields(verdict, capture.reply_audio.file if capture.reply_audio is not None else None)
    later = LaterTurns(capture, events, taken, client, limits, chunk_ns(config.chunk_ms, config.pace))
    if capture.second_turn is not None:
        found["second_turn"] = capture.second_turn.model_copy(update=later.second_turn())
    if call.cell.barge_in is not None:
        mode, clip = call.cell.setup.turn_control.mode, call.cell.barge_in.clip
        found["barge_in"] = later.barge_in(first, mode, round(clip.duration_s * 1e9)) or capture.barge_in
    derived = capture.model_copy(update=found | {"parser_version": _parser_version(capture)})
    return derived if call.cell.stored is None else call.cell.stored.on(derived)


def differences(stored: Capture, derived: Capture) -> list[Difference]:
    """Field by field, marks one by one; later turns by the names that they have in a capture."""
    before, after = stored.model_dump(mode="json"), derived.model_dump(mode="json")
    found = _differ("", before, after, COMPARED)
    for turn, answers, names in (("second_turn", ("after_result", "answer"), ()), ("barge_in", ("answer",), CUT_IN)):
        old, new = before[turn] or {}, after[turn] or {}
        found += _differ(f"{turn}.", old, new, names)
        for answer in answers:
            found += _differ(f"{turn}.{answer}.", old.get(answer) or {}, new.get(answer) or {}, COMPARED)
    return found


def _differ(where: str, old: dict[str, Any], new: dict[str, Any], names: Sequence[str]) -> list[Difference]:
    pairs: list[tuple[str, Any, Any]] = []
    for name in names:
        if name in _BY_PART:
            parts = old.get(name) or {}, new.get(name) or {}
            pairs += [(f"{name}.{part}", parts[0].get(part), parts[1].get(part)) for part in _BY_PART[name]]
        else:
            pairs.append((name, old.get(name), new.get(name)))
    return [Difference(where + name, before, after) for name, before, after in pairs if before != after]


def _with_commit(capture: Capture, frames: Sequence[LoggedFrame]) -> Capture:
    """A replayed cell's capture with the commit that it does not keep: its one request, as it left."""
    asked_ns = next((frame.t_ns for frame in frames if frame.direction is Direction.SENT), None)
    if asked_ns is None:
        raise ReplayError("nothing was asked")
    return capture.model_copy(update={"marks": {Mark.COMMIT: asked_ns} | capture.marks})


def _parser_version(capture: Capture) -> int:
    return registry.dialect(capture.adapter).parser_version
