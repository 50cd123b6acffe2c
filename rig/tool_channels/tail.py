"""A log of JSON lines as the agent writes it: what is added from the start of the run on.

No file tells when it has grown, so it is looked at every 10 ms; a line's stamp is late by up to that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import orjson

from adapters.foreign_json import too_deep
from captures.clock import Clock
from rig.tool_channels.hub import Hub

LOOK_EVERY_S: Final = 0.010
MAX_LINE_BYTES: Final = 1 << 20
_READ_AT_ONCE: Final = 1 << 20


class Tail:
    """Follows one file. A file that is replaced or cut off is read from its start."""

    def __init__(self, path: Path, hub: Hub, clock: Clock) -> None:
        self._path = path
        self._hub = hub
        self._clock = clock
        self._inode: int | None = None
        self._at = 0
        self._rest = b""
        self._skips = False
        self.unread = 0
        """Lines that were no JSON object, or too long."""

    def start(self) -> None:
        """What is in the file by now is from before the run."""
        try:
            told = self._path.stat()
        except OSError:
            return
        self._inode, self._at = told.st_ino, told.st_size

    async def follow(self) -> None:
        """Hand on every new line, until cancelled."""
        while True:
            await anyio.sleep(LOOK_EVERY_S)
            self.look()

    def look(self) -> None:
        """Hand on the lines that were added since the last look."""
        try:
            told = self._path.stat()
        except OSError:
            return  # not there yet, or no more
        if told.st_ino != self._inode or told.st_size < self._at:
            self._inode, self._at, self._rest, self._skips = told.st_ino, 0, b"", False
        if told.st_size == self._at:
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            added = file.read(_READ_AT_ONCE)
        t_ns = self._clock.now_ns()
        self._at += len(added)
        *lines, rest = (self._rest + added).split(b"\n")
        for line in lines:
            self._take(line, t_ns)
        if len(rest) > MAX_LINE_BYTES:
            rest, self._skips = b"", True
            self.unread += 1
        self._rest = rest

    def _take(self, line: bytes, t_ns: int) -> None:
        if self._skips:
            self._skips = False  # the end of a line that was too long
            return
        if not line.strip():
            return
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict) or too_deep(value):
            self.unread += 1
            return
        request = {"body": value}
        if self._hub.requests.concerns(request):
            self._hub.deliver("log", request, None, t_ns)

    def notes(self) -> list[str]:
        """What a run should say."""
        if not self.unread:
            return []
        lines = "1 line was" if self.unread == 1 else f"{self.unread} lines were"
        return [f"{self._path}: {lines} no JSON object, and left out"]
