"""The family's client messages and audio encoding. Not here: what a message means (see `client` and `server`).

Facts: OpenAI's Realtime API reference and the types of its Python SDK (`openai.types.realtime`, 3.57).
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any, Final

import orjson

from adapters.foreign_json import JsonObject
from captures.frames import OutFrame

MAX_APPEND_BYTES: Final = 15 * 1024 * 1024
"""Largest audio of one `input_audio_buffer.append`."""


def encode(message: Mapping[str, Any]) -> OutFrame:
    """A message as a text frame."""
    return OutFrame(orjson.dumps(message))


def decode_audio(base64_text: str) -> bytes | None:
    """Bytes of a base64 string; None when it is not base64."""
    try:
        return binascii.a2b_base64(base64_text, strict_mode=True) if base64_text else b""
    except ValueError:
        return None


class Messages:
    """What a client sends. A route that wraps the protocol overrides the whole set."""

    def append_audio(self, pcm: bytes) -> OutFrame:
        """`input_audio_buffer.append`: caller audio, PCM16 mono; the server does not acknowledge it."""
        audio = binascii.b2a_base64(pcm, newline=False)
        return OutFrame(b'{"type":"input_audio_buffer.append","audio":"' + audio + b'"}')

    def commit_audio(self, event_id: str) -> OutFrame:
        """`input_audio_buffer.commit`: ends the caller's turn; alone it asks for no answer."""
        return encode({"type": "input_audio_buffer.commit", "event_id": event_id})

    def create_response(self, event_id: str) -> OutFrame:
        """`response.create`: asks for an answer by the session's settings."""
        return encode({"type": "response.create", "event_id": event_id})

    def cancel_response(self, response_id: str | None) -> OutFrame:
        """`response.cancel`: stops the given answer, else the running one."""
        return encode({"type": "response.cancel"} | ({"response_id": response_id} if response_id else {}))

    def user_text(self, event_id: str, text: str) -> OutFrame:
        """`conversation.item.create`: the caller's words as text."""
        return self.create_item(
            event_id, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        )

    def call_output(self, event_id: str, call_id: str, output: str) -> OutFrame:
        """`conversation.item.create`: a call's result."""
        return self.create_item(event_id, {"type": "function_call_output", "call_id": call_id, "output": output})

    def create_item(self, event_id: str, item: JsonObject) -> OutFrame:
        """`conversation.item.create`: adds an item to the conversation."""
        return encode({"type": "conversation.item.create", "event_id": event_id, "item": item})

    def truncate_item(self, item_id: str, content_index: int, audio_end_ms: int) -> OutFrame:
        """`conversation.item.truncate`: what was heard of an answer, milliseconds from its start."""
        return encode(
            {
                "type": "conversation.item.truncate",
                "item_id": item_id,
                "content_index": content_index,
                "audio_end_ms": audio_end_ms,
            }
        )

    def update_session(self, event_id: str, session: Mapping[str, Any]) -> OutFrame:
        """`session.update`: settings; answered by `session.updated` or `error`."""
        return encode({"type": "session.update", "event_id": event_id, "session": session})
