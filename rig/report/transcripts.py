"""What targets heard of the caller's words: the word error rate of their transcripts, per target and per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from captures.capture import Capture, Condition
from rig.bank.models import Bank
from rig.scoring.transcripts import WordErrors, word_errors
from rig.stats.bootstrap import Estimate
from rig.stats.joint import Joint, Row


@dataclass(frozen=True, slots=True)
class TranscriptRow:
    """One clip as it was heard once."""

    item_id: str
    variant_id: str
    condition: Condition
    repeat: int
    found: WordErrors
    tags: tuple[str, ...] | None
    """What a tagger measured beside the words; None where there is none."""


@dataclass(frozen=True, slots=True)
class Transcripts:
    """All transcripts of one target."""

    rate: Estimate
    """Errors over words of all rows together, with an item-clustered interval; `n` counts rows."""
    empty: int
    """Rows in which nothing was heard; they are counted in `rate`."""
    rows: tuple[TranscriptRow, ...]


def transcripts(captures: Sequence[Capture], bank: Bank) -> Transcripts | None:
    """Of scored clips that left a transcript; None where there is none."""
    rows = [
        TranscriptRow(
            one.item_id,
            one.variant_id,
            one.condition,
            one.repeat,
            word_errors(bank.item(one.item_id).transcript, one.input_transcript),
            one.input_tags,
        )
        for one in captures
        if one.ending.scored and one.variant_id is not None and one.input_transcript is not None
    ]
    counted = [
        Row(row.item_id, row.repeat, {"errors": row.found.errors, "words": row.found.words, "rows": 1.0})
        for row in rows
        if row.found.words
    ]
    rate = Joint(counted).estimate(lambda sums: sums.mean("errors", "words"), "rows")
    if rate is None:
        return None
    empty = sum(one.input_transcript == "" and one.variant_id is not None and one.ending.scored for one in captures)
    return Transcripts(rate, empty, tuple(rows))
