"""Words as the chooser compares them: tokens, stems, spoken numbers. Pure text, English, no learning."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_TOKEN = re.compile(r"[a-z0-9]+")


def _words(text: str) -> list[str]:
    return text.split()


_STOP = frozenset(
    _words(
        "a an the and or but nor so of to in on at by for from with into onto as than then this that these those it"
        " its is are was were be been being am do does did have has had having i me my we us our you your he him his"
        " she her they them their there here what which who whom when where how why if not no yes any some each all"
        " both can could may might must shall should will would just also too very more most such only own same up out"
        " off over under about again once s t re ve ll d m please before after while during until whether"
    )
)
_SUFFIXES = (
    "ically",
    "ations",
    "ation",
    "ments",
    "ment",
    "ness",
    "ings",
    "ing",
    "ions",
    "ion",
    "edly",
    "ied",
    "ies",
    "ed",
    "ers",
)
_MORE_SUFFIXES = ("ic", "er", "es", "ly", "al", "ful", "s", "e", "y")
_SHORTEST_STEM = 3

_UNITS = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
)
_TENS = _words("twenty thirty forty fifty sixty seventy eighty ninety")
_VALUES = {word: value for value, word in enumerate(_UNITS)} | {
    word: 10 * (place + 2) for place, word in enumerate(_TENS)
}
_VALUES["oh"] = 0
_ORDINALS = {
    word: value
    for value, word in enumerate(_words("first second third fourth fifth sixth seventh eighth ninth tenth"), start=1)
}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}


def tokens(text: str) -> list[str]:
    """Lower-case words and digit groups, apostrophes joined, in order."""
    return _TOKEN.findall(text.lower().replace("'", "").replace("\u2019", "").replace("_", " "))


def stem(word: str) -> str:
    """The word without one or two common endings; at least three letters stay."""
    for endings in (_SUFFIXES, _MORE_SUFFIXES):
        for ending in endings:
            if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
                word = word.removesuffix(ending)
                break
    if len(word) > _SHORTEST_STEM and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word


def stems(text: str) -> frozenset[str]:
    """Stems of the words that carry meaning (function words left out)."""
    return frozenset(stem(word) for word in tokens(text) if word not in _STOP)


def stems_of(words: Iterable[str]) -> frozenset[str]:
    """Stems of single words, function words kept."""
    return frozenset(stem(word) for word in words)


@dataclass(frozen=True, slots=True)
class SpokenNumber:
    """A number in a text, with the tokens it covers: `start` up to and without `stop`."""

    value: float
    start: int
    stop: int


def spoken_numbers(text: str) -> list[SpokenNumber]:
    """Numbers in digits or English words, in order.

    "four hundred and twenty" is 420; a run of single digits ("four nine two") or of pairs ("fourteen twenty") is read
    as written side by side: 492, 1420.
    """
    words = tokens(text)
    found: list[SpokenNumber] = []
    at = 0
    while at < len(words):
        stop = at
        while stop < len(words) and (
            words[stop] in _VALUES
            or words[stop] in _SCALES
            or words[stop].isdigit()
            or (words[stop] == "and" and stop > at and words[stop - 1] in _SCALES and _is_number(words, stop + 1))
        ):
            stop += 1
        run = words[at:stop]
        if run and run[0] not in _SCALES and run != ["oh"]:
            found.append(SpokenNumber(_value(run), at, stop))
        elif not run and words[at] in _ORDINALS:
            found.append(SpokenNumber(float(_ORDINALS[words[at]]), at, at + 1))
        at = max(stop, at + 1)
    return found


def _is_number(words: list[str], at: int) -> bool:
    return at < len(words) and (words[at] in _VALUES or words[at].isdigit())


def _value(run: list[str]) -> float:
    groups: list[int] = []
    total, current, scaled = 0, None, False
    for word in run:
        if word == "and":
            continue
        if word in _SCALES:
            scaled = True
            current = (current if current is not None else 1) * _SCALES[word]
            if _SCALES[word] >= 1000:
                total, current = total + current, None
            continue
        value = int(word[:12]) if word.isdigit() else _VALUES[word]
        if current is None:
            current = value
        elif (20 <= current % 100 < 100 and current % 10 == 0 and 0 < value < 10) or (scaled and current % 100 == 0):
            current += value
        else:
            groups.append(total + current)
            total, current, scaled = 0, value, False
    groups.append(total + (current or 0))
    return float("".join(str(group) for group in groups)[:15])
