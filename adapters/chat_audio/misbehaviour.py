"""Answers of chat.completions put on the wire wrongly, whole or streamed (`adapters.misbehaviour`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from adapters.chat_audio import wire
from adapters.foreign_json import JsonObject, decode, list_of, object_of
from adapters.misbehaviour import without_end
from captures.frames import OutFrame


def cut_arguments(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """The arguments of every call stop half-way: never a JSON object."""
    return _changed(frames, _cut)


def deaf(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """The answer of a provider that dropped the caller's audio: its usage counts none."""
    return _changed(frames, _uncounted)


def error_in_body(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """A failed upstream, told with status 200."""
    for _ in frames:
        continue
    error = {"message": "Provider returned error", "code": 502, "metadata": {"provider_name": "rig"}}
    yield OutFrame(wire.encode({"error": error}))


def _changed(frames: Iterable[OutFrame], change: Callable[[JsonObject], None]) -> Iterator[OutFrame]:
    for frame in frames:
        body = decode(frame.payload.removeprefix(wire.EVENT_OPENING))
        if body is None:
            yield frame
            continue
        change(body)
        yield wire.event(body) if frame.payload.startswith(wire.EVENT_OPENING) else OutFrame(wire.encode(body))


def _cut(body: JsonObject) -> None:
    for choice in list_of(body, "choices"):
        for call in list_of(object_of(choice, "message"), "tool_calls"):
            written = call["function"]["arguments"]
            # An object cannot be cut: text that is none takes its place.
            call["function"]["arguments"] = without_end(written) if isinstance(written, str) else '{"cut'
        for call in list_of(object_of(choice, "delta"), "tool_calls"):
            call["function"]["arguments"] = call["function"]["arguments"].replace("}", "")


def _uncounted(body: JsonObject) -> None:
    usage = object_of(body, "usage")
    if "prompt_audio_seconds" in usage:
        usage["prompt_audio_seconds"] = 0
    details = object_of(usage, "prompt_tokens_details")
    if "audio_tokens" in details:
        details["audio_tokens"] = 0
