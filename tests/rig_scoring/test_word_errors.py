"""Word errors against jiwer's, and what is taken for the same word."""

from __future__ import annotations

import jiwer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.scoring.transcripts import spoken_words, word_errors

WORDS = st.lists(st.sampled_from(["the", "door", "is", "open", "now", "please"]), max_size=9)


@given(WORDS.filter(bool), WORDS)
@settings(max_examples=60, deadline=None)
def test_errors_are_those_of_jiwer(wanted: list[str], given_words: list[str]) -> None:
    found = word_errors(" ".join(wanted), " ".join(given_words))
    counted = jiwer.process_words(" ".join(wanted), " ".join(given_words))
    assert found.errors == counted.substitutions + counted.deletions + counted.insertions
    assert found.rate == pytest.approx(counted.wer)


@pytest.mark.parametrize(
    ("reference", "heard", "errors"),
    [
        ("It's half past six.", "its HALF-PAST six", 0),
        ("Cancel the order, please.", "cancel order please now", 2),
        ("thirty", "30", 1),
        ("Stop.", "", 1),
        ("Stop.", "stop stop stop", 2),
    ],
)
def test_case_and_punctuation_are_no_words(reference: str, heard: str, errors: int) -> None:
    assert word_errors(reference, heard).errors == errors


def test_without_words_there_is_no_rate() -> None:
    assert word_errors("…", "anything").rate is None
    assert spoken_words("  – ") == []
