"""Messages between the brain and its clients: one request and one answer per loopback connection.

Request: two 4-byte big-endian lengths (header, PCM), a JSON header `{token, rate_hz}`, PCM16 mono. Answer: a 4-byte
length and JSON, `{words, confidence}` (tag → 0 to 1) or `{error}`. Bytes only; no sockets here.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rig.agents.tagging import AUDIBLE

LENGTHS = struct.Struct("!II")
LENGTH = struct.Struct("!I")
MAX_HEADER_BYTES = 4096
MAX_PCM_BYTES = 16 * 1024 * 1024
MAX_ANSWER_BYTES = 1024 * 1024
TOKEN_ENV = "RIG_BRAIN_TOKEN"


@dataclass(frozen=True, slots=True)
class Impression:
    """What was heard of one utterance: its words, and how sure each acoustic tag is."""

    words: str = ""
    confidence: Mapping[str, float] = field(default_factory=dict)
    """Tag → 0 to 1."""

    @property
    def tags(self) -> frozenset[str]:
        """The tags that are sure enough to be acted on."""
        return frozenset(tag for tag, sure in self.confidence.items() if sure >= AUDIBLE)


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
    sure = data.get("confidence") if isinstance(data, dict) and isinstance(data.get("words"), str) else None
    if isinstance(sure, dict) and all(isinstance(one, int | float) for one in sure.values()):
        return Impression(data["words"], {str(tag): float(one) for tag, one in sure.items()})
    raise ValueError("neither an impression nor an error")
