"""`rig timeline`: calls of a run as stereo files."""

from __future__ import annotations

import fnmatch
import json
import re
import sys
import tempfile
from pathlib import Path

import anyio
import soundfile

from captures.capture import Capture, Mark
from captures.cassette import CassetteError
from captures.durable import write_file
from rig.replay.events import replay
from rig.replay.self_check import LIMIT_MS, self_check
from rig.replay.source import ReplayError, StoredRun
from rig.replay.timeline import Timeline, sent_pieces, timeline

_NAME = re.compile(r"[^A-Za-z0-9._-]")


def write_timelines(run: Path, target: str, cell: str, out: Path, *, as_json: bool) -> int:
    """Write the calls of `run` that match, as FLAC and marks; the exit code: 2 when one of them could not be laid out.

    Raises:
        ReplayError: none matches, or nothing can be written.
        RunFolderError, BankError, ConfigError: the run cannot be read again.
    """
    stored = StoredRun(run)
    chosen = [
        capture
        for capture in stored.folder.finished().values()
        if fnmatch.fnmatchcase(capture.target, target) and fnmatch.fnmatchcase(_cell(capture), cell)
    ]
    if not chosen:
        raise ReplayError(f"{run}: no call of {target!r} at {cell!r}; --cell takes item/variant, with *")
    written: list[dict[str, object]] = []
    failed = left_out = 0
    for capture in chosen:
        if Mark.FIRST_CHUNK not in capture.marks:
            left_out += 1
            continue
        try:
            made = _timeline(stored, capture)
        except (ReplayError, CassetteError) as error:
            print(f"rig: {capture.target}, {_cell(capture)}: {error}", file=sys.stderr)
            failed += 1
            continue
        path = out / (_NAME.sub("_", f"{capture.target}--{_cell(capture)}--{capture.condition}--{capture.repeat}"))
        written.append(_write(path.with_name(path.name + ".flac"), capture, made))
    if as_json:
        print(json.dumps({"format": 1, "written": written, "failed": failed, "nothing_streamed": left_out}))
    else:
        rest = f"; {left_out} streamed no audio (text, or a whole clip at once) and have none" if left_out else ""
        print(f"rig: {len(written)} calls in {out}, each with its marks as JSON beside it{rest}", file=sys.stderr)
    return 2 if failed else 0


def check_alignment(out: Path | None) -> int:
    """Play a call of tones, and tell how far they lie from the marks; the exit code: 1 when further than 1 ms."""
    with tempfile.TemporaryDirectory() as logs:
        found, made = anyio.run(self_check, Path(logs))
    if out is not None:
        _write_flac(out / "self-check.flac", made)
    print(f"caller's tone {found.caller_ms:+.3f} ms from its mark, agent's {found.agent_ms:+.3f} ms")
    if not found.within:
        print(f"rig: further than {LIMIT_MS:g} ms: this machine was too busy, or there is a bug", file=sys.stderr)
        return 1
    return 0


def _cell(capture: Capture) -> str:
    return f"{capture.item_id}/{capture.variant_id}" if capture.variant_id else capture.item_id


def _timeline(stored: StoredRun, capture: Capture) -> Timeline:
    call = stored.call(capture)
    chunk_ms = stored.prepared.resolved.config.chunk_ms
    replayed = replay(call, stored.client(capture.target), chunk_ms)
    assert replayed.clip is not None, "a cell with a variant has a clip"
    assert call.cell.clip is not None
    sent = sent_pieces(call.frames, replayed.clip)
    return timeline(sent, call.cell.clip.clip, chunk_ms, replayed.events, capture.marks)


def _write(path: Path, capture: Capture, made: Timeline) -> dict[str, object]:
    described: dict[str, object] = {
        "file": path.name,
        "target": capture.target,
        "item_id": capture.item_id,
        "variant_id": capture.variant_id,
        "condition": capture.condition,
        "repeat": capture.repeat,
        "rate_hz": made.rate_hz,
        "channels": ["caller as sent", "agent as heard"],
        "marks_samples": dict(made.marks),
        "marks_s": {mark: at / made.rate_hz for mark, at in made.marks.items()},
    }
    _write_flac(path, made)
    write_file(path.with_suffix(".json"), json.dumps(described, indent=1).encode() + b"\n")
    return described


def _write_flac(path: Path, made: Timeline) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, made.samples, made.rate_hz, format="FLAC", subtype="PCM_16")
    except (OSError, soundfile.SoundFileError) as error:
        raise ReplayError(f"{path}: cannot be written ({error})") from None
