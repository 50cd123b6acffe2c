"""Cassettes: all frames of one attempt, in order, with their stamps; written once, read back byte for byte.

A cassette is a zstd-compressed file of JSON lines beside one zstd-compressed blob of raw bytes. The first line is
the header; each further line is a frame, whose `parts` put together give its payload:

- a string: these characters as UTF-8;
- `[offset, length]`: these bytes of the blob;
- `[offset, length, "base64"]`: these bytes of the blob, as standard base64.

So audio lies in the blob once, as it was before any encoding. Secrets are masked as written: a frame that held one
is not given back as it was. Playing a cassette to a session is not done here.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import orjson
import zstandard

from captures.durable import write_file
from captures.frames import Direction, LoggedFrame
from captures.scrub import Scrubber

CASSETTE_FORMAT = 1
_LEVEL = 1
_LARGEST = 2 << 30
"""Most bytes that a cassette or blob may unpack to."""
_RUN = re.compile(rb"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{256,}+={0,2}")
"""Base64 of 256 characters or more. Tried at the start of a word only, so that the time stays linear."""

_LEAST = 256
"""Characters of a run."""
_MOST_PIECES = 64
"""Strings of a message that is taken apart at its quotation marks."""

_KNOWN_PIECES = 16_384
"""Of 20 ms they are five minutes of clips, and hold 40 MB."""
_KNOWN_BYTES = 4_096
"""Of one."""
_KNOWN_TEXTS = 64
"""What stands around sound; of one cassette."""

Part = str | tuple[int, int] | tuple[int, int, str]


class CassetteError(ValueError):
    """A cassette that cannot be read; one line that names the file."""


def write_cassette(
    path: Path,
    blob_path: Path,
    frames: Sequence[LoggedFrame],
    *,
    meta: Mapping[str, Any],
    scrubber: Scrubber,
    known: Known | None = None,
) -> str:
    """Write `frames` to `path` and their audio to `blob_path`, both in one folder, blob first.

    `meta` is kept in the header: dialect, wire_version, parser_version, clock, …. `known` may be shared by all
    cassettes that are written one after the other with one `scrubber`. Returns the SHA-256 over both files as they
    lie, the blob last. Raises `OSError`; the names are durable after `sync_folder`.
    """
    known = known or Known()
    apart = [known.apart(frame) for frame in frames]
    payloads = [frame.payload for frame in frames]
    if scrubber.may_hold(b"".join([frame.payload for frame in frames if not known.is_clean(frame)])):
        payloads = [scrubber.scrub_bytes(payload) for payload in payloads]
        apart = [_taken_apart(payload, frame.binary) for frame, payload in zip(frames, payloads, strict=True)]
    else:
        known.keep(frames, apart)
    blob = _Blob()
    quoted = lru_cache(_KNOWN_TEXTS)(partial(_quoted, scrubber))
    lines = [
        _line(frame, payload, one, blob, scrubber, quoted)
        for frame, payload, one in zip(frames, payloads, apart, strict=True)
    ]
    header = {
        "format": CASSETTE_FORMAT,
        "frames": len(frames),
        "blob": blob_path.name,
        "blob_bytes": blob.size,
        "meta": scrubber.mask_values(dict(meta)),
    }
    packed_blob = _packed(b"".join(blob.pieces))
    packed = _packed(b"\n".join([json.dumps(header).encode(), *lines, b""]))
    write_file(blob_path, packed_blob)
    write_file(path, packed)
    digest = hashlib.sha256(packed)
    digest.update(packed_blob)
    return digest.hexdigest()


def read_cassette(path: Path) -> tuple[dict[str, Any], list[LoggedFrame]]:
    """The header's `meta`, and the frames. Raises `CassetteError`, and `OSError` when a file cannot be opened."""
    lines = _unpacked(path).splitlines()
    try:
        header = json.loads(lines[0])
        if header["format"] != CASSETTE_FORMAT:
            raise CassetteError(f"{path}: cassette format {header['format']}; this version reads {CASSETTE_FORMAT}")
        if len(lines) - 1 != header["frames"]:
            raise CassetteError(f"{path}: {len(lines) - 1} frames, where its header says {header['frames']}")
        blob_path = path.with_name(Path(header["blob"]).name)
        blob = _unpacked(blob_path)
        if len(blob) != header["blob_bytes"]:
            raise CassetteError(f"{blob_path}: {len(blob)} bytes, where {path.name} says {header['blob_bytes']}")
        return header["meta"], [_frame(orjson.loads(line), blob) for line in lines[1:]]
    except (IndexError, KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, CassetteError):
            raise
        raise CassetteError(f"{path}: not a cassette ({error})") from error


class _Blob:
    """Raw bytes put aside while the lines are made."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0

    def add(self, piece: bytes) -> tuple[int, int]:
        """Offset and length of `piece` in the blob."""
        self.pieces.append(piece)
        self.size += len(piece)
        return self.size - len(piece), len(piece)


def _line(
    frame: LoggedFrame,
    payload: bytes,
    apart: _Apart | None,
    blob: _Blob,
    scrubber: Scrubber,
    quoted: Callable[[bytes], bytes | None],
) -> bytes:
    if apart is not None:
        before, after = quoted(apart.before), quoted(apart.after)
        if before is not None and after is not None:
            # Put together by hand: most of a call is such frames, and only numbers differ.
            coded = b'[%d,%d,"base64"]' % blob.add(apart.raw)
            start = b'{"t_ns":%d,"direction":"%b","binary":%b,"parts":[' % (
                frame.t_ns, frame.direction.value.encode(), b"true" if frame.binary else b"false",
            )  # fmt: skip
            return start + b",".join([part for part in (before, coded, after) if part]) + b"]}"
    parts = _parts(payload, frame.binary, blob, scrubber)
    return orjson.dumps({"t_ns": frame.t_ns, "direction": frame.direction, "binary": frame.binary, "parts": parts})


def _quoted(scrubber: Scrubber, text: bytes) -> bytes | None:
    """`text` as a JSON string, empty where it is; None where it is no UTF-8."""
    return orjson.dumps(scrubber.scrub_short(text).decode()) if text and _is_utf8(text) else None if text else b""


def _parts(payload: bytes, binary: bool, blob: _Blob, scrubber: Scrubber) -> list[Part]:
    # Some vendors send JSON in binary messages: those are stored as text too.
    if (binary and not payload.startswith((b"{", b"["))) or not _is_utf8(payload):
        return [blob.add(payload)]
    parts: list[Part] = []
    done = 0
    for match in _RUN.finditer(payload):
        run = match[0] if match[0].endswith(b"=") else match[0][: len(match[0]) // 4 * 4]
        raw = _decoded(run)
        if raw is None:
            continue
        if match.start() > done:
            parts.append(scrubber.scrub_short(payload[done : match.start()]).decode())
        parts.append((*blob.add(raw), "base64"))
        done = match.start() + len(run)
    if done < len(payload):
        parts.append(scrubber.scrub_short(payload[done:]).decode())
    return parts


@dataclass(frozen=True, slots=True)
class _Apart:
    """A message with one long string, all of it base64."""

    before: bytes
    raw: bytes
    """What the string holds."""
    after: bytes


def _taken_apart(payload: bytes, binary: bool) -> _Apart | None:
    """Most messages with sound are so: the same parts as the search for runs gives, several times faster."""
    if len(payload) < _LEAST or (binary and not payload.startswith((b"{", b"["))):
        return None
    pieces = payload.split(b'"', _MOST_PIECES)
    long = [at for at, piece in enumerate(pieces) if len(piece) >= _LEAST]
    if len(long) != 1 or len(pieces) > _MOST_PIECES:
        return None
    at = long[0]
    raw = _decoded(pieces[at])
    if raw is None:
        return None
    return _Apart(b'"'.join([*pieces[:at], b""]), raw, b'"'.join([b"", *pieces[at + 1 :]]))


class Known:
    """Messages of ours in which no secret was found, taken apart. Bounded; for one scrubber.

    Every attempt at a clip sends the same pieces, which are most of a call: they are looked through once.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[bytes, bool], _Apart | None] = {}

    def apart(self, frame: LoggedFrame) -> _Apart | None:
        """`frame` as a message with one long string of base64; None where it is none."""
        if self.is_clean(frame):
            return self._found[frame.payload, frame.binary]
        return _taken_apart(frame.payload, frame.binary)

    def is_clean(self, frame: LoggedFrame) -> bool:
        """True for a message that was kept before."""
        return frame.direction is Direction.SENT and (frame.payload, frame.binary) in self._found

    def keep(self, frames: Sequence[LoggedFrame], apart: Sequence[_Apart | None]) -> None:
        """Keep those of `frames` that we sent: none of them holds a secret. The oldest make room."""
        for frame, one in zip(frames, apart, strict=True):
            if frame.direction is Direction.SENT and len(frame.payload) <= _KNOWN_BYTES:
                self._found[frame.payload, frame.binary] = one
        while len(self._found) > _KNOWN_PIECES:
            del self._found[next(iter(self._found))]


def _is_utf8(payload: bytes) -> bool:
    if payload.isascii():
        return True
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def _decoded(run: bytes) -> bytes | None:
    """`run` decoded, or None when encoding it again would not give the same characters."""
    try:
        raw = binascii.a2b_base64(run, strict_mode=True)
    except binascii.Error:
        return None
    # In strict mode only the bits behind the last byte can differ.
    rest = len(raw) % 3 or 3
    return raw if raw and binascii.b2a_base64(raw[-rest:], newline=False) == run[-4:] else None


def _frame(line: dict[str, Any], blob: bytes) -> LoggedFrame:
    payload = b"".join([_payload(part, blob) for part in line["parts"]])
    return LoggedFrame(line["t_ns"], Direction(line["direction"]), payload, line["binary"])


def _payload(part: Any, blob: bytes) -> bytes:
    if isinstance(part, str):
        return part.encode()
    offset, length, *coding = part
    raw = blob[offset : offset + length]
    if offset < 0 or len(raw) != length:
        raise ValueError(f"part {part} lies outside the blob")
    if not coding:
        return raw
    if coding != ["base64"]:
        raise ValueError(f"unknown coding in part {part}")
    return binascii.b2a_base64(raw, newline=False)


def _packed(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(content)


def _unpacked(path: Path) -> bytes:
    packed = path.read_bytes()
    try:
        size = zstandard.frame_content_size(packed)
        if not 0 <= size <= _LARGEST:
            raise CassetteError(f"{path}: says it holds {size} bytes; at most {_LARGEST} are read")
        return zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as error:
        raise CassetteError(f"{path}: damaged ({error})") from error
