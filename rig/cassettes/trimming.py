"""Cuts a cassette down to what shows a bug: all that was said in messages, and the first seconds of sound both ways.

Messages are kept whole or left out whole; none is edited. The blob holds only what is still referred to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from captures.cassette import read_cassette, write_cassette
from captures.frames import Direction, LoggedFrame
from captures.scrub import Scrubber
from rig.cassettes.script import Steps, is_audio

_GUESSED_BYTES_PER_S = 48_000
"""PCM16 at 24 kHz; used where nothing shows how fast sound was sent."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What was left."""

    frames: tuple[LoggedFrame, ...]
    dropped_sent: int
    dropped_received: int


def trimmed(frames: Sequence[LoggedFrame], audio_s: float) -> Trimmed:
    """`frames` with the first `audio_s` seconds of each run of the client's audio, and as many of each answer's.

    The client's audio is cut by the clock it was paced by. The vendor's may come faster than it plays, so it is cut by
    its size, at the client's own bytes a second.
    """
    rate = _bytes_per_s(frames)
    kept: list[LoggedFrame] = []
    dropped = {Direction.SENT: 0, Direction.RECEIVED: 0}
    steps = Steps()
    run_began_ns = 0
    heard = 0
    for frame in frames:
        audio = is_audio(frame.payload, frame.binary)
        if frame.direction is Direction.SENT:
            if steps.is_step(frame.payload, frame.binary):
                run_began_ns, heard = frame.t_ns, 0
            elif audio and frame.t_ns - run_began_ns > audio_s * 1e9:
                dropped[frame.direction] += 1
                continue
        elif audio:
            heard += len(frame.payload)
            if heard > audio_s * rate and heard > len(frame.payload):
                dropped[frame.direction] += 1
                continue
        kept.append(frame)
    return Trimmed(tuple(kept), dropped[Direction.SENT], dropped[Direction.RECEIVED])


def trim(path: Path, out: Path, audio_s: float) -> tuple[Trimmed, int, int]:
    """Trim the cassette at `path` into `out` and its blob beside it, scrubbed anew; also the sizes before and after.

    Raises:
        CassetteError, OSError: it cannot be read or written.
    """
    meta, frames = read_cassette(path)
    result = trimmed(frames, audio_s)
    blob = blob_beside(out)
    meta["trimmed"] = {
        "audio_s": audio_s,
        "dropped_sent": result.dropped_sent,
        "dropped_received": result.dropped_received,
    }
    write_cassette(out, blob, result.frames, meta=meta, scrubber=Scrubber(()))
    before = path.stat().st_size + blob_beside(path).stat().st_size
    return result, before, out.stat().st_size + blob.stat().st_size


def blob_beside(path: Path) -> Path:
    """Where the sound of the cassette at `path` lies."""
    stem = path.name.removesuffix(".jsonl.zst").removesuffix(".zst")
    return path.with_name(f"{stem}.blob.zst")


def _bytes_per_s(frames: Sequence[LoggedFrame]) -> float:
    sent = [one for one in frames if one.direction is Direction.SENT and is_audio(one.payload, one.binary)]
    if len(sent) < 10 or sent[-1].t_ns - sent[0].t_ns < 100_000_000:
        return _GUESSED_BYTES_PER_S * 4 / 3
    return sum(len(one.payload) for one in sent[:-1]) / ((sent[-1].t_ns - sent[0].t_ns) / 1e9)
