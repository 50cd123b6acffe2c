"""Whether a model was given the caller's audio at all: some providers drop it without a word and answer the text.

Such an answer says nothing about the model, so its row is void. Told by the usage where that counts audio, else by a
reply that says so. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from adapters.foreign_json import brief, list_of, object_of
from captures.events import Failed, FailureKind

CODE: Final = "audio_not_heard"
_AUDIO: Final = r"(?:audio|recordings?|sound (?:file|clip)|voice (?:message|recording)|clip)"
_SAYS_SO: Final = re.compile(
    rf"\bno {_AUDIO}(?: \w+)? (?:was|is|has been|were) (?:provided|attached|included|received|uploaded)"
    rf"|\b(?:can ?not|can't|could not|couldn't|unable to|not able to|do not|don't|did not|didn't)"
    rf" (?:hear|listen to|access|process|receive|play|see)(?: any| the| your| an| to)*"
    rf" {_AUDIO}(?! (?:clearly|well|properly|completely|very))"
    rf"|\bdon't (?:actually )?have the ability to (?:hear|listen)"
    rf"|\b(?:text-based|text-only|language) (?:ai|model|assistant)\b[^.]*\b(?:hear|listen|audio)",
    re.IGNORECASE,
)


def unheard(usage: Mapping[str, Any], said: str, called: bool, usage_tells: bool = True) -> Failed | None:
    """What voids an answer to spoken audio; None where nothing shows that the audio was ignored."""
    counted = audio_units(usage) if usage_tells else None
    if counted is not None:
        return _not_heard("the usage counts no audio") if counted == 0 else None
    found = None if called else _SAYS_SO.search(said.replace("’", "'"))
    return _not_heard(f"the reply says {brief(said, 200)!r}") if found else None


def audio_units(usage: Mapping[str, Any]) -> float | None:
    """Tokens or seconds of caller audio that a usage counts; None where it does not tell."""
    for key in ("prompt_tokens_details", "input_tokens_details", "input_token_details"):
        if (counted := _number(object_of(usage, key).get("audio_tokens"))) is not None:
            return counted
    if (seconds := _number(usage.get("prompt_audio_seconds"))) is not None:
        return seconds
    by_kind = [entry for entry in list_of(usage, "promptTokensDetails") if isinstance(entry, dict)]
    if by_kind:
        return sum(_number(entry.get("tokenCount")) or 0.0 for entry in by_kind if entry.get("modality") == "AUDIO")
    return None


def _not_heard(why: str) -> Failed:
    return Failed(FailureKind.AUDIO_NOT_HEARD, CODE, f"audio not heard: {why}")


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
