"""How a forced-choice answer is read: strictly or leniently. What an answer that names no option counts as is a second
axis, and every table names both. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from rig.scoring.match import fold

Reading = Literal["strict", "lenient"]
NoOption = Literal["wrong", "missing"]
"""What an answer that names no option counts as."""
Source = Literal["reply_text", "reply_transcript", "silence"]

_END = ".!?,;:… \t\r\n"


@dataclass(frozen=True, slots=True)
class ProbeReading:
    """One probe answer, read both ways."""

    gold: str
    strict: str | None
    """The option that the whole answer is; None where it is none."""
    lenient: str | None
    """The only option that occurs as a whole phrase; None where none or several do."""
    source: Source
    """Where the answer stood; `silence` when the agent gave none within the turn limit."""

    def value(self, reading: Reading, no_option: NoOption) -> float | None:
        """1 right, 0 wrong; None where the answer names no option and such answers are missing."""
        option = self.strict if reading == "strict" else self.lenient
        if option is None:
            return 0.0 if no_option == "wrong" else None
        return 1.0 if option == self.gold else 0.0


def read_probe(reply_text: str, reply_transcript: str, options: Sequence[str], gold: str) -> ProbeReading | None:
    """The answer as text, else as the vendor's transcript of the spoken answer; None (not applicable) with neither."""
    source: Source
    if reply_text.strip():
        answer, source = reply_text, "reply_text"
    elif reply_transcript.strip():
        answer, source = reply_transcript, "reply_transcript"
    else:
        return None
    return ProbeReading(gold, strict_option(answer, options), lenient_option(answer, options), source)


def strict_option(answer: str, options: Sequence[str]) -> str | None:
    """The option that `answer` is as a whole: case, outer space and end punctuation folded on both sides."""
    target = _trimmed(answer)
    return next((option for option in options if _trimmed(option) == target), None)


def lenient_option(answer: str, options: Sequence[str]) -> str | None:
    """The only option that occurs in `answer` as a whole phrase, words folded.

    An option inside another one's phrase ("nothing" in "nothing else") counts only where it stands by itself.
    """
    left = f" {fold(answer)} "
    found = []
    for option in sorted(options, key=lambda option: len(_folded(option)), reverse=True):
        phrase = _folded(option)
        if not phrase:
            continue
        # Consecutive phrases share one space, so it is looked at, not consumed.
        rest = re.sub(rf"(?<= ){re.escape(phrase)}(?= )", "\N{REPLACEMENT CHARACTER}", left)
        if rest != left:
            found.append(option)
            left = rest
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=4096)
def _folded(option: str) -> str:
    """Options come from the bank and return in every answer; answers are not kept."""
    return fold(option)


def _trimmed(text: str) -> str:
    return text.strip().rstrip(_END).casefold()
