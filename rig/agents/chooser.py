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
from rig.agents.policy import Clause, clauses, nothing_wanted

NO_ACTION = ""
"""Stands for "call no tool" among the tools' names."""

_STATES_NEEDED = 2
_TAG_WEIGHT = 4.0
_UNMET_WEIGHT = 1.5
_DEFAULT_WEIGHT = 1.0
_OTHERWISE_WEIGHT = 2.0
_WORDS_WEIGHT = 1.0
_CHARACTER_WEIGHT = 0.25
_ANSWER_WEIGHT = 1.0
_NAME_FACTOR = 2.0
_LEAST_SCORE = 0.05


@dataclass(frozen=True)
class _Menu:
    """The tools as bags of stems."""

    texts: Mapping[str, Mapping[str, float]]
    """Tool name → stem → weight; `NO_ACTION` is none of them."""

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
    scores = dict.fromkeys(menu.texts, 0.0)
    idle = 0.0
    for name, share in menu.pointed_at(said).items():
        scores[name] += _WORDS_WEIGHT * share
    for name, weights in menu.texts.items():
        scores[name] += _CHARACTER_WEIGHT * _character(frozenset(weights))
    parsed = clauses(policy)
    answered = False
    for clause in parsed:
        weight, met_by_tag = _clause_weight(clause, said, heard)
        answered = answered or met_by_tag
        if clause.no_action:
            idle += weight
            continue
        for name, share in menu.pointed_at(clause.text).items():
            scores[name] += weight * share
    if heard and not answered:
        _add_answers(scores, menu, heard)
    if nothing_wanted(words):
        idle += _DEFAULT_WEIGHT
    best = max(sorted(scores), key=lambda name: scores[name])
    if scores[best] < max(_LEAST_SCORE, idle):
        return None
    chosen = next(tool for tool in tools if tool.name == best)
    return ReplyCall(best, required_arguments(chosen, words))


def choose_option(options: Sequence[str], tags: frozenset[str]) -> str | None:
    """The option of a probe that says what was heard; without tags the one that reads as nothing unusual.

    None when there are no options.
    """
    if not options:
        return None
    heard = sorted(tag for tag in tags if tag in TAGS)
    return max(sorted(options), key=lambda option: _option_score(option, heard))


def _menu(tools: Sequence[ToolSpec]) -> _Menu:
    names = {tool.name: stems(tool.name) for tool in tools}
    texts = {tool.name: names[tool.name] | stems(tool.description) for tool in tools}
    holders = Counter(word for text in texts.values() for word in text)
    rarity = {word: math.log(1.0 + len(texts) / count) for word, count in holders.items()}
    return _Menu(
        {
            name: {word: rarity[word] * (_NAME_FACTOR if word in names[name] else 1.0) for word in text}
            for name, text in texts.items()
        }
    )


def _character(text: frozenset[str]) -> float:
    """From -1 (an action for something out of the ordinary) to 1 (what was asked for)."""
    routine, exceptional = len(text & ROUTINE), len(text & EXCEPTIONAL)
    return (routine - exceptional) / max(1, routine + exceptional)


def _clause_weight(clause: Clause, said: frozenset[str], heard: Sequence[str]) -> tuple[float, bool]:
    """What a clause counts in this call, and whether something heard made it count."""
    condition = clause.condition or (clause.text if _names_a_sound(clause.text) else frozenset())
    if not condition:
        return (_OTHERWISE_WEIGHT if clause.otherwise else _DEFAULT_WEIGHT), False
    met = max((tag_match(tag, condition) for tag in heard), default=0.0)
    if met > 0:
        return _TAG_WEIGHT * met, True
    if _names_a_sound(condition):
        return -_UNMET_WEIGHT, False
    # A condition about the words themselves: met as far as the caller's words are in it.
    return _DEFAULT_WEIGHT * (min(1.0, len(said & condition) / 2.0) - 0.5), False


def _names_a_sound(text: frozenset[str]) -> bool:
    return any(tag_match(tag, text) > 0 for tag in TAGS)


def tag_match(tag: str, text: frozenset[str]) -> float:
    """How well a text of stems speaks of a tag: 0 for not at all, else from 0.5 up to 1."""
    row = TAGS[tag]
    sounds, states = len(text & row.sounds), len(text & (row.states - row.sounds))
    if not sounds and states < _STATES_NEEDED:
        return 0.0
    return min(1.0, 0.4 * sounds + 0.2 * states + 0.2)


def _add_answers(scores: dict[str, float], menu: _Menu, heard: Sequence[str]) -> None:
    """No clause speaks of what was heard: tools do, by what they say and what such a cue usually calls for."""
    for name, weights in menu.texts.items():
        text = frozenset(weights)
        best = 0.0
        for tag in heard:
            fit = 2.0 * tag_match(tag, text) + min(2, len(text & TAGS[tag].answers)) * 0.5
            best = max(best, fit)
        scores[name] += _ANSWER_WEIGHT * best


def _option_score(option: str, heard: Sequence[str]) -> float:
    text = stems(option) | frozenset(tokens(option))
    clean = len(text & CLEAN)
    if not heard:
        return clean - 2.0 * sum(bool(text & row.sounds) for row in TAGS.values())
    fits = [2.0 * len(text & TAGS[tag].sounds) + len(text & (TAGS[tag].states - TAGS[tag].sounds)) for tag in heard]
    return max(fits) + 0.5 * sum(fits) / len(fits) - 0.25 * clean
