"""The wire of Gemini Live: codec, client messages, and the keys' two spellings.

Facts: ai.google.dev/gemini-api/docs/live-api and google-genai 3.6.1 (`live.py`, `types.py`). A client message holds
exactly one top-level key. Not here: what a message means (see `client` and `server`).
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from adapters.foreign_json import JsonObject
from captures.frames import OutFrame

INPUT_RATE_HZ: Final = 16_000
"""Signed 16-bit little-endian mono; other rates are resampled by the vendor."""
OUTPUT_RATE_HZ: Final = 24_000
HOST: Final = "generativelanguage.googleapis.com"
PATH: Final = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
TOKEN_PATH: Final = "/ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateContentConstrained"
"""For ephemeral `auth_tokens/…`."""

_RATE = re.compile(r";\s*rate=([0-9]{4,6})\b")
_URL_SAFE = str.maketrans("-_", "+/")


def encode(message: Mapping[str, Any], *, binary: bool = False) -> OutFrame:
    """A message as one frame; the vendor's own are binary, clients send text."""
    return OutFrame(orjson.dumps(message), binary=binary)


def field(message: Mapping[str, Any], name: str) -> Any:
    """The value under a camel-case name or its snake-case spelling; None when there is neither.

    The SDK mixes both in one message.
    """
    value = message.get(name)
    return message.get(re.sub(r"([A-Z])", r"_\1", name).lower()) if value is None else value


def camel(name: str) -> str:
    """A key in camel case, whichever way it was spelt."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def decode_audio(base64_text: str) -> bytes | None:
    """Bytes of base64 text in either alphabet (the SDK sends the URL-safe one); None when it is not base64."""
    try:
        return binascii.a2b_base64(base64_text.translate(_URL_SAFE), strict_mode=True) if base64_text else b""
    except ValueError:
        return None


def rate_of(mime_type: str, default: int) -> int | None:
    """Rate in a PCM media type, Hz, `default` when it states none; None for another type."""
    if mime_type.partition(";")[0].strip().lower() not in ("audio/pcm", "audio/l16"):
        return None
    stated = _RATE.search(mime_type)
    return int(stated[1]) if stated else default


def audio(pcm: bytes, rate_hz: int) -> OutFrame:
    """`realtimeInput.audio`: caller audio, PCM16 mono."""
    data = binascii.b2a_base64(pcm, newline=False)
    return OutFrame(b'{"realtimeInput":{"audio":{"data":"' + data + b'","mimeType":"audio/pcm;rate=%d"}}}' % rate_hz)


def activity_start() -> OutFrame:
    """`realtimeInput.activityStart`: the caller begins to speak (automatic detection off)."""
    return encode({"realtimeInput": {"activityStart": {}}})


def activity_end() -> OutFrame:
    """`realtimeInput.activityEnd`: the caller has finished; starts the answer (automatic detection off)."""
    return encode({"realtimeInput": {"activityEnd": {}}})


def audio_stream_end() -> OutFrame:
    """`realtimeInput.audioStreamEnd`: no more audio for now (automatic detection on)."""
    return encode({"realtimeInput": {"audioStreamEnd": True}})


def realtime_text(text: str) -> OutFrame:
    """`realtimeInput.text`: the caller's words as text, answered at once."""
    return encode({"realtimeInput": {"text": text}})


def content_turn(text: str) -> OutFrame:
    """`clientContent`: a whole user turn, answered at once."""
    turn = {"role": "user", "parts": [{"text": text}]}
    return encode({"clientContent": {"turns": [turn], "turnComplete": True}})


def tool_response(response: JsonObject) -> OutFrame:
    """`toolResponse` of one call; no further request to go on is needed."""
    return encode({"toolResponse": {"functionResponses": [response]}})
