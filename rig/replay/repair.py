"""Damaged lines of `captures.jsonl`, made anew from their cassettes.

A cassette holds every frame with its stamp, so what was observed follows from it and from the bank: marks, lateness of
every piece, calls, reply. What does not is left out, and said in the capture: the event loop's own lag, turns after the
first. A line whose cassette is gone, or cannot be read so, is set aside, and its cell is open again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapters import registry
from adapters.dialect import TurnMode
from adapters.tool_requests import SeesToolsElsewhere
from captures.capture import BargeIn, Capture, Ending, Mark
from captures.cassette import CassetteError, read_cassette
from captures.durable import sync_folder, write_file
from captures.frames import Direction, LoggedFrame
from captures.run_folder import DamagedRunError, RunFolder
from rig.cassettes.script import is_audio
from rig.engine.plan import Cell
from rig.replay.derive import derive
from rig.replay.source import ReplayError, StoredCall, StoredRun
from rig.verify.hashes import cassette_sha256
from turn_control.pacing import Lateness, audio_ns, chunk_ns

_IDENTITY: Final = re.compile(rb'"identity"\s*:\s*"([0-9a-f]{32})"')
NOTE: Final = (
    "this line was damaged and made anew from its frames: the event loop's lag and turns after the first are not in it"
)


@dataclass(frozen=True, slots=True)
class Repair:
    """What became of one damaged line."""

    line: int
    told: str
    capture: Capture | None
    """Made anew; None when it was set aside."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was done to a run folder."""

    repairs: tuple[Repair, ...]
    kept_as: str | None
    """Name of the file before; None when nothing was damaged."""


def repair(path: Path) -> Repaired:
    """Make every damaged line of the run in `path` anew, or set it aside; the file before is kept beside it.

    A torn last line is the next run's to mend, and stays.

    Raises:
        RunFolderError, BankError, ConfigError, ReplayError: the run cannot be read again.
        FolderLockedError: another rig is writing there.
    """
    stored = StoredRun(path)
    folder = stored.folder
    with folder.lock():
        lines = folder.captures_path.read_bytes().split(b"\n") if folder.captures_path.exists() else []
        whole = [_readable(folder, line, number) for number, line in enumerate(lines, start=1)]
        last = len(lines) - 1
        damaged = [at for at, capture in enumerate(whole) if capture is None and lines[at].strip() and at != last]
        if not damaged:
            return Repaired((), None)
        orphans = dict(_orphans(stored, [capture for capture in whole if capture is not None]))
        # Lines that still show whose they are come first: the others take what is left.
        nameless = sorted(damaged, key=lambda at: _IDENTITY.search(lines[at]) is None)
        repairs = sorted((_one(stored, at + 1, lines[at], orphans) for at in nameless), key=lambda one: one.line)
        by_line = {one.line: one for one in repairs}
        kept: list[bytes] = []
        for number, line in enumerate(lines, start=1):
            found = by_line.get(number)
            if found is None:
                kept.append(line)
            elif found.capture is not None:
                kept.append(json.dumps(found.capture.model_dump(), separators=(",", ":")).encode())
        aside = _aside(folder)
        os.link(folder.captures_path, aside)
        write_file(folder.captures_path, b"\n".join(kept))
        sync_folder(folder.path)
        return Repaired(tuple(repairs), aside.name)


def _one(stored: StoredRun, number: int, line: bytes, orphans: dict[str, Path]) -> Repair:
    found = _IDENTITY.search(line)
    wanted = found[1].decode() if found is not None else None
    choice = [key for key in orphans if wanted is None or key.startswith(f"{wanted}-")]
    if not choice:
        return Repair(number, "set aside: none of the stored frames are its own; its cell is open again", None)
    path = orphans.pop(choice[0])
    name = path.relative_to(stored.folder.path).as_posix()
    try:
        capture = capture_of(stored, path)
    except (ReplayError, CassetteError, OSError) as error:
        return Repair(number, f"set aside: {name} does not give it back ({error}); its cell is open again", None)
    where = "/".join(part for part in (capture.item_id, capture.variant_id) if part)
    return Repair(number, f"made anew from {name}: {capture.target}, {where}, {capture.ending}", capture)


def capture_of(stored: StoredRun, path: Path) -> Capture:
    """The capture that a cassette's frames give.

    Raises ReplayError, CassetteError, OSError.
    """
    meta, frames = read_cassette(path)
    cell = stored.cells.get(str(meta.get("identity")))
    if cell is None:
        raise ReplayError("bank or config are no longer those of the run, or its transcript stood in the line alone")
    if not frames:
        raise ReplayError("it holds no frames")
    dialect = str(meta.get("dialect"))
    if isinstance(registry.dialect(dialect), SeesToolsElsewhere):
        raise ReplayError(f"the silence around a turn of {dialect} cannot be told from the turn")
    client = stored.client(cell.target)
    name = path.relative_to(stored.folder.path).as_posix()
    reply = path.name.replace(".jsonl.zst", ".flac")
    bare = Capture(
        identity=cell.identity,
        target=cell.target,
        item_id=cell.item_id,
        variant_id=cell.variant_id,
        condition=cell.condition,
        repeat=cell.repeat,
        attempt=int(meta.get("attempt") or 1),
        finished=True,
        started_ns=frames[0].t_ns,
        adapter=dialect,
        wire_version=int(meta.get("wire_version") or 0),
        parser_version=int(meta.get("parser_version") or 0),
        ending=Ending.NO_ANSWER,
        warnings=(NOTE,),
        barge_in=_not_cut_in_on(cell),
        cassette=name,
        cassette_sha256=cassette_sha256(path),
    )
    chunk_ms = stored.prepared.resolved.config.chunk_ms
    marked = _timed(bare, cell, frames, chunk_ms, stored, streams=client.capabilities.streams_audio)
    made = derive(StoredCall(marked, cell, tuple(frames)), client, stored.prepared.resolved.config)
    if made.barge_in is not None and Mark.FIRST_AUDIBLE in made.marks:
        raise ReplayError("the caller was to cut in on it, and the line alone told when")
    audio = made.reply_audio
    if audio is not None and (stored.folder.replies_path / reply).is_file():
        audio = audio.model_copy(update={"file": f"replies/{reply}"})
    return made.model_copy(update={"finished": made.ending.scored, "reply_audio": audio})


def _not_cut_in_on(cell: Cell) -> BargeIn | None:
    planned = cell.barge_in
    if planned is None:
        return None
    return BargeIn(clip=planned.name, after_s=planned.after_s, not_played="the agent said nothing audible")


def _timed(
    bare: Capture, cell: Cell, frames: Sequence[LoggedFrame], chunk_ms: int, stored: StoredRun, *, streams: bool
) -> Capture:
    """`bare` with the marks of our own doing, and our lateness, as the stamps of what was sent show them."""
    sent = [frame for frame in frames if frame.direction is Direction.SENT]
    marks = {Mark.SESSION_READY: frames[0].t_ns}
    config = stored.prepared.resolved.config
    if cell.clip is None or not streams:
        commit_ns = _last_before_answer(frames)
        return bare.model_copy(
            update={
                "marks": {**marks, Mark.COMMIT: commit_ns},
                "pacing": Lateness().pacing(pace=config.pace, chunk_ms=0),
            }
        )
    clip = stored.client(cell.target).encode_clip(
        cell.clip.pcm_at(cell.setup.input_rate_hz), cell.setup.input_rate_hz, chunk_ms
    )
    chunks: list[LoggedFrame] = []
    for frame in sent:
        if len(chunks) < len(clip.frames) and frame.payload == clip.frames[len(chunks)].payload:
            chunks.append(frame)
    if len(chunks) < len(clip.frames):
        raise ReplayError(f"{len(chunks)} of the clip's {len(clip.frames)} pieces were sent")
    first_ns = chunks[0].t_ns
    step_ns = chunk_ns(chunk_ms, config.pace)
    lateness = Lateness()
    lateness.each_ns.extend(
        chunk.t_ns - first_ns - number * step_ns if config.pace else 0 for number, chunk in enumerate(chunks)
    )
    lateness.last_chunk_ns = lateness.each_ns[-1]
    end_ns = first_ns + audio_ns(clip.samples, clip.rate_hz, config.pace)
    marks |= {Mark.FIRST_CHUNK: first_ns, Mark.LAST_CHUNK: chunks[-1].t_ns}
    if config.pace:
        marks[Mark.CALLER_AUDIO_END] = end_ns
        if cell.clip.speech_end_s is not None:
            marks[Mark.CALLER_SPEECH_END] = min(first_ns + round(cell.clip.speech_end_s * 1e9 / config.pace), end_ns)
    if cell.setup.turn_control.mode is TurnMode.MANUAL:
        control = [f.t_ns for f in sent if f.t_ns >= chunks[-1].t_ns and not is_audio(f.payload, f.binary)]
        commit_ns = _commit(control, frames)
        marks[Mark.COMMIT] = commit_ns
        lateness.commit_ns = commit_ns - end_ns if config.pace else None
    return bare.model_copy(update={"marks": marks, "pacing": lateness.pacing(pace=config.pace, chunk_ms=chunk_ms)})


def _commit(control: Sequence[int], frames: Sequence[LoggedFrame]) -> int:
    """The last of the messages that end the turn: those between the clip and the first word of the peer."""
    if not control:
        raise ReplayError("nothing ended the caller's turn")
    answered = [f.t_ns for f in frames if f.direction is Direction.RECEIVED and f.t_ns > control[0]]
    return max([t_ns for t_ns in control if not answered or t_ns <= answered[0]], default=control[0])


def _last_before_answer(frames: Sequence[LoggedFrame]) -> int:
    """The last message of the first request: what follows it, after an answer, is of later turns."""
    sent = [frame.t_ns for frame in frames if frame.direction is Direction.SENT]
    if not sent:
        raise ReplayError("nothing was sent")
    setup = 1 if len(sent) > 1 else 0
    answered = [f.t_ns for f in frames if f.direction is Direction.RECEIVED and f.t_ns > sent[setup]]
    return max([t_ns for t_ns in sent if not answered or t_ns <= answered[0]], default=sent[setup])


def _orphans(stored: StoredRun, captures: Sequence[Capture]) -> Iterator[tuple[str, Path]]:
    """Cassettes that no whole line names, of cells that no whole line finished; by `identity-attempt`, in order."""
    named = {capture.cassette for capture in captures}
    finished = {capture.identity for capture in captures if capture.finished}
    for path in sorted(stored.folder.wire_path.glob("*.jsonl.zst")):
        identity = path.name.rpartition("-")[0]
        if path.relative_to(stored.folder.path).as_posix() not in named and identity not in finished:
            yield path.name.removesuffix(".jsonl.zst"), path


def _readable(folder: RunFolder, line: bytes, number: int) -> Capture | None:
    if not line.strip():
        return None
    try:
        return folder.capture_in(line, number)
    except DamagedRunError:
        return None


def _aside(folder: RunFolder) -> Path:
    number = 1
    while (path := folder.path / f"captures.before-repair-{number}.jsonl").exists():
        number += 1
    return path
