"""Builds WAV files byte by byte, so that tests can say exactly what is wrong with a header."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

LIST_CHUNK = b"LIST" + struct.pack("<I", 8) + b"INFO\x11\x22\x33\x44"


def _format_chunk(rate_hz: int, bits: int, channels: int, tag: int, sub_format: bytes | None) -> bytes:
    block = channels * bits // 8
    if sub_format is None:
        return struct.pack("<HHIIHH", tag, channels, rate_hz, rate_hz * block, block, bits)
    head = struct.pack("<HHIIHH", 0xFFFE, channels, rate_hz, rate_hz * block, block, bits)
    return head + struct.pack("<HHI", 22, bits, 0) + sub_format


@pytest.fixture
def write_wav(tmp_path: Path) -> Callable[..., Path]:
    """Write a WAV of the given sample bytes; sizes and chunks as told, true by default."""

    def write(
        data: bytes | None,
        *,
        rate_hz: int = 16_000,
        bits: int = 16,
        channels: int = 1,
        tag: int = 1,
        sub_format: bytes | None = None,
        riff_size: int | None = None,
        data_size: int | None = None,
        list_before: bool = False,
        list_after: bool = False,
    ) -> Path:
        fmt = _format_chunk(rate_hz, bits, channels, tag, sub_format)
        body = b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt
        body += LIST_CHUNK if list_before else b""
        if data is not None:
            body += b"data" + struct.pack("<I", len(data) if data_size is None else data_size) + data
        body += LIST_CHUNK if list_after else b""
        path = tmp_path / "clip.wav"
        path.write_bytes(b"RIFF" + struct.pack("<I", len(body) if riff_size is None else riff_size) + body)
        return path

    return write
