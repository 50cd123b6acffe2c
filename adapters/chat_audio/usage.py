"""Usage as vendors count it, for server halves: made up but for the audio, which is counted by its length. Pure."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final

from adapters.foreign_json import JsonObject

_TEXT_TOKENS: Final = 200
_ANSWER_TOKENS: Final = 20


def with_audio_tokens(tokens_per_s: float) -> Callable[[float], JsonObject]:
    """Usage for so many seconds of caller audio, with the audio's share of the prompt."""

    def usage(audio_s: float) -> JsonObject:
        audio = ceil(tokens_per_s * audio_s)
        return _totals(audio) | {"prompt_tokens_details": {"audio_tokens": audio, "text_tokens": _TEXT_TOKENS}}

    return usage


def without_split(audio_s: float) -> JsonObject:
    """Usage that does not tell how much of the prompt was audio."""
    return _totals(ceil(25 * audio_s))


def with_audio_seconds(audio_s: float) -> JsonObject:
    """Mistral's: the audio in seconds."""
    return _totals(ceil(12.5 * audio_s)) | {"prompt_audio_seconds": ceil(audio_s)}


def _totals(audio_tokens: int) -> JsonObject:
    prompt = _TEXT_TOKENS + audio_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": _ANSWER_TOKENS,
        "total_tokens": prompt + _ANSWER_TOKENS,
    }
