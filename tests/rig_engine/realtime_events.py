"""Server events of OpenAI Realtime (GA), written by hand from the vendor's reference; nothing of ours is imported."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

READY = [("expect", "session.update"), ("confirm",)]
"""A server that confirms the settings."""
COMMITTED = [*READY, ("expect", "input_audio_buffer.commit"), ("expect", "response.create")]
"""And waits for the end of the caller's turn."""

RESPONSE = "resp_1"


def created() -> dict[str, Any]:
    return {"type": "response.created", "response": {"id": RESPONSE, "status": "in_progress", "output": []}}


def done(status: str = "completed", output: Any = (), details: dict[str, Any] | None = None) -> dict[str, Any]:
    output = list(output) if isinstance(output, tuple) else output
    response = {"id": RESPONSE, "status": status, "status_details": details, "output": output}
    return {"type": "response.done", "response": response}


def call_item(name: str, arguments: str, call_id: str = "c1", item_id: str = "it1") -> dict[str, Any]:
    return {
        "id": item_id,
        "type": "function_call",
        "status": "completed",
        "name": name,
        "call_id": call_id,
        "arguments": arguments,
    }


def call_events(name: str, arguments: str, call_id: str = "c1", item_id: str = "it1") -> list[dict[str, Any]]:
    """A call told in argument events: added, two deltas, arguments done, item done."""
    half = len(arguments) // 2
    place = {"response_id": RESPONSE, "item_id": item_id, "output_index": 0, "call_id": call_id}
    added = call_item(name, "", call_id, item_id) | {"status": "in_progress"}
    return [
        {"type": "response.output_item.added", "response_id": RESPONSE, "output_index": 0, "item": added},
        {"type": "response.function_call_arguments.delta", **place, "delta": arguments[:half]},
        {"type": "response.function_call_arguments.delta", **place, "delta": arguments[half:]},
        {"type": "response.function_call_arguments.done", **place, "arguments": arguments},
        {
            "type": "response.output_item.done",
            "response_id": RESPONSE,
            "output_index": 0,
            "item": call_item(name, arguments, call_id, item_id),
        },
    ]


def called(name: str = "book_table", arguments: Any = None) -> list[tuple[str, Any]]:
    """Steps of a whole answer that is one call."""
    text = json.dumps({"party": 4, "time": "19:30"} if arguments is None else arguments)
    return sends([created(), *call_events(name, text), done(output=(call_item(name, text),))])


def audio(pcm: bytes) -> dict[str, Any]:
    return {
        "type": "response.output_audio.delta",
        "response_id": RESPONSE,
        "item_id": "it1",
        "output_index": 0,
        "content_index": 0,
        "delta": base64.b64encode(pcm).decode(),
    }


def spoken(pieces: Sequence[bytes], words: str = "Certainly.") -> list[tuple[str, Any]]:
    """Steps of a whole answer that is speech."""
    place = {"response_id": RESPONSE, "item_id": "it1", "output_index": 0}
    message = {
        "id": "it1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_audio", "transcript": words}],
    }
    return sends(
        [
            created(),
            {
                "type": "response.output_item.added",
                "response_id": RESPONSE,
                "output_index": 0,
                "item": message | {"status": "in_progress", "content": []},
            },
            *(audio(piece) for piece in pieces),
            {
                "type": "response.output_audio_transcript.done",
                **place,
                "content_index": 0,
                "transcript": words,
            },
            {"type": "response.output_item.done", "response_id": RESPONSE, "output_index": 0, "item": message},
            done(output=(message,)),
        ]
    )


def sends(events: Sequence[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [("send", event) for event in events]
