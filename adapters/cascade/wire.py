"""Frames of a cascade: each carries a request or response of one of its stages, under that stage's name.

`{"stage":"transcriber","body":…}`, put together and taken apart as bytes, since a body may hold minutes of audio. The
note that carries measured tags to the text model is made and read here too. Not here: what a body means.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final


class Stage(StrEnum):
    """Who a frame goes to, or comes from."""

    TRANSCRIBER = "transcriber"
    TAGGER = "tagger"
    MODEL = "model"


_OPENING: Final = {stage: f'{{"stage":"{stage}","body":'.encode() for stage in Stage}
_CALL_REFUSED: Final = b'{"stage":"model","unusable_call":'
_NOTE: Final = re.compile(r"\s*\[measured in the audio: ([^\[\]]*)\]\s*\Z")
_BARE_TAG: Final = re.compile(r"[^a-z0-9 _-]+")
MAX_TAGS: Final = 20
_LONGEST_TAG: Final = 60


def addressed(stage: Stage, body: bytes) -> bytes:
    """A frame of `stage` around `body` (JSON)."""
    return _OPENING[stage] + body + b"}"


def unusable_call(body: bytes) -> bytes:
    """A frame for a refusal of the text model's own call, which its vendor could not parse."""
    return _CALL_REFUSED + body + b"}"


def opened(payload: bytes) -> tuple[Stage, bytes] | None:
    """Stage and body of a frame; None for what `addressed` did not make."""
    for stage, opening in _OPENING.items():
        if payload.startswith(opening):
            return stage, payload[len(opening) : -1]
    return None


def refused_call(payload: bytes) -> bytes | None:
    """The body of an `unusable_call` frame, else None."""
    return payload[len(_CALL_REFUSED) : -1] if payload.startswith(_CALL_REFUSED) else None


def with_tags(words: str, tags: Sequence[str]) -> str:
    """The caller turn that a text model is given: words, then what was measured beside them."""
    return f"{words}\n[measured in the audio: {', '.join(tags) if tags else 'nothing unusual'}]"


def tags_in(text: str) -> tuple[str, frozenset[str]]:
    """The words of such a turn, and its tags; a text without the note has none."""
    found = _NOTE.search(text)
    if found is None:
        return text, frozenset()
    listed = (tag.strip() for tag in found[1].split(","))
    return text[: found.start()], frozenset(tag for tag in listed if tag and tag != "nothing unusual")


def clean_tags(stated: Sequence[object]) -> tuple[str, ...]:
    """A tagger's tags, bounded and bare, so that none can open a note or an instruction of its own."""
    bare = (_BARE_TAG.sub(" ", tag.lower()[:_LONGEST_TAG]).strip() for tag in stated if isinstance(tag, str))
    return tuple(dict.fromkeys(tag for tag in bare if tag))[:MAX_TAGS]
