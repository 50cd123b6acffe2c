"""The core's events as StepFun sends them: beta names, `response.cancelled`, errors of one code."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from adapters.foreign_json import JsonObject, list_of, object_of, text_of
from adapters.openai_family.beta_rules import beta_events
from adapters.server import Denied, Handshake


def stepfun_events(event: JsonObject) -> Iterable[JsonObject]:
    """An event of the GA shape as the vendor sends it."""
    kind = event["type"]
    if kind == "rate_limits.updated":
        return
    if kind == "error":
        error = {name: value for name, value in event["error"].items() if name != "param"}
        yield event | {"error": error | {"code": "invalid_param"}}
        return
    for older in beta_events(event):
        if kind == "response.done" and _client_cancelled(older):
            yield older | {"type": "response.cancelled"}
        elif kind == "conversation.item.added":
            yield older | {"item": _as_transcript(object_of(older, "item"))}
        else:
            yield older


def _client_cancelled(event: JsonObject) -> bool:
    details = object_of(object_of(event, "response"), "status_details")
    return text_of(details, "reason") == "client_cancelled"


def _as_transcript(item: JsonObject) -> JsonObject:
    """A text item as the vendor shows it: its words under `transcript` (reference page)."""
    content = [
        {"type": part["type"], "transcript": part["text"]} if isinstance(part, dict) and "text" in part else part
        for part in list_of(item, "content")
    ]
    return item | {"content": content} if content else item


def no_model(handshake: Handshake) -> Denied | None:
    """A handshake without a model is refused."""
    if handshake.query.get("model"):
        return None
    error = {"type": "invalid_request_error", "code": "invalid_param", "message": "model is required"}
    return Denied(400, orjson.dumps({"error": error}))
