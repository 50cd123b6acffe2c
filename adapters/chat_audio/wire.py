"""Bodies of OpenAI's chat.completions with `input_audio`: requests, responses, errors.

Facts: OpenAI's guide to audio in chat completions and the types of its Python SDK (`openai.types.chat`, 3.57);
OpenRouter's audio guide. Not here: what a body means (see `client` and `server`), and HTTP (see `sdk`).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from adapters.chat_audio import wav
from adapters.dialect import ToolSpec
from adapters.foreign_json import JsonObject, list_of, text_of

BASE_URL: Final = "https://api.openai.com/v1"
PATH: Final = "/chat/completions"
RATE_HZ: Final = 24_000
MAX_REQUEST_BYTES: Final = 20_000_000
"""Largest request body; vendors state about 20 MB."""

ERROR_STATUS: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "invalid_api_key": 401,
    "model_not_found": 404,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
}
"""HTTP status that OpenAI answers with, by error code; 500 for all others."""


def encode(body: Mapping[str, Any]) -> bytes:
    """A body as JSON."""
    return orjson.dumps(body)


def audio_piece(pcm: bytes, rate_hz: int) -> bytes:
    """Caller audio as it stands in a request: a WAV file in base64."""
    return base64.b64encode(wav.encode(pcm, rate_hz))


def audio_of(base64_text: str) -> tuple[bytes, int]:
    """PCM16 mono samples of a base64 WAV file, and their rate in Hz.

    Raises:
        wav.WavError: not base64, or not such a file.
    """
    try:
        data = binascii.a2b_base64(base64_text)
    except ValueError:
        raise wav.WavError("not base64") from None
    return wav.decode(data)


def system_message(instructions: str) -> JsonObject:
    """The instructions."""
    return {"role": "system", "content": instructions}


def user_audio(pieces: Sequence[bytes]) -> JsonObject:
    """A caller turn as audio; `pieces` from `audio_piece`."""
    parts = [{"type": "input_audio", "input_audio": {"data": piece.decode(), "format": "wav"}} for piece in pieces]
    return {"role": "user", "content": parts}


def user_text(text: str) -> JsonObject:
    """A caller turn as words."""
    return {"role": "user", "content": text}


def tool_message(call_id: str, output: str) -> JsonObject:
    """The result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": output}


def tool_list(tools: Sequence[ToolSpec]) -> list[JsonObject]:
    """`tools`, nested under `function`."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in tools
    ]


def error_body(code: str, message: str, param: str | None = None) -> bytes:
    """An error as the vendor words it; its HTTP status is `ERROR_STATUS`."""
    kind = "invalid_request_error" if ERROR_STATUS.get(code, 500) in (400, 401, 404) else code
    return encode({"error": {"message": message, "type": kind, "param": param, "code": code}})


def words_of(content: object) -> str:
    """The words of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(text_of(part, "text") or "" for part in parts if isinstance(part, dict))


def parts_of(message: Mapping[str, Any], kind: str) -> list[JsonObject]:
    """Parts of a message's content that are of type `kind`."""
    return [part for part in list_of(message, "content") if isinstance(part, dict) and part.get("type") == kind]
