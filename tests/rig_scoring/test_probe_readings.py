"""Probe answers: strict and lenient, wrong and missing, and where the answer stood."""

from __future__ import annotations

import pytest

from rig.scoring.probe import lenient_option, read_probe, strict_option

OPTIONS = ("nothing", "nothing else", "a second voice.", "loud traffic")


@pytest.mark.parametrize(
    ("answer", "strict", "lenient"),
    [
        (" Nothing else! ", "nothing else", "nothing else"),
        ("A second voice", "a second voice.", "a second voice."),
        ("I hear a second voice, faintly.", None, "a second voice."),
        ("I hear nothing.", None, "nothing"),
        ("Loud traffic or a second voice?", None, None),
        ("traffic", None, None),
        ("louder loud trafficked", None, None),
        ("loud  TRAFFIC", None, "loud traffic"),
    ],
)
def test_readings(answer: str, strict: str | None, lenient: str | None) -> None:
    assert strict_option(answer, OPTIONS) == strict
    assert lenient_option(answer, OPTIONS) == lenient


def test_four_numbers_of_an_answer_that_names_no_option() -> None:
    reading = read_probe("", "It is a second voice", OPTIONS, "a second voice.")
    assert reading is not None
    assert reading.source == "reply_transcript"
    assert reading.value("strict", "wrong") == 0.0
    assert reading.value("strict", "missing") is None
    assert reading.value("lenient", "wrong") == reading.value("lenient", "missing") == 1.0


def test_text_comes_before_transcript_and_neither_does_not_apply() -> None:
    reading = read_probe("nothing", "loud traffic", OPTIONS, "nothing")
    assert reading is not None
    assert (reading.source, reading.value("strict", "missing")) == ("reply_text", 1.0)
    assert read_probe(" \n", "", OPTIONS, "nothing") is None
