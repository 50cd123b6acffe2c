"""The core's events as Qwen-Audio sends them: DashScope's, with the answer's transcript in one piece."""

from __future__ import annotations

from collections.abc import Iterable

from adapters.foreign_json import JsonObject
from adapters.qwen_omni_realtime.server_events import dashscope_events


def qwen_audio_events(event: JsonObject) -> Iterable[JsonObject]:
    """An event of the GA shape as the vendor sends it."""
    if event["type"] == "response.output_audio_transcript.delta":
        return
    if event["type"] == "error" and event["error"]["code"] == "conversation_already_has_active_response":
        message = "Cannot create response while another response is in progress."
        event = event | {
            "error": event["error"] | {"code": "invalid_value", "message": message, "param": "response.create"}
        }
    yield from dashscope_events(event)
