"""Messages between the brain and its clients: one request and one answer per loopback connection.

Request: two 4-byte big-endian lengths (header, PCM), a JSON header `{token, rate_hz}`, PCM16 mono. Answer: a 4-byte
length and JSON, `{words, tags}` or `{error}`. Bytes only; no sockets here.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LENGTHS = struct.Struct("!II")
LENGTH = struct.Struct("!I")
MAX_HEADER_BYTES = 4096
MAX_PCM_BYTES = 16 * 1024 * 1024
MAX_ANSWER_BYTES = 1024 * 1024
TOKEN_ENV = "RIG_BRAIN_TOKEN"


@dataclass(frozen=True, slots=True)
class Impression:
    """What was heard of one utterance: its words, and acoustic tags."""

    words: str = ""
    tags: frozenset[str] = frozenset()


def request(token: str, pcm: bytes, rate_hz: int) -> bytes:
    """A whole request."""
    header = json.dumps({"token": token, "rate_hz": rate_hz}).encode()
    return LENGTHS.pack(len(header), len(pcm)) + header + pcm


def answer(body: Mapping[str, Any]) -> bytes:
    """A whole answer."""
    encoded = json.dumps(body).encode()
    return LENGTH.pack(len(encoded)) + encoded


def impression(body: bytes) -> Impression | str:
    """The impression in an answer's JSON, or the brain's error text. Raises ValueError when it is neither."""
    data = json.loads(body)
    if isinstance(data, dict) and isinstance(data.get("error"), str):
        return str(data["error"])
    if isinstance(data, dict) and isinstance(data.get("words"), str) and isinstance(data.get("tags"), list):
        return Impression(data["words"], frozenset(map(str, data["tags"])))
    raise ValueError("neither an impression nor an error")
