"""The run folder: where one run's observations lie, how they are read back, and what is done about a torn line.

    runs/<id>/run.json        what was run: resolved config, versions, hashes, host, clock anchor
    runs/<id>/captures.jsonl  one line per attempt, append-only
    runs/<id>/wire/           cassettes
    runs/<id>/replies/        reply audio
    runs/<id>/logs/

Appending is the writer's work (`captures.writer`). Whatever else is derived from these files is not kept here.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from captures.capture import CAPTURE_FORMAT, Capture
from captures.durable import TEMPORARY, sync_folder, write_file
from captures.lock import folder_lock
from captures.scrub import Scrubber

_REPAIR = "rig replay RUN --repair makes it anew from its cassette"


class RunFolderError(ValueError):
    """A run folder that cannot be made or read; one line that names it and says what to do."""


class DamagedRunError(RunFolderError):
    """`captures.jsonl` is damaged before its end; one line that names file and line number."""


@dataclass(frozen=True, slots=True)
class TornLine:
    """The start of a line whose writing was cut off, without newline, at the end of `captures.jsonl`."""

    line: int
    offset: int
    """Bytes before it."""
    fragment: bytes


@dataclass(frozen=True, slots=True)
class Reading:
    """What `captures.jsonl` holds."""

    captures: list[Capture]
    torn: TornLine | None
    lacks_newline: bool
    """The last line is whole but its newline is missing."""


class RunFolder:
    """An existing run folder. Reading needs no lock; write only while holding `lock()`."""

    def __init__(self, path: Path, run_json: Mapping[str, Any]) -> None:
        """Use `create` or `open`."""
        self.path = path
        self.run_json = run_json
        self.captures_path = path / "captures.jsonl"
        self.wire_path = path / "wire"
        self.replies_path = path / "replies"
        self.logs_path = path / "logs"

    @classmethod
    def create(cls, path: Path, run_json: Mapping[str, Any], scrubber: Scrubber | None = None) -> RunFolder:
        """Make the folder with its `run.json`, whose strings are masked by `scrubber`.

        Raises `RunFolderError` when a run is there already, or the folder cannot be written.
        """
        if (path / "run.json").exists():
            raise RunFolderError(f"{path}: holds a run already; resume it or choose another folder")
        folder = cls(path, scrubber.mask_values(dict(run_json)) if scrubber else dict(run_json))
        try:
            for part in (folder.wire_path, folder.replies_path, folder.logs_path):
                part.mkdir(parents=True, exist_ok=True)
            write_file(path / "run.json", json.dumps(folder.run_json, indent=2, sort_keys=True).encode() + b"\n")
            sync_folder(path)
            sync_folder(path.parent)
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be made a run folder ({error.strerror}); choose another") from None
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The run in `path`. Raises `RunFolderError` when there is none or `run.json` cannot be read."""
        try:
            run_json = json.loads((path / "run.json").read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise RunFolderError(f"{path}: no run here (run.json is missing)") from None
        except OSError as error:
            raise RunFolderError(f"{path / 'run.json'}: cannot be read ({error.strerror})") from None
        except ValueError as error:
            raise RunFolderError(f"{path / 'run.json'}: not readable as JSON ({error})") from error
        if not isinstance(run_json, dict):
            raise RunFolderError(f"{path / 'run.json'}: not a JSON object")
        return cls(path, run_json)

    def rewrite(self, run_json: Mapping[str, Any], scrubber: Scrubber) -> None:
        """Replace `run.json`, whose strings are masked by `scrubber`. The caller holds the lock. Raises `OSError`."""
        self.run_json = scrubber.mask_values(dict(run_json))
        write_file(self.path / "run.json", json.dumps(self.run_json, indent=2, sort_keys=True).encode() + b"\n")
        sync_folder(self.path)

    def lock(self) -> AbstractContextManager[None]:
        """Hold the folder for writing. Entering raises `FolderLockedError`, naming its holder, when it is held."""
        return folder_lock(self.path / ".lock")

    def read(self) -> Reading:
        """All of `captures.jsonl`; a missing or empty file holds nothing. Changes nothing.

        Raises `DamagedRunError` when a line other than a torn last one cannot be read.
        """
        try:
            content = self.captures_path.read_bytes()
        except FileNotFoundError:
            content = b""
        captures: list[Capture] = []
        offset = 0
        for number, line in enumerate(content.split(b"\n"), start=1):
            last = offset + len(line) == len(content)
            if last and not line:
                return Reading(captures, None, lacks_newline=False)
            # Half a JSON object is never JSON: a last line that is JSON was written whole.
            if last and not _is_json(line):
                return Reading(captures, TornLine(number, offset, line), lacks_newline=False)
            captures.append(self.capture_in(line, number))
            offset += len(line) + 1
        return Reading(captures, None, lacks_newline=True)

    def read_captures(self) -> list[Capture]:
        """All attempts in the order they were written, without a torn last line. Raises `DamagedRunError`."""
        return self.read().captures

    def finished(self) -> dict[str, Capture]:
        """The capture that finished each cell, by identity. Should two lines finish one cell, the first one counts:
        it is what earlier reports showed. Raises `DamagedRunError`.
        """
        found: dict[str, Capture] = {}
        for capture in self.read_captures():
            if capture.finished:
                found.setdefault(capture.identity, capture)
        return found

    def attempts(self, identity: str) -> list[Capture]:
        """All attempts at one cell, in the order they were written. Raises `DamagedRunError`."""
        return [capture for capture in self.read_captures() if capture.identity == identity]

    def mend(self) -> list[str]:
        """Make `captures.jsonl` ready for appending; call it while holding the lock. Returns what was done, as lines.

        A torn last line is moved to a file beside it, a missing last newline is added, and unfinished files of a
        killed run are deleted. Raises `DamagedRunError` before it changes anything.
        """
        reading = self.read()
        done = []
        if reading.torn is not None:
            aside = self._aside()
            write_file(aside, reading.torn.fragment)
            os.truncate(self.captures_path, reading.torn.offset)
            done.append(
                f"{self.captures_path}, line {reading.torn.line}: torn line of {len(reading.torn.fragment)} bytes "
                f"moved to {aside.name}; its cell runs again unless another line finished it"
            )
        if reading.lacks_newline:
            with self.captures_path.open("ab") as file:
                file.write(b"\n")
            done.append(f"{self.captures_path}, line {len(reading.captures)}: missing newline added")
        for folder in (self.path, self.wire_path, self.replies_path):
            folder.mkdir(exist_ok=True)
            for leftover in folder.glob(f"*{TEMPORARY}"):
                leftover.unlink()
        return done

    def _aside(self) -> Path:
        number = 1
        while (path := self.path / f"captures.torn-{number}.txt").exists():
            number += 1
        return path

    def capture_in(self, line: bytes, number: int) -> Capture:
        """The capture in line `number`. Raises `DamagedRunError`."""
        where = f"{self.captures_path}, line {number}"
        try:
            data = json.loads(line)
            written = data.get("format") if isinstance(data, dict) else None
            if isinstance(written, int) and written > CAPTURE_FORMAT:
                raise DamagedRunError(
                    f"{where}: capture format {written} of a newer version; this one reads {CAPTURE_FORMAT}"
                )
            return Capture.model_validate(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"]) or "the line"
            raise DamagedRunError(f"{where}: not a capture ({field}: {first['msg']}); {_REPAIR}") from error
        except (ValueError, RecursionError) as error:
            if isinstance(error, DamagedRunError):
                raise
            raise DamagedRunError(f"{where}: damaged ({error}); nothing was changed; {_REPAIR}") from error


def new_run_id(now: datetime) -> str:
    """A name for a run's folder that sorts by time, e.g. `20261130-231500-ab12`."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
