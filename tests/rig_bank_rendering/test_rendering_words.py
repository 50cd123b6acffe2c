from __future__ import annotations

from itertools import pairwise

import pytest
import soundfile

from rig.bank.rendering.words import Recogniser, Word, number_words, read_lexicon, slot_span_s, spoken_words


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (40, "forty"),
        (42, "forty two"),
        (907, "nine hundred seven"),
        (120_350, "one hundred twenty thousand three hundred fifty"),
    ],
)
def test_numbers_are_spelled(number, words):
    assert number_words(number) == words


def test_numbers_out_of_reach_are_refused():
    with pytest.raises(ValueError, match="cannot spell"):
        number_words(1_000_000)


def test_words_as_spoken():
    spoken = " ".join(spoken_words("Well - it's $1,200, isn’t it? Fifty-one!"))
    assert spoken == "well it's one thousand two hundred dollars isn't it fifty one"


def test_a_slot_is_found_verbatim_and_once():
    words = [Word("pay", 0.2, 0.5), Word("ninety", 0.5, 0.9), Word("pounds", 0.9, 1.3), Word("pay", 1.3, 1.6)]
    assert slot_span_s(words, "Ninety pounds,") == (0.5, 1.3)
    for slot in ("pay", "sixty", ""):
        with pytest.raises(ValueError, match="once, verbatim"):
            slot_span_s(words, slot)


@pytest.mark.parametrize(
    ("line", "wrong"), [("bisoprolol B QQ", "unknown phones QQ"), ("bisoprolol", "needs phones"), ("Ab AE B", "lower")]
)
def test_a_wrong_lexicon_line_is_named(tmp_path, line, wrong):
    path = tmp_path / "lexicon.txt"
    path.write_text(f"# words\n{line}\n")
    with pytest.raises(ValueError, match=rf"lexicon.txt:2: .*{wrong}"):
        read_lexicon(path)


def test_real_speech_is_recognised_and_aligned(repo_dir, tmp_path):
    path = tmp_path / "lexicon.txt"
    path.write_text("bisoprolol B IH S AA P R AH L AO L  # a medicine\n")
    recogniser = Recogniser(read_lexicon(path))
    assert recogniser.unknown(["i", "bisoprolol", "zxqv"]) == ["zxqv"]
    samples, _ = soundfile.read(repo_dir / "rig/agents/stock/nothing_needed.flac")
    said = ["all", "right", "nothing", "more", "is", "needed"]
    assert recogniser.heard(samples) == recogniser.heard(samples)
    aligned = recogniser.aligned(samples, said)
    assert [word.text for word in aligned] == said
    # Whatever was decoded before: clips must not depend on the order in which they are made.
    other, _ = soundfile.read(repo_dir / "rig/agents/stock/heard.flac")
    recogniser.aligned(other, ["here", "is", "what", "i", "heard"])
    assert recogniser.aligned(samples, said) == recogniser.aligned(samples, said) == aligned
    assert 0.1 < aligned[0].start_s < 0.4
    assert 1.7 < aligned[-1].end_s < 2.1
    assert all(before.end_s <= after.start_s for before, after in pairwise(aligned))
    with pytest.raises(ValueError, match="cannot align zxqv"):
        recogniser.aligned(samples, ["zxqv"])
