"""The rig's marks against the peer's stamps: pure arithmetic over one turn's frames, and its summary."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict

from captures.capture import Mark
from captures.frames import Direction, LoggedFrame
from rig.calibration.peer import PIECE_MS, SILENT_PIECES

SMALLEST_N_P99 = 100
MARKS: dict[str, Mark] = {
    "commit": Mark.COMMIT,
    "first_audio": Mark.FIRST_AUDIO,
    "first_audible": Mark.FIRST_AUDIBLE,
    "tool_call": Mark.FIRST_CALL_COMPLETE,
}
"""Name in the tables → our mark. The truth of `commit` is when the peer read it, of the others when it sent."""

_STAMPED = re.compile(rb'^\{"type":"([a-z_.]{1,40})","event_id":"(\d{1,20})"')


@dataclass(frozen=True, slots=True)
class TurnErrors:
    """One turn."""

    error_ns: Mapping[str, int]
    """Our mark minus the truth, by name of `MARKS`."""
    void: bool
    """Our own timing spoilt the turn for latency tables; its errors enter none either."""


class MarkError(BaseModel):
    """How far one mark is from the truth, over the turns that are not void."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int
    bias_ms: float | None
    """Mean error, ours minus the truth; None without turns."""
    p99_ms: float | None
    """Of the absolute error; None below 100 turns."""
    max_ms: float | None
    """Largest absolute error."""


def turn_errors(marks: Mapping[Mark, int], log: Iterable[LoggedFrame], *, void: bool) -> TurnErrors:
    """The errors of one turn with `rig.calibration.peer`; marks that are absent on either side are left out."""
    truth = truths(log)
    errors = {name: marks[mark] - truth[name] for name, mark in MARKS.items() if mark in marks and name in truth}
    return TurnErrors(errors, void)


def truths(log: Iterable[LoggedFrame]) -> dict[str, int]:
    """What the peer's stamps say, monotonic ns, by name of `MARKS`.

    The onset is where the tone's first piece starts to sound: a piece starts when it is sent, or at the end of what
    precedes it, whichever is later.
    """
    found: dict[str, int] = {}
    pieces: list[int] = []
    for frame in log:
        stamped = _STAMPED.match(frame.payload[:120]) if frame.direction is Direction.RECEIVED else None
        if stamped is None:
            continue
        kind, stamp_ns = stamped[1], int(stamped[2])
        if kind == b"response.output_audio.delta":
            pieces.append(stamp_ns)
        elif kind == b"response.created":
            found["commit"] = stamp_ns
        elif kind == b"response.output_item.done":
            found["tool_call"] = stamp_ns
    if pieces:
        found["first_audio"] = pieces[0]
    if len(pieces) > SILENT_PIECES:
        free_ns = 0
        for sent_ns in pieces[: SILENT_PIECES + 1]:
            start_ns = max(sent_ns, free_ns)
            free_ns = start_ns + PIECE_MS * 1_000_000
        found["first_audible"] = start_ns
    return found


def summed_up(turns: Sequence[TurnErrors]) -> dict[str, MarkError]:
    """Every mark over `turns`."""
    return {name: _mark_error([turn.error_ns[name] for turn in turns if not turn.void and name in turn.error_ns])
            for name in MARKS}  # fmt: skip


def _mark_error(errors_ns: Sequence[int]) -> MarkError:
    if not errors_ns:
        return MarkError(n=0, bias_ms=None, p99_ms=None, max_ms=None)
    ms = np.asarray(errors_ns) / 1e6
    size = np.sort(np.abs(ms))
    p99 = float(size[math.ceil(0.99 * len(size)) - 1]) if len(size) >= SMALLEST_N_P99 else None
    return MarkError(n=len(ms), bias_ms=float(ms.mean()), p99_ms=p99, max_ms=float(size[-1]))
