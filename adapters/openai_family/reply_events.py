"""The server events of one answer, in OpenAI's order and GA shape.

Ids and the session's state are the caller's (`server`).
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

import orjson

from adapters.foreign_json import JsonObject
from adapters.openai_family.rules import SessionView
from adapters.server import Reply, ReplyCall

PIECES_PER_S: Final = 10
"""Audio of one delta: 100 ms."""
Stamp = Callable[[str, JsonObject], JsonObject]
"""Makes an event of its type and fields: adds the event id."""
NewId = Callable[[str], str]


@dataclass(slots=True)
class Answer:
    """An answer of the server: its id, the items finished so far, and the settings it was made under."""

    id: str
    conversation_id: str | None
    view: SessionView
    fields: JsonObject
    """The settings that the response object repeats."""
    metadata: JsonObject | None = None
    heard_ms: int = 0
    """The caller's audio that it answers."""
    words_in: int = 0
    """The caller's words of text that it answers."""
    output: list[JsonObject] = field(default_factory=list)
    last_item_id: str | None = None
    """Id of the conversation's item before the next one."""
    spoken_ms: dict[str, int] = field(default_factory=dict)
    """Milliseconds of audio in each spoken item."""

    def as_object(self, status: str, details: JsonObject | None = None, usage: JsonObject | None = None) -> JsonObject:
        """The response object of `response.created` and `response.done`."""
        return {
            "object": "realtime.response",
            "id": self.id,
            "status": status,
            "status_details": details,
            "output": list(self.output),
            "conversation_id": self.conversation_id,
            **self.fields,
            "usage": usage,
            "metadata": self.metadata,
        }


def output_events(answer: Answer, reply: Reply, new_id: NewId, stamp: Stamp) -> Iterator[JsonObject]:
    """Events of all output items: what is said first, then the calls."""
    if reply.text or reply.pcm:
        yield from _message_events(answer, reply, new_id("item"), stamp)
    for call in reply.calls:
        yield from _call_events(answer, call, new_id("item"), new_id("call"), stamp)


def _item_events(answer: Answer, begun: JsonObject, stamp: Stamp) -> Iterator[JsonObject]:
    index, before = len(answer.output), answer.last_item_id
    yield stamp("response.output_item.added", {"response_id": answer.id, "output_index": index, "item": begun})
    yield stamp("conversation.item.added", {"previous_item_id": before, "item": begun})


def _item_end_events(answer: Answer, item: JsonObject, stamp: Stamp) -> Iterator[JsonObject]:
    index, before = len(answer.output), answer.last_item_id
    answer.output.append(item)
    answer.last_item_id = item["id"]
    yield stamp("response.output_item.done", {"response_id": answer.id, "output_index": index, "item": item})
    yield stamp("conversation.item.done", {"previous_item_id": before, "item": item})


def _message_events(answer: Answer, reply: Reply, item_id: str, stamp: Stamp) -> Iterator[JsonObject]:
    spoken, rate_hz = answer.view.speaks, answer.view.output_rate_hz
    item: JsonObject = {"id": item_id, "object": "realtime.item", "type": "message", "role": "assistant"}
    place = {
        "response_id": answer.id,
        "item_id": item_id,
        "output_index": len(answer.output),
        "content_index": 0,
    }
    yield from _item_events(answer, item | {"status": "in_progress", "content": []}, stamp)
    part: JsonObject = {"type": "audio", "transcript": ""} if spoken else {"type": "text", "text": ""}
    yield stamp("response.content_part.added", place | {"part": part})
    words = re.findall(r"\S+\s*|\s+", reply.text)
    if spoken:
        answer.spoken_ms[item_id] = len(reply.pcm) * 500 // rate_hz
        size = 2 * (rate_hz // PIECES_PER_S)
        pieces = [reply.pcm[at : at + size] for at in range(0, len(reply.pcm), size)]
        for word, piece in zip_longest(words, pieces):
            if word is not None:
                yield stamp("response.output_audio_transcript.delta", place | {"delta": word})
            if piece is not None:
                audio = binascii.b2a_base64(piece, newline=False).decode()
                yield stamp("response.output_audio.delta", place | {"delta": audio})
        yield stamp("response.output_audio.done", dict(place))
        yield stamp("response.output_audio_transcript.done", place | {"transcript": reply.text})
        part, content = part | {"transcript": reply.text}, {"type": "output_audio", "transcript": reply.text}
    else:
        for word in words:
            yield stamp("response.output_text.delta", place | {"delta": word})
        yield stamp("response.output_text.done", place | {"text": reply.text})
        part, content = part | {"text": reply.text}, {"type": "output_text", "text": reply.text}
    yield stamp("response.content_part.done", place | {"part": part})
    yield from _item_end_events(answer, item | {"status": "completed", "content": [content]}, stamp)


def _call_events(answer: Answer, call: ReplyCall, item_id: str, call_id: str, stamp: Stamp) -> Iterator[JsonObject]:
    arguments = orjson.dumps(dict(call.arguments)).decode()
    item: JsonObject = {
        "id": item_id,
        "object": "realtime.item",
        "type": "function_call",
        "name": call.name,
        "call_id": call_id,
    }
    place = {"response_id": answer.id, "item_id": item_id, "output_index": len(answer.output), "call_id": call_id}
    yield from _item_events(answer, item | {"status": "in_progress", "arguments": ""}, stamp)
    for at in range(0, len(arguments), 16):
        yield stamp("response.function_call_arguments.delta", place | {"delta": arguments[at : at + 16]})
    yield stamp("response.function_call_arguments.done", place | {"name": call.name, "arguments": arguments})
    yield from _item_end_events(answer, item | {"status": "completed", "arguments": arguments}, stamp)


def estimated_usage(answer: Answer, reply: Reply) -> JsonObject:
    """Token counts as an emulator can tell them: 10 a second of caller audio, 20 of speech, one per word of text.

    The rates for audio are the vendor's published ones; a word for a token is a rough stand-in.
    """
    audio_in, audio_out = answer.heard_ms // 100, len(reply.pcm) * 10 // reply.rate_hz
    text_out = len(reply.text.split()) + sum(1 + len(call.arguments) for call in reply.calls)
    total_in, total_out = audio_in + answer.words_in, audio_out + text_out
    return {
        "total_tokens": total_in + total_out,
        "input_tokens": total_in,
        "output_tokens": total_out,
        "input_token_details": {
            "text_tokens": answer.words_in,
            "audio_tokens": audio_in,
            "image_tokens": 0,
            "cached_tokens": 0,
            "cached_tokens_details": {"text_tokens": 0, "audio_tokens": 0, "image_tokens": 0},
        },
        "output_token_details": {"text_tokens": text_out, "audio_tokens": audio_out},
    }
