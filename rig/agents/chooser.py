"""Chooses an action, or an option of a probe, from words and acoustic tags. Deterministic, without any learning.

It is given what an agent is given: scenario, policy, tools, the caller's words, and the tags that were measured in the
audio. It weighs how many meaningful words these share, rare ones more. Without tags it is the words-only agent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapters.dialect import ToolSpec
from adapters.server import ReplyCall
from rig.agents.acoustic_words import CLEAN, EXCEPTIONAL, ROUTINE, TAGS
from rig.agents.arguments import required_arguments
from rig.agents.lexical import stems, tokens
from rig.agents.policy import Clause, clauses, meant, nothing_wanted

_STATES_NEEDED = 2
_PLAIN_MATCH = 0.8
"""A sentence without "if" is taken for a condition from here on."""
_TAG_WEIGHT = 5.0
_UNMET_WEIGHT = 1.5
_MET_ABOVE = 2.1
"""More than any clause counts that nothing heard has met."""
_DEFAULT_WEIGHT = 1.0
_OTHERWISE_WEIGHT = 2.0
_WORDS_WEIGHT = 1.0
_WORDS_WEIGHT_WONDERING = 0.5
_CHARACTER_WEIGHT = 0.25
_NAME_FACTOR = 2.0


@dataclass(frozen=True)
class _Menu:
    """The tools as bags of stems."""

    texts: Mapping[str, Mapping[str, float]]
    """Tool name → stem → weight."""

    def character(self, name: str) -> float:
        """From -1 (an action for something out of the ordinary) to 1 (what was asked for)."""
        text = self.texts[name].keys()
        routine, exceptional = len(text & ROUTINE), len(text & EXCEPTIONAL)
        return (routine - exceptional) / max(1, routine + exceptional)

    def pointed_at(self, text: frozenset[str]) -> dict[str, float]:
        """How far a text leads to each tool: shares that sum to 1, or nothing when it leads nowhere."""
        points = {
            name: sum(weights[word] for word in sorted(text & weights.keys())) for name, weights in self.texts.items()
        }
        # Squared: a text that shares one more rare word with a tool means that tool, not a mixture.
        total = sum(value * value for value in points.values())
        return {name: value * value / total for name, value in points.items() if value > 0} if total else {}


def choose_action(
    tools: Sequence[ToolSpec],
    words: str,
    *,
    policy: str | None = None,
    tags: frozenset[str] = frozenset(),
) -> ReplyCall | None:
    """The one call to make, or None to call nothing and only speak.

    Depends on the set of tools, not on their order. Tags that are not in `TAGS` are ignored.
    """
    if not tools:
        return None
    menu = _menu(tools)
    said = stems(words)
    heard = sorted(tag for tag in tags if tag in TAGS)
    stated = clauses(policy)
    scores = {name: _CHARACTER_WEIGHT * menu.character(name) for name in menu.texts}
    idle = _DEFAULT_WEIGHT if nothing_wanted(words) else 0.0
    # Something unusual was heard and no policy says what it means: the words count for less.
    wondering = bool(heard) and not stated
    for name, share in menu.pointed_at(said).items():
        scores[name] += share * (_WORDS_WEIGHT_WONDERING if wondering else _WORDS_WEIGHT)
    weights = [_clause_weight(clause, said, heard) for clause in stated]
    if max(weights, default=0.0) > _MET_ABOVE:
        # What was heard settles it: what the caller says and what is done by default step back.
        weights = [weight if weight > _MET_ABOVE else 0.5 * weight for weight in weights]
    for clause, weight in zip(stated, weights, strict=True):
        if clause.no_action:
            idle += weight
            continue
        for name, share in menu.pointed_at(clause.text).items():
            scores[name] += weight * share
    if wondering:
        for name in scores:
            scores[name] += _answers(stems(name), frozenset(menu.texts[name]), heard)
    best = max(sorted(scores), key=lambda name: scores[name])
    # Without a policy and without anything heard, nothing out of the ordinary is done.
    unprompted = not stated and not heard and menu.character(best) < 0
    if unprompted or scores[best] <= max(0.0, idle):
        return None
    chosen = next(tool for tool in tools if tool.name == best)
    return ReplyCall(best, required_arguments(chosen, words))


def choose_option(options: Sequence[str], tags: frozenset[str]) -> str | None:
    """The option of a probe that says what was heard; the one that reads as nothing unusual where none speaks of it.

    None when there are no options.
    """
    if not options:
        return None
    texts = [stems(option) | frozenset(tokens(option)) for option in options]
    heard = sorted(tag for tag in tags if tag in TAGS and any(_speaks_of(text, tag) for text in texts))
    return max(sorted(options), key=lambda option: _option_score(option, heard))


def _menu(tools: Sequence[ToolSpec]) -> _Menu:
    names = {tool.name: stems(tool.name) for tool in tools}
    texts = {tool.name: names[tool.name] | meant(tool.description) for tool in tools}
    holders = Counter(word for text in texts.values() for word in text)
    rarity = {word: math.log(1.0 + len(texts) / count) for word, count in holders.items()}
    return _Menu(
        {
            name: {word: rarity[word] * (_NAME_FACTOR if word in names[name] else 1.0) for word in text}
            for name, text in texts.items()
        }
    )


def _clause_weight(clause: Clause, said: frozenset[str], heard: Sequence[str]) -> float:
    """What a clause counts in this call: much when it is met by something heard, below zero when that is missing."""
    if clause.only:
        if _names_a_sound(clause.condition):
            return _DEFAULT_WEIGHT
        return _DEFAULT_WEIGHT * (0.3 + 0.7 * _overlap(said, clause.condition | clause.text))
    plainly = any(tag_match(tag, clause.stated) >= _PLAIN_MATCH for tag in TAGS)
    condition = clause.condition or (clause.stated if plainly else frozenset())
    if not condition:
        return _OTHERWISE_WEIGHT if clause.otherwise else _DEFAULT_WEIGHT
    met = max((tag_match(tag, condition) for tag in heard), default=0.0)
    if met > 0:
        return _TAG_WEIGHT * met
    if _names_a_sound(condition):
        return -_UNMET_WEIGHT
    # A condition about the words themselves: met as far as the caller's words are in it.
    return _DEFAULT_WEIGHT * (_overlap(said, condition) - 0.5)


def _overlap(said: frozenset[str], text: frozenset[str]) -> float:
    return min(1.0, len(said & text) / 2.0)


def _names_a_sound(text: frozenset[str]) -> bool:
    return any(tag_match(tag, text) > 0 for tag in TAGS)


def tag_match(tag: str, text: frozenset[str]) -> float:
    """How well a text of stems speaks of a tag: 0 for not at all, else from 0.5 up to 1."""
    row = TAGS[tag]
    sounds, states = len(text & row.sounds), len(text & (row.states - row.sounds))
    if not sounds and states < _STATES_NEEDED:
        return 0.0
    return min(1.0, 0.4 * sounds + 0.2 * states + 0.2)


def _answers(name: frozenset[str], text: frozenset[str], heard: Sequence[str]) -> float:
    """How far a tool speaks of what was heard, or of what is usually done about it; its name counts double."""
    fits = []
    for tag in heard:
        row = TAGS[tag]
        answering = min(2.0, 0.5 * len(text & row.answers) + 0.5 * len(name & row.answers))
        hinting = min(2, len(text & (row.states - row.answers)))
        fits.append(2.0 * tag_match(tag, text) + 0.8 * answering + 0.4 * hinting)
    return max(fits)


def _option_score(option: str, heard: Sequence[str]) -> float:
    text = stems(option) | frozenset(tokens(option))
    clean = len(text & CLEAN)
    if not heard:
        return clean - 2.0 * sum(bool(text & row.sounds) for row in TAGS.values())
    fits = [_speaks_of(text, tag) for tag in heard]
    return max(fits) + 0.5 * sum(fits) / len(fits) - 0.25 * clean


def _speaks_of(text: frozenset[str], tag: str) -> float:
    row = TAGS[tag]
    return 2.0 * len(text & row.sounds) + len(text & (row.states - row.sounds))
