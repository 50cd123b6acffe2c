"""Pipecat's own framing of a WebSocket: each message a protobuf `Frame` with text, audio, transcription or a message.

Fields as in frames.proto of Pipecat (src/pipecat/frames): Frame{1 text, 2 audio, 3 transcription, 4 message},
AudioRawFrame{3 audio, 4 sample_rate, 5 num_channels}, TextFrame and TranscriptionFrame{3 text}, MessageFrame{1 data}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_TEXT, _AUDIO, _TRANSCRIPTION, _MESSAGE = 1, 2, 3, 4
_MAX_FIELDS: Final = 64
_LENGTH: Final = 2


@dataclass(frozen=True, slots=True)
class Audio:
    """A piece of speech, PCM16 mono."""

    pcm: bytes
    rate_hz: int


@dataclass(frozen=True, slots=True)
class Words:
    """A frame that holds text: `message` (JSON text), `text` or `transcription`."""

    kind: str
    text: str


def audio_frame(pcm: bytes, rate_hz: int) -> bytes:
    """PCM16 mono as an `AudioRawFrame`."""
    return _field(_AUDIO, _field(3, pcm) + _number(4, rate_hz) + _number(5, 1))


def message_frame(text: bytes) -> bytes:
    """JSON text as a `MessageFrame`."""
    return _field(_MESSAGE, _field(1, text))


def read_frame(payload: bytes) -> Audio | Words | None:
    """What a frame holds; None when it is no `Frame`, or audio of several channels."""
    try:
        outer = _fields(payload)
        number, inner = next((number, value) for number, value in outer.items() if isinstance(value, bytes))
        fields = _fields(inner)
        if number == _AUDIO:
            rate_hz, channels, pcm = fields.get(4, 0), fields.get(5, 1), fields.get(3, b"")
            known = isinstance(rate_hz, int) and 8_000 <= rate_hz <= 48_000 and channels == 1
            return Audio(pcm, rate_hz) if known and isinstance(pcm, bytes) and isinstance(rate_hz, int) else None
        kind = {_TEXT: "text", _TRANSCRIPTION: "transcription", _MESSAGE: "message"}.get(number)
        text = fields.get(1 if number == _MESSAGE else 3, b"")
        return Words(kind, text.decode()) if kind is not None and isinstance(text, bytes) else None
    except (ValueError, IndexError, StopIteration):
        return None


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | _LENGTH) + _varint(len(data)) + data


def _fields(data: bytes) -> dict[int, int | bytes]:
    """Fields by number, the last of each. Raises ValueError or IndexError for what is no protobuf message."""
    found: dict[int, int | bytes] = {}
    at = 0
    for _ in range(_MAX_FIELDS):
        if at >= len(data):
            return found
        key, at = _read_varint(data, at)
        kind = key & 7
        if kind == 0:
            found[key >> 3], at = _read_varint(data, at)
            continue
        length, at = _read_varint(data, at) if kind == _LENGTH else ({1: 8, 5: 4}.get(kind, -1), at)
        if length < 0 or at + length > len(data):
            raise ValueError("not a protobuf message")
        found[key >> 3] = data[at : at + length]
        at += length
    raise ValueError("too many fields")


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number longer than 64 bits")
