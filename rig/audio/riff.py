"""Looks at a WAV file's header before the decoder does, and mends lengths that a writer to a pipe could not fill in.

It finds chunks and sizes only; decoding samples is the decoder's. Source of the layout: Microsoft's multimedia
registry (RIFF, WAVEFORMATEXTENSIBLE); of the wrong lengths: converters that cannot seek back in a pipe.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator

_UNKNOWN = 0xFFFFFFFF
_EXTENSIBLE = 0xFFFE
_READABLE_SUB_FORMATS = {1, 3}
"""PCM and IEEE float, as the first two bytes of the sub-format."""
_GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
"""The other fourteen bytes of every sub-format that stands for a plain format tag."""


class HeaderError(Exception):
    """The header is of no use; the text says why."""


def is_wav(data: bytes) -> bool:
    """True for the bytes of a RIFF/WAVE file."""
    return data[:4] == b"RIFF" and data[8:12] == b"WAVE"


def mend(data: bytes) -> tuple[bytes, list[str]]:
    """The file with true lengths in its header and nothing after its samples, and notes on what had to be mended.

    Raises HeaderError when the format or data chunk is missing, or an extensible sub-format is neither PCM nor float.
    """
    riff_size = struct.unpack_from("<I", data, 4)[0]
    block = 1
    for name, start, size in _chunks(data):
        if name == b"fmt ":
            block = _block_align(data[start : start + size])
        if name == b"data":
            there = len(data) - start
            length, notes = _data_length(size, there, is_whole=riff_size + 8 == len(data))
            if stray := length % block:
                length -= stray
                notes.append(f"{stray} stray bytes after the last whole sample are not played")
            header = bytearray(data[:start])
            struct.pack_into("<I", header, 4, start - 8 + length)
            struct.pack_into("<I", header, start - 4, length)
            return bytes(header) + data[start : start + length], notes
    raise HeaderError("no data chunk")


def _chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """(name, start of the body, size as the header has it) of each chunk, up to and with the first data chunk."""
    position = 12
    while position + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, position)
        yield name, position + 8, size
        position += 8 + size + size % 2


def _block_align(fmt: bytes) -> int:
    """Bytes of one sample of all channels, from the body of the format chunk."""
    if len(fmt) < 16:
        raise HeaderError("format chunk cut short")
    tag, _, _, _, block, _ = struct.unpack_from("<HHIIHH", fmt)
    if tag == _EXTENSIBLE:
        if len(fmt) < 40:
            raise HeaderError("format chunk cut short")
        sub_format = fmt[24:40]
        plain = struct.unpack_from("<H", sub_format)[0]
        if sub_format[2:] != _GUID_TAIL or plain not in _READABLE_SUB_FORMATS:
            name = f"{plain}" if sub_format[2:] == _GUID_TAIL else str(uuid.UUID(bytes_le=sub_format))
            raise HeaderError(f"sub-format {name} is neither PCM (1) nor float (3)")
    return max(1, int(block))


def _data_length(stated: int, there: int, *, is_whole: bool) -> tuple[int, list[str]]:
    """Bytes of samples: as stated where that can be true, else what is there up to the end of the file."""
    if stated == _UNKNOWN or (stated == 0 and there > 0 and not is_whole):
        return there, ["length unknown to the header: read to the end of the file"]
    if stated > there:
        missing = stated - there
        share = round(100 * missing / stated)
        return there, [f"cut short: header states {stated} bytes of samples, {missing} ({share} %) are missing"]
    return stated, []
