"""Finds words in clean speech: recognition for the word error rate, and forced alignment for the times of a slot.

pocketsphinx with its own English model; words that its dictionary lacks come from the bank's `lexicon.txt`. It holds
the interpreter lock while it decodes: for offline rendering only, never beside a paced stream.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pocketsphinx import Decoder

from rig.bank.rendering.levels import RATE_HZ, Samples
from rig.bank.rendering.voices import resampled

_RECOGNISER_RATE_HZ = 16_000
_FRAME_S = 0.01
_FLOOR = 1e-4
_UNIT_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TEN_WORDS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety"
_PHONES = "AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH"


@dataclass(frozen=True, slots=True)
class Word:
    """One word found in the audio, with its span in seconds."""

    text: str
    start_s: float
    end_s: float


def number_words(number: int) -> str:
    """A whole number from 0 to 999,999 as American English words; raises ValueError outside."""
    if not 0 <= number < 1_000_000:
        raise ValueError(f"cannot spell {number}")
    units, tens = _UNIT_WORDS.split(), _TEN_WORDS.split()
    if number < 20:
        return units[number]
    if number < 100:
        return tens[number // 10] + (f" {units[number % 10]}" if number % 10 else "")
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    rest = f" {number_words(number % size)}" if number % size else ""
    return f"{number_words(number // size)} {name}{rest}"


def spoken_words(text: str) -> list[str]:
    """The words as a speaker says them, lower case: punctuation dropped, hyphens split, whole numbers and $ spelled."""
    plain = text.lower().replace("’", "'").replace("okay", "ok")
    plain = re.sub(r"\$([\d,]+)", lambda found: f"{found[1]} dollars", plain)
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", plain)
    plain = re.sub(r"\d+", lambda found: f" {number_words(int(found[0]))} ", plain)
    return [word for word in (raw.strip("'") for raw in re.findall(r"[a-z']+", plain)) if word]


def read_lexicon(path: Path) -> dict[str, str]:
    """Word → phones from lines `word PHONE PHONE…` (ARPAbet without stress; `#` begins a comment; `word(2)` a variant).

    Raises ValueError that names file, line and what is wrong.
    """
    entries: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        word, *phones = line.split("#")[0].split() or [""]
        if not word:
            continue
        if wrong := [phone for phone in phones if phone not in _PHONES.split()]:
            raise ValueError(f"{path}:{number}: {word}: unknown phones {' '.join(wrong)}; write ARPAbet without stress")
        if not phones or word != word.lower() or word in entries:
            raise ValueError(f"{path}:{number}: {word}: needs phones, lower case, and one line per pronunciation")
        entries[word] = " ".join(phones)
    return entries


class Recogniser:
    """pocketsphinx with extra words. Each call decodes a whole utterance afresh: same samples, same answer."""

    def __init__(self, lexicon: dict[str, str]) -> None:
        self._decoder = Decoder(cmn="batch", loglevel="FATAL")
        for word, phones in lexicon.items():
            if self._decoder.lookup_word(word) is None:
                self._decoder.add_word(word, phones, True)
        self._words_search = self._decoder.current_search()

    def unknown(self, words: list[str]) -> list[str]:
        """The words that neither the model's dictionary nor the lexicon has."""
        return sorted({word for word in words if self._decoder.lookup_word(word) is None})

    def heard(self, samples: Samples) -> list[str]:
        """The words recognised in the samples."""
        self._decoder.activate_search(self._words_search)
        self._decode(samples)
        hypothesis = self._decoder.hyp()
        return spoken_words(hypothesis.hypstr) if hypothesis else []

    def aligned(self, samples: Samples, words: list[str]) -> list[Word]:
        """Where each of the given words is spoken; raises ValueError when they cannot be aligned."""
        if missing := self.unknown(words):
            raise ValueError(f"cannot align {', '.join(missing)}: add to lexicon.txt as `word PHONES`")
        self._decoder.set_align_text(" ".join(words))
        self._decode(samples)
        found = [
            Word(re.sub(r"\(\d+\)$", "", part.word), part.start_frame * _FRAME_S, (part.end_frame + 1) * _FRAME_S)
            for part in self._decoder.seg() or ()
            if not part.word.startswith(("<", "[", "+"))
        ]
        if [word.text for word in found] != words:
            raise ValueError("forced alignment failed: the audio does not hold the transcript's words")
        return found

    def _decode(self, samples: Samples) -> None:
        # Digital silence has no spectrum to align with: a floor of noise at -80 dBFS, always the same.
        floor = np.random.default_rng(0).standard_normal(samples.size) * _FLOOR
        narrow = np.clip(resampled(samples + floor, _RECOGNISER_RATE_HZ / RATE_HZ), -1.0, 1.0)
        # Without this, feature extraction remembers the utterance before, and an alignment moves by a frame.
        self._decoder.reinit_feat()
        self._decoder.start_utt()
        self._decoder.process_raw((narrow * 32767).astype("<i2").tobytes(), no_search=False, full_utt=True)
        self._decoder.end_utt()


def word_error_rate(said: list[str], heard: list[str]) -> float:
    """Substitutions, deletions and insertions over the number of words said (jiwer, extra `render`).

    Raises ValueError when nothing was said.
    """
    import jiwer

    if not said:
        raise ValueError("no words to compare with")
    return float(jiwer.wer(" ".join(said), " ".join(heard)))


def slot_span_s(words: list[Word], slot: str) -> tuple[float, float]:
    """Start of the slot's first word and end of its last, seconds; raises ValueError unless it occurs exactly once."""
    wanted = spoken_words(slot)
    texts = [word.text for word in words]
    hits = [at for at in range(len(texts) - len(wanted) + 1) if wanted and texts[at : at + len(wanted)] == wanted]
    if len(hits) != 1:
        raise ValueError(f"slot {slot!r} occurs {len(hits)} times in the transcript; it must occur once, verbatim")
    return words[hits[0]].start_s, words[hits[0] + len(wanted) - 1].end_s
