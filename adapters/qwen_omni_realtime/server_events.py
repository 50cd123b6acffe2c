"""The core's events as DashScope sends them: beta names, its own error texts, and calls that are named at their end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import orjson

from adapters.foreign_json import JsonObject
from adapters.openai_family.beta_rules import beta_events
from adapters.server import Denied, Handshake

_ERRORS: Final[Mapping[str, tuple[str, str]]] = {
    "conversation_already_has_active_response": ("invalid_value", "Conversation already has an active response"),
    "response_cancel_not_active": ("invalid_value", "Conversation has none active response"),
    "input_audio_buffer_commit_empty": ("invalid_value", "Error committing input audio buffer, buffer is empty."),
    "duplicate_call_output": ("invalid_value", "Duplicate function call output"),
}
"""The core's codes in the vendor's words."""


def dashscope_events(event: JsonObject) -> Iterable[JsonObject]:
    """An event of the GA shape as the vendor sends it; errors do not name the client's message."""
    kind = event["type"]
    if kind == "rate_limits.updated":
        return
    if kind == "error":
        error = {name: value for name, value in event["error"].items() if name != "event_id"}
        code, message = _ERRORS.get(error["code"], (error["code"], error["message"]))
        yield event | {"error": error | {"code": code, "message": message}}
        return
    for older in beta_events(event):
        yield older | {"name": event["name"]} if kind == "response.function_call_arguments.done" else older


def no_model(handshake: Handshake) -> Denied | None:
    """A handshake without a model; the body is of the shape of the vendor's HTTP errors."""
    if handshake.query.get("model"):
        return None
    message = 'Required parameter "model" missing from request.'
    return Denied(400, orjson.dumps({"code": "BadRequest.EmptyModel", "message": message}))
