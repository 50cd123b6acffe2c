"""A transcript with times, where there is one: fillers, and the first word of a reply that is none."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from rig.audio.reader import InputError
from rig.audio.voice import Stretch
from rig.timing.turns import Reply

MAX_BYTES = 32 << 20
_FILLERS = "ah eh er erm hm hmm huh mhm mm oh uh uhm um well so okay ok right yeah alright sure"
FILLERS = frozenset(_FILLERS.split())
"""Said without saying anything; a reply that begins with one has not begun to answer."""
_AGREE = 0.5


class Word(BaseModel):
    """One word of a transcript."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    side: Literal["caller", "agent"]
    word: str = Field(max_length=200)
    start_s: float = Field(ge=0)
    end_s: float = Field(ge=0)

    @property
    def filler(self) -> bool:
        """Case and punctuation folded."""
        kept = "".join(c for c in self.word.lower() if unicodedata.category(c)[0] != "P")
        return kept.strip() in FILLERS


def read_words(path: Path) -> list[Word]:
    """A JSON list of `{"side": "caller" | "agent", "word", "start_s", "end_s"}`, in order of time.

    Raises InputError.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError(f"transcript is larger than {MAX_BYTES >> 20} MiB", path, "give one call's")
        words = TypeAdapter(list[Word]).validate_python(orjson.loads(data))
    except OSError as error:
        raise InputError(f"transcript cannot be read ({error.strerror or error})", path, "check the path") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise InputError(f"transcript: {place}: {first['msg']}", path, "see rig timing --help") from None
    except orjson.JSONDecodeError as error:
        raise InputError(f"transcript is not JSON ({error})", path, "see rig timing --help") from None
    return sorted(words, key=lambda word: word.start_s)


def first_word_s(reply: Reply, words: Sequence[Word]) -> float | None:
    """From the end of the caller's utterance to the start of the reply's first word that is no filler."""
    inside = (
        word
        for word in words
        if word.side == "agent" and word.end_s > reply.agent.start_s and word.start_s < reply.agent.end_s
    )
    return next((word.start_s - reply.caller.end_s for word in inside if not word.filler), None)


def looks_swapped(words: Sequence[Word], caller: Sequence[Stretch], agent: Sequence[Stretch]) -> bool:
    """True when most words of each side sound on the other side's channel."""

    def sounding(side: str, stretches: Sequence[Stretch]) -> float:
        own = [word for word in words if word.side == side]
        middles = [(word.start_s + word.end_s) / 2 for word in own]
        inside = sum(any(one.start_s <= at <= one.end_s for one in stretches) for at in middles)
        return inside / len(own) if own else 0.0

    straight = min(sounding("caller", caller), sounding("agent", agent))
    crossed = min(sounding("caller", agent), sounding("agent", caller))
    return crossed > _AGREE > straight
