"""The vendor's transcript of the caller, from pieces, cumulative states and endings that may come again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from adapters.foreign_json import JsonObject, brief, object_of, text_of
from captures.events import Event, InputTranscript, Unrecognised, Warned

_KEPT: Final = 64
"""Items whose transcript so far is remembered."""
_PREFIX: Final = "conversation.item.input_audio_transcription."


class InputTranscripts:
    """State of one session; `handlers` maps the server's event names to what reads them."""

    def __init__(self) -> None:
        self._partial: OrderedDict[str, str] = OrderedDict()
        """Text so far by item, from cumulative states."""
        self._final: OrderedDict[str, str] = OrderedDict()
        self.handlers: Mapping[str, Callable[[JsonObject], list[Event]]] = {
            f"{_PREFIX}delta": self._on_delta,
            f"{_PREFIX}updated": self._on_updated,
            f"{_PREFIX}completed": self._on_completed,
            f"{_PREFIX}failed": self._on_failed,
        }

    def _on_delta(self, event: JsonObject) -> list[Event]:
        delta = text_of(event, "delta")
        return [InputTranscript(delta, final=False)] if delta else []

    def _on_updated(self, event: JsonObject) -> list[Event]:
        """The whole text so far: only what it adds is new. A state that takes words back adds nothing."""
        transcript = text_of(event, "transcript")
        if transcript is None:
            return [Unrecognised("input transcript without text")]
        added = _added(self._partial, text_of(event, "item_id") or "", transcript)
        return [InputTranscript(added, final=False)] if added else []

    def _on_completed(self, event: JsonObject) -> list[Event]:
        """Some servers say it early (`status` in_progress) or again: a text counts once."""
        transcript = text_of(event, "transcript")
        if transcript is None:
            return [Unrecognised("input transcript without text")]
        if text_of(event, "status") == "in_progress":
            return self._on_updated(event)
        item_id = text_of(event, "item_id")
        if item_id is None:
            return [InputTranscript(transcript)]
        known = item_id in self._final
        added = _added(self._final, item_id, transcript)
        return [] if known and not added else [InputTranscript(added.strip() if known else transcript)]

    def _on_failed(self, event: JsonObject) -> list[Event]:
        error = object_of(event, "error")
        code = brief(text_of(error, "code") or "error", 100)
        return [Warned(f"input_transcription:{code}", brief(text_of(error, "message") or ""))]


def _added(texts: OrderedDict[str, str], item_id: str, text: str) -> str:
    """What `text` adds to the item's text so far; nothing when it does not go on from it."""
    before = texts.pop(item_id, "")
    goes_on = text.startswith(before)
    texts[item_id] = text if goes_on else before
    if len(texts) > _KEPT:
        texts.popitem(last=False)
    return text[len(before) :] if goes_on else ""
