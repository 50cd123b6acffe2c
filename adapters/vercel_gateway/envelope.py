"""The gateway's envelope: its names for client messages, and the vendor's event inside what it sends."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any, Final

from adapters.foreign_json import JsonObject, decode, text_of
from adapters.openai_family.wire import Messages, encode
from captures.frames import OutFrame

MAX_MESSAGE_BYTES: Final = 256 * 1024
"""Larger messages are refused: about 4 s of audio."""


class GatewayMessages(Messages):
    """What a client sends; the gateway knows no ids of client messages."""

    def append_audio(self, pcm: bytes) -> OutFrame:
        """`input-audio-append`."""
        audio = binascii.b2a_base64(pcm, newline=False)
        return OutFrame(b'{"type":"input-audio-append","audio":"' + audio + b'"}')

    def commit_audio(self, event_id: str) -> OutFrame:
        """`input-audio-commit`."""
        return encode({"type": "input-audio-commit"})

    def create_response(self, event_id: str) -> OutFrame:
        """`response-create`."""
        return encode({"type": "response-create"})

    def cancel_response(self, response_id: str | None) -> OutFrame:
        """`response-cancel`."""
        return encode({"type": "response-cancel"})

    def user_text(self, event_id: str, text: str) -> OutFrame:
        """`conversation-item-create` with a text message."""
        return self.create_item(event_id, {"type": "text-message", "role": "user", "text": text})

    def call_output(self, event_id: str, call_id: str, output: str) -> OutFrame:
        """`conversation-item-create` with a call's result (its shape is UNCERTAIN)."""
        return self.create_item(event_id, {"type": "function-call-output", "callId": call_id, "output": output})

    def create_item(self, event_id: str, item: JsonObject) -> OutFrame:
        """`conversation-item-create`."""
        return encode({"type": "conversation-item-create", "item": item})

    def truncate_item(self, item_id: str, content_index: int, audio_end_ms: int) -> OutFrame:
        """`conversation-item-truncate`."""
        place = {"itemId": item_id, "contentIndex": content_index, "audioEndMs": audio_end_ms}
        return encode({"type": "conversation-item-truncate", **place})

    def update_session(self, event_id: str, session: Mapping[str, Any]) -> OutFrame:
        """`session-update`."""
        return encode({"type": "session-update", "config": session})


def unwrapped(message: JsonObject) -> JsonObject:
    """The vendor's own event; what the gateway says by itself is put in the vendor's shape."""
    raw = message.get("raw")
    inner = decode(raw) if isinstance(raw, str) else raw
    if isinstance(inner, dict):
        return inner
    kind = text_of(message, "type")
    if kind == "error":
        return {"type": "error", "error": {"code": message.get("code"), "message": message.get("message")}}
    if kind == "session-updated":
        return {"type": "session.updated", "session": {}}
    if kind == "session-created":
        return {"type": "session.created", "session": {}}
    return message
