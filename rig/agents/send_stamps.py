"""When an emulator sent what: one JSON line per frame of an answer, for benchmarks that compare it with what was seen.

Stamps are taken as a frame is handed to the socket, on the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

import orjson

from adapters.foreign_json import JsonObject, decode
from captures.frames import OutFrame


class SendStamps:
    """Appends to a file, once per answer, so that nothing is written while an answer is being sent."""

    def __init__(self, file: IO[bytes], dialect_name: str) -> None:
        """`file`, open for appending, stays the caller's to close; several may share it."""
        self._file = file
        self._dialect = dialect_name

    def write(self, session: int, answer: int, wanted_ns: int, sent: Iterable[tuple[int, OutFrame]]) -> None:
        """The frames of one answer, each with its stamp.

        `session` and `answer` count from 1; `wanted_ns` is the instant at which the answer was asked for.
        """
        for number, (t_ns, frame) in enumerate(sent):
            row = {
                "dialect": self._dialect,
                "session": session,
                "answer": answer,
                "frame": number,
                "kind": kind_of(frame),
                "bytes": len(frame.payload),
                "wanted_ns": wanted_ns,
                "sent_ns": t_ns,
            }
            self._file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        self._file.flush()


def kind_of(frame: OutFrame) -> str:
    """What a frame is: its `type`, else the names of its first fields, outer and inner, else `audio`."""
    event: JsonObject | None = decode(frame.payload)
    if event is None:
        return "audio"
    if isinstance(event.get("type"), str):
        return str(event["type"])
    outer = next(iter(event), "")
    inner = event.get(outer)
    return f"{outer}.{next(iter(inner))}" if isinstance(inner, dict) and inner else outer
