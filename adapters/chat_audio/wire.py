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
from adapters.foreign_json import JsonObject, list_of, object_of, text_of
from captures.frames import OutFrame

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


EVENT_OPENING: Final = b"data: "
"""How an event of a streamed answer begins."""
LAST_EVENT: Final = OutFrame(b"data: [DONE]\n\n")


def event(body: Mapping[str, Any]) -> OutFrame:
    """A body as one event of a streamed answer, with its framing."""
    return OutFrame(EVENT_OPENING + encode(body) + b"\n\n")


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


class BadPartError(ValueError):
    """An audio part that a vendor refuses; one line that says why, with the field below the part."""

    def __init__(self, message: str, field: str = "input_audio") -> None:
        super().__init__(message)
        self.field = field


def openai_audio(data: str) -> JsonObject:
    """An audio part from base64 of a WAV file, as OpenAI has it: bare base64 beside its format."""
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def data_uri_audio(data: str) -> JsonObject:
    """An audio part whose base64 stands in a data URI without a type, as DashScope asks for it."""
    return {"type": "input_audio", "input_audio": {"data": f"data:;base64,{data}", "format": "wav"}}


def openai_audio_data(part: Mapping[str, Any]) -> tuple[str, str]:
    """Format and base64 of such a part; OpenAI's own takes no data URI. Raises BadPartError."""
    audio = object_of(part, "input_audio")
    data = text_of(audio, "data") or ""
    if data.startswith(("data:", "http")):
        raise BadPartError("input_audio.data must be base64, no address and no data URI", "input_audio.data")
    return text_of(audio, "format") or "", data


def data_uri_audio_data(part: Mapping[str, Any]) -> tuple[str, str]:
    """Format and base64 of a part whose data is a data URI. Raises BadPartError."""
    audio = object_of(part, "input_audio")
    head, found, data = (text_of(audio, "data") or "").partition(";base64,")
    if not found or not head.startswith("data:"):
        raise BadPartError("input_audio.data must be a data URI or an address", "input_audio.data")
    return text_of(audio, "format") or "", data


def user_audio(parts: Sequence[JsonObject]) -> JsonObject:
    """A caller turn as audio parts."""
    return {"role": "user", "content": list(parts)}


def user_text(text: str) -> JsonObject:
    """A caller turn as words."""
    return {"role": "user", "content": text}


def tool_message(call_id: str, name: str, output: str) -> JsonObject:
    """The result of a call; OpenAI wants no name beside it."""
    return {"role": "tool", "tool_call_id": call_id, "content": output}


def named_tool_message(call_id: str, name: str, output: str) -> JsonObject:
    """The result of a call with its tool's name."""
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": output}


def nested_tool(tool: ToolSpec) -> JsonObject:
    """A tool, nested under `function`."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


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
