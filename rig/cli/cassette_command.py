"""`rig cassette`: single cassettes shown, cut short, and played to a client."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from adapters.foreign_json import brief
from captures.cassette import CassetteError, read_cassette
from captures.frames import Direction, LoggedFrame
from rig.cassettes.script import is_audio, kind_of, script_of
from rig.cassettes.serving import served
from rig.cassettes.trimming import trim
from rig.cli.failures import printable

_SHOWN = 100


def show_cassette(path: Path, *, as_json: bool) -> int:
    """Print every frame in a line; the exit code. Raises CassetteError."""
    meta, frames = _read(path)
    began_ns = frames[0].t_ns if frames else 0
    rows = [
        {
            "s": round((frame.t_ns - began_ns) / 1e9, 6),
            "direction": str(frame.direction),
            "kind": kind_of(frame.payload, frame.binary),
            "bytes": len(frame.payload),
            "text": None
            if is_audio(frame.payload, frame.binary)
            else brief(frame.payload.decode(errors="replace"), _SHOWN),
        }
        for frame in frames
    ]
    if as_json:
        print(json.dumps({"meta": meta, "frames": rows}, indent=1))
        return 0
    print(f"{path}: {meta.get('dialect')}, {len(frames)} frames")
    for row in rows:
        arrow = "→" if row["direction"] == Direction.SENT else "←"
        print(printable(f"{row['s']:10.3f} {arrow} {row['bytes']:>8} {row['kind']}  {row['text'] or ''}".rstrip()))
    return 0


def trim_cassette(path: Path, out: Path, audio_s: float) -> int:
    """Trim and say what was left; the exit code. Raises CassetteError."""
    if out.resolve() == path.resolve():
        raise CassetteError(f"{out}: is the cassette itself; choose another --out")
    if not out.name.endswith(".jsonl.zst"):
        raise CassetteError(f"{out}: name it like short.jsonl.zst; its sound goes beside it")
    try:
        result, before, after = trim(path, out, audio_s)
    except OSError as error:
        raise CassetteError(f"{error.filename or out}: {error.strerror}") from None
    dropped = (
        f"{result.dropped_sent} pieces of the caller's audio and {result.dropped_received} of the agent's left out"
    )
    print(f"{out}: {len(result.frames)} frames, {after:,} bytes (before: {before:,}); {dropped}")
    return 0


def serve_cassette(path: Path, port: int, speed: float, repeat: int) -> int:
    """Serve until `repeat` sessions are over (0: until interrupted); the exit code.

    Raises:
        CassetteError, UnservedError: it cannot be read, or not be served.
        ChildError: the port cannot be had.
    """
    script = script_of(*_read(path))

    async def main() -> None:
        over = 0
        done = anyio.Event()

        def on_done() -> None:
            nonlocal over
            over += 1
            if repeat and over >= repeat:
                done.set()

        def tell(text: str) -> None:
            print(printable(text), file=sys.stderr, flush=True)

        async with served(script, port, tell, speed=speed, on_done=on_done) as real_port:
            scheme = "http" if script.one_request else "ws"
            print(f"serving {path} at {scheme}://127.0.0.1:{real_port}", flush=True)
            await done.wait()

    try:
        anyio.run(main)
    except KeyboardInterrupt:
        return 130
    return 0


def _read(path: Path) -> tuple[dict[str, Any], list[LoggedFrame]]:
    try:
        return read_cassette(path)
    except OSError as error:
        raise CassetteError(f"{path}: cannot be read ({error.strerror})") from None
