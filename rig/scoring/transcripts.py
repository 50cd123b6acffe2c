"""How far a transcript of the caller is from the item's words: word errors, as jiwer counts them. Pure.

Words are compared after NFKC, without case and punctuation; a number written in digits differs from one in words.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WordErrors:
    """Of one transcript against one reference; their quotient is the word error rate, which may pass 1."""

    errors: int
    """Substitutions, deletions and insertions, as few as will do (Levenshtein distance of words)."""
    words: int
    """Of the reference."""

    @property
    def rate(self) -> float | None:
        """None where the reference has no words."""
        return self.errors / self.words if self.words else None


def word_errors(reference: str, heard: str) -> WordErrors:
    """`heard` against `reference`."""
    wanted, given = spoken_words(reference), spoken_words(heard)
    row = list(range(len(given) + 1))
    for place, word in enumerate(wanted, start=1):
        before, row[0] = row[0], place
        for column, other in enumerate(given, start=1):
            best = min(before + (word != other), row[column] + 1, row[column - 1] + 1)
            before, row[column] = row[column], best
    return WordErrors(row[-1], len(wanted))


def spoken_words(text: str) -> list[str]:
    """The words of a text as they are compared."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    # An apostrophe belongs to its word; any other punctuation parts words.
    kept = ("" if c in "'’" else " " if unicodedata.category(c)[0] == "P" else c for c in folded)
    return "".join(kept).split()
