"""The wire of OpenAI Realtime (GA shape): JSON codec, client messages, and the profile that look-alikes change.

Facts: OpenAI's Realtime API reference and the types of its Python SDK (`openai.types.realtime`, 3.57). Not here: what
a message means (see `client` and `server`).
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from captures.frames import OutFrame

RATE_HZ: Final = 24_000
"""The only PCM rate of the API, both ways: signed 16-bit little-endian mono."""
PCM_FORMAT: Final[Mapping[str, Any]] = {"type": "audio/pcm", "rate": RATE_HZ}
MIN_COMMIT_S: Final = 0.1
"""A shorter commit is answered with `input_audio_buffer_commit_empty`."""
MAX_APPEND_BYTES: Final = 15 * 1024 * 1024
"""Largest audio of one `input_audio_buffer.append`."""
MAX_TEXT: Final = 1_000
"""Longest foreign explanation that is passed on, characters."""
MAX_DEPTH: Final = 64
"""Deepest nesting of foreign JSON that is passed on as data."""

BETA_EVENT_NAMES: Final[Mapping[str, str]] = {
    "response.audio.delta": "response.output_audio.delta",
    "response.audio.done": "response.output_audio.done",
    "response.audio_transcript.delta": "response.output_audio_transcript.delta",
    "response.audio_transcript.done": "response.output_audio_transcript.done",
    "response.text.delta": "response.output_text.delta",
    "response.text.done": "response.output_text.done",
}
"""Server event names of the older shape, by which some servers still speak, and their names today."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a member of this protocol family changes; client and server halves read it and test no vendor's name."""

    name: str
    url: str
    """Endpoint when the target has no `base_url`; the model goes into the query."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Server event names that stand for another one."""


OPENAI: Final = Profile("openai_realtime", "wss://api.openai.com/v1/realtime", BETA_EVENT_NAMES)

JsonObject = dict[str, Any]


def encode(message: Mapping[str, Any]) -> OutFrame:
    """A message as a text frame."""
    return OutFrame(orjson.dumps(message))


def decode(payload: bytes) -> JsonObject | None:
    """The JSON object in a frame; None when it holds anything else."""
    try:
        value = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def text_of(message: Mapping[str, Any], key: str) -> str | None:
    """The string under `key`, or None."""
    value = message.get(key)
    return value if isinstance(value, str) else None


def int_of(message: Mapping[str, Any], key: str) -> int | None:
    """The whole number under `key`, or None; booleans are no numbers."""
    value = message.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def object_of(message: Mapping[str, Any], key: str) -> JsonObject:
    """The object under `key`, or an empty one."""
    value = message.get(key)
    return value if isinstance(value, dict) else {}


def list_of(message: Mapping[str, Any], key: str) -> list[Any]:
    """The list under `key`, or an empty one."""
    value = message.get(key)
    return value if isinstance(value, list) else []


def depth_of(value: Any, limit: int = MAX_DEPTH) -> int:
    """Nesting of JSON data, counted up to `limit` + 1."""
    depth, layer = 0, [value]
    while depth <= limit:
        layer = [inner for outer in layer for inner in _inside(outer)]
        if not layer:
            break
        depth += 1
    return depth


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def brief(text: str, limit: int = MAX_TEXT) -> str:
    """Foreign text on one line, cut to `limit` characters, control characters escaped."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)


def decode_audio(base64_text: str) -> bytes | None:
    """Bytes of a base64 string; None when it is not base64."""
    try:
        return binascii.a2b_base64(base64_text, strict_mode=True) if base64_text else b""
    except ValueError:
        return None


def append_audio(pcm: bytes) -> OutFrame:
    """`input_audio_buffer.append`: caller audio, PCM16 mono at `RATE_HZ`; the server does not acknowledge it."""
    audio = binascii.b2a_base64(pcm, newline=False)
    return OutFrame(b'{"type":"input_audio_buffer.append","audio":"' + audio + b'"}')


def commit_audio(event_id: str) -> OutFrame:
    """`input_audio_buffer.commit`: ends the caller's turn; alone it asks for no answer."""
    return encode({"type": "input_audio_buffer.commit", "event_id": event_id})


def create_response(event_id: str) -> OutFrame:
    """`response.create`: asks for an answer by the session's settings."""
    return encode({"type": "response.create", "event_id": event_id})


def cancel_response(response_id: str | None) -> OutFrame:
    """`response.cancel`: stops the given answer, else the running one."""
    return encode({"type": "response.cancel"} | ({"response_id": response_id} if response_id else {}))


def create_item(event_id: str, item: Mapping[str, Any]) -> OutFrame:
    """`conversation.item.create`: adds a message or a call's result to the conversation."""
    return encode({"type": "conversation.item.create", "event_id": event_id, "item": item})


def user_text(text: str) -> JsonObject:
    """A conversation item: the caller's words as text."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def call_output(call_id: str, output: str) -> JsonObject:
    """A conversation item: a call's result."""
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def truncate_item(item_id: str, content_index: int, audio_end_ms: int) -> OutFrame:
    """`conversation.item.truncate`: what was heard of an answer, milliseconds from its start."""
    return encode(
        {
            "type": "conversation.item.truncate",
            "item_id": item_id,
            "content_index": content_index,
            "audio_end_ms": audio_end_ms,
        }
    )


def update_session(event_id: str, session: Mapping[str, Any]) -> OutFrame:
    """`session.update`: settings; answered by `session.updated` or `error`."""
    return encode({"type": "session.update", "event_id": event_id, "session": session})
