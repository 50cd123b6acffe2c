"""Writes attempts to a run folder from a thread of its own, so that no sync ever holds up the event loop.

Order per attempt: cassette, its blob and the reply audio under temporary names, synced and renamed; only then the
line of `captures.jsonl`, synced. A line on disk therefore means that all it names is on disk. The first failure stops
the writer for good and reaches the engine as `WriterError`; it decides nothing about cells.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import queue
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import anyio
import numpy as np
import soundfile

from captures.capture import Capture
from captures.cassette import Known, write_cassette
from captures.durable import sync_folder, write_file
from captures.frames import LoggedFrame
from captures.run_folder import RunFolder
from captures.scrub import Scrubber

_KEPT = ("identity", "target", "item_id", "variant_id", "cassette", "cassette_sha256")
"""Never masked: they name the cell and its files."""
_CASSETTE, _BLOB, _REPLY = ".jsonl.zst", ".blob.zst", ".flac"


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """All that one attempt leaves behind. File names in `capture` are filled in by the writer."""

    capture: Capture
    frames: Sequence[LoggedFrame] = ()
    reply_pcm: bytes = b""
    """PCM16 little-endian mono at `capture.reply_audio.rate_hz`, as received; a stray last byte is left out."""


class WriterError(RuntimeError):
    """The run folder could not be written; one line that names the file or folder and the reason. Ends the run."""


class CaptureWriter:
    """An async context manager: entering locks and mends the folder, leaving writes all that is queued.

    `notes` then holds what mending did, one line each. `on_written` is called on the event loop, with the capture as
    written, once its line is on disk; it must not raise. Leaving raises `WriterError` when not all could be written.
    """

    def __init__(
        self,
        folder: RunFolder,
        scrubber: Scrubber,
        queue_limit: int = 32,
        on_written: Callable[[Capture], None] | None = None,
    ) -> None:
        self.notes: list[str] = []
        self._folder = folder
        self._scrubber = scrubber
        self._known = Known()
        self._on_written = on_written
        self._room = anyio.Semaphore(queue_limit)
        self._queue: queue.SimpleQueue[AttemptRecord | None] = queue.SimpleQueue()
        self._finished = anyio.Event()
        self._failure: WriterError | None = None
        self._closed = False

    async def __aenter__(self) -> CaptureWriter:
        """Raises `FolderLockedError`, `DamagedRunError`, and `WriterError` when the folder cannot be written."""
        with ExitStack() as held:
            try:
                held.enter_context(self._folder.lock())
                self.notes = self._folder.mend()
                self._lines = os.open(self._folder.captures_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            except OSError as error:
                raise WriterError(f"{self._folder.path}: cannot be written ({error})") from error
            held.callback(os.close, self._lines)
            self._held = held.pop_all()
        self._loop = asyncio.get_running_loop()
        # A daemon: a killed process must not wait for it, and whatever it leaves half done is mended on the next run.
        self._thread = threading.Thread(target=self._work, name="capture-writer", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._drain()
        if error is None:
            self._raise_failure()

    async def put(self, record: AttemptRecord) -> None:
        """Queue `record`; waits while the queue is full. Raises `WriterError` once anything could not be written."""
        self._raise_failure()
        await self._room.acquire()
        if self._failure is not None or self._closed:
            self._room.release()
            self._raise_failure()
            raise WriterError(f"{self._folder.path}: the writer is closed")
        self._queue.put(record)

    async def close(self) -> None:
        """Write all that is queued and unlock the folder. Raises `WriterError` when something could not be written."""
        with anyio.CancelScope(shield=True):
            await self._drain()
        self._raise_failure()

    async def _drain(self) -> None:
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await self._finished.wait()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise WriterError(str(self._failure)) from self._failure.__cause__

    # On the event loop, called by the thread.

    def _settle(self, written: Capture | None, failure: WriterError | None) -> None:
        self._failure = self._failure or failure
        self._room.release()
        if written is not None and self._on_written is not None:
            self._on_written(written)

    # In the thread.

    def _work(self) -> None:
        failure: WriterError | None = None
        while (record := self._queue.get()) is not None:
            written = None
            if failure is None:
                try:
                    written = self._write(record)
                except Exception as error:  # noqa: BLE001 - handed on whole: no failure to write may pass unseen
                    failure = WriterError(
                        f"{self._folder.path}: attempt {record.capture.attempt} at {record.capture.item_id} "
                        f"on {record.capture.target} could not be written ({self._scrubber.scrub_text(str(error))})"
                    )
                    failure.__cause__ = error
            self._loop.call_soon_threadsafe(self._settle, written, failure)
        self._held.close()
        self._loop.call_soon_threadsafe(self._finished.set)

    def _write(self, record: AttemptRecord) -> Capture:
        capture = record.capture
        stem = self._free_stem(capture)
        names: dict[str, Any] = {}
        if record.frames:
            path = self._folder.wire_path / f"{stem}{_CASSETTE}"
            meta = {
                "identity": capture.identity,
                "attempt": capture.attempt,
                "dialect": capture.adapter,
                "wire_version": capture.wire_version,
                "parser_version": capture.parser_version,
                "clock": "monotonic, ns",
            }
            blob_path = self._folder.wire_path / f"{stem}{_BLOB}"
            names["cassette_sha256"] = write_cassette(
                path, blob_path, record.frames, meta=meta, scrubber=self._scrubber, known=self._known
            )
            sync_folder(path.parent)
            names["cassette"] = self._name(path)
        if capture.reply_audio is not None and len(record.reply_pcm) >= 2:
            path = self._folder.replies_path / f"{stem}{_REPLY}"
            write_file(path, _flac(record.reply_pcm, capture.reply_audio.rate_hz))
            sync_folder(path.parent)
            names["reply_audio"] = capture.reply_audio.model_copy(update={"file": self._name(path)})
        capture = scrubbed_capture(capture.model_copy(update=names), self._scrubber)
        self._append(_line(capture))
        return capture

    def _free_stem(self, capture: Capture) -> str:
        """A file name of this attempt's own: an earlier run may have been killed before it wrote the line."""
        name = f"{re.sub(r'[^A-Za-z0-9_-]', '_', capture.identity)[:32]}-{capture.attempt}"
        stem, number = name, 1
        while self._taken(stem):
            number += 1
            stem = f"{name}-{number}"
        return stem

    def _taken(self, stem: str) -> bool:
        wire, replies = self._folder.wire_path, self._folder.replies_path
        return any(
            path.exists()
            for path in (wire / f"{stem}{_CASSETTE}", wire / f"{stem}{_BLOB}", replies / f"{stem}{_REPLY}")
        )

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder.path).as_posix()

    def _append(self, line: bytes) -> None:
        start = os.fstat(self._lines).st_size
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._lines, left) :]
            os.fsync(self._lines)
        except OSError:
            os.ftruncate(self._lines, start)
            raise


def scrubbed_capture(capture: Capture, scrubber: Scrubber) -> Capture:
    """`capture` with secrets masked. What the agent said and called is masked by value only, never by looks; what
    names the cell and its files stays.
    """
    if capture.error is not None:
        words = {name: scrubber.scrub_text(getattr(capture.error, name)) for name in ("code", "message", "where")}
        capture = capture.model_copy(update={"error": capture.error.model_copy(update=words)})
    capture = capture.model_copy(
        update={
            "ending_detail": scrubber.scrub_text(capture.ending_detail),
            "close_reason": scrubber.scrub_text(capture.close_reason),
            "warnings": tuple(scrubber.scrub_text(warning) for warning in capture.warnings),
        }
    )
    line = _line(capture)
    if not scrubber.may_hold(line) and scrubber.scrub_short(line) == line:
        return capture
    kept = {name: getattr(capture, name) for name in _KEPT}
    masked = scrubber.mask_values(capture.model_dump())
    if capture.reply_audio is not None:
        masked["reply_audio"]["file"] = capture.reply_audio.file
    return Capture.model_validate({**masked, **kept})


def _line(capture: Capture) -> bytes:
    """One line of `captures.jsonl`. Plain `json`: an agent's arguments may hold numbers and characters that stricter
    encoders refuse.
    """
    return json.dumps(capture.model_dump(), separators=(",", ":")).encode() + b"\n"


def _flac(pcm: bytes, rate_hz: int) -> bytes:
    samples = np.frombuffer(pcm, "<i2", count=len(pcm) // 2)
    packed = io.BytesIO()
    soundfile.write(packed, samples, rate_hz, format="FLAC", subtype="PCM_16", compression_level=0.0)
    return packed.getvalue()
