"""What each rung tells the text model, and what must never get through to the words-only one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.cascade.client import told
from adapters.cascade.forms import FormError, decode_form
from adapters.cascade.wire import Stage, addressed, clean_tags, opened, tags_in, with_tags
from adapters.cascade.words import bare


@pytest.mark.parametrize(
    ("transcript", "words"),
    [
        ("[crying] Please, um, cancel it (sobs).", "Please, cancel it."),
        ("I I I w-want to uh cancel", "I want to cancel"),
        ("♪ *beep* Hello <noise> there", "Hello there"),
        ("Uhm... yes. No, no, no!", "yes. No!"),
        ("The umbrella, her humming, the Ahmed file", "The umbrella, her humming, the Ahmed file"),
        ("that's that", "that's that"),
        ("", ""),
    ],
)
def test_words_alone(transcript: str, words: str) -> None:
    assert bare(transcript) == words


@given(st.text(max_size=80))
@settings(max_examples=60, deadline=None)
def test_bare_words_stay_bare_and_hold_nothing_new(text: str) -> None:
    once = bare(text)
    assert set(once) <= set(text) | {" "}
    assert len(bare(once)) <= len(once)


def test_rungs() -> None:
    heard = "Um, I I want [sighs] a taxi"
    assert told("words", heard, None) == "I want a taxi"
    assert told("verbatim", heard, None) == heard
    assert told("tags", heard, ("shouting",)) == "I want a taxi\n[measured in the audio: shouting]"
    assert told("tags", heard, ()) == "I want a taxi\n[measured in the audio: nothing unusual]"


@given(st.lists(st.text(max_size=90), max_size=30), st.text(max_size=50))
@settings(max_examples=60, deadline=None)
def test_no_tag_can_open_a_note_of_its_own(stated: list[str], words: str) -> None:
    tags = clean_tags(stated)
    assert len(tags) <= 20
    found, read = tags_in(with_tags(words.strip(), tags))
    assert found == words.strip() or tags_in(words.strip())[0] != words.strip()
    assert read == frozenset(tag for tag in tags if tag != "nothing unusual")


def test_a_text_without_the_note_has_no_tags() -> None:
    assert tags_in("[measured in the audio: shouting] she said") == (
        "[measured in the audio: shouting] she said",
        frozenset(),
    )


@given(st.binary(max_size=60), st.sampled_from(list(Stage)))
@settings(max_examples=40, deadline=None)
def test_a_frame_gives_its_body_back(body: bytes, stage: Stage) -> None:
    assert opened(addressed(stage, body)) == (stage, body)
    assert opened(body) is None or body.startswith(b'{"stage"')


def test_what_is_no_form_is_told() -> None:
    with pytest.raises(FormError, match="not a form"):
        decode_form(b"{}")
    with pytest.raises(FormError, match="no file"):
        decode_form(b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nw\r\n--b--\r\n')
    fields, file = decode_form(
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nx\r\n--y\r\n'
        b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nw\r\n--b--\r\n'
    )
    assert (fields, file) == ({"model": "w"}, b"x\r\n--y")
