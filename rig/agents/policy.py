"""Takes a stated policy apart: what is done by default, and what is done when something is heard or said.

Pure text. A clause keeps the words that lead to a tool and leaves out what it forbids or postpones ("do not …",
"before …", "rather than …").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rig.agents.lexical import stems, tokens

MAX_POLICY_CHARS = 20_000

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|;\s+(?=if\b|when\b|otherwise\b|in case\b)", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:if|when|whenever|where|in case|as soon as|should)\b", re.IGNORECASE)
_ONLY_IF = re.compile(r"\b(?:only (?:if|when|where|once|after|on|at|upon)|unless|as long as|provided)\b", re.IGNORECASE)
_BREAK = re.compile(r"\s*(?:[,;:]|\s[-–—]+\s|[–—])\s*")
_NEGATION = re.compile(r"\b(?:do not|don't|never|must not|may not|cannot|not|nothing|no|none)\b", re.IGNORECASE)
_STRONG_BREAK = re.compile(r"\s*(?:[;:.]|\s[-–—]+\s|[–—]|,?\s+\b(?:and|but)\b)\s*", re.IGNORECASE)
_POSTPONED = re.compile(r"\b(?:rather than|instead of|before|without|until|because|since)\b.*$", re.IGNORECASE)
_PERMISSION = re.compile(r"\b(?:may additionally|permitted|never required|is optional)\b", re.IGNORECASE)
_NO_ACTION = re.compile(
    r"\b(?:needs? no (?:action|tool|step)|no (?:action|tool|step|entry|change) (?:is )?(?:needed|taken|required)"
    r"|nothing (?:is|more|further|else)? ?(?:needed|to (?:do|log|change|book|record)|logged|done|changed|recorded)"
    r"|(?:take|call|use) no (?:action|tool|step)|leave (?:it|things) as|(?:only|simply|just) (?:speak|thank|reassure)"
    r"|do nothing)\b",
    re.IGNORECASE,
)
_NOTHING_WANTED = re.compile(
    r"\b(?:nothing (?:needed|else|more|further|to change)|no need|do(?:es)? ?n.t need anything|don t need anything"
    r"|not asking for anything|that s all|just (?:confirming|letting you know|calling to say))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Clause:
    """One part of a policy."""

    text: frozenset[str]
    """Stems that lead to a tool."""
    stated: frozenset[str]
    """All stems of the sentence it was taken from."""
    condition: frozenset[str]
    """Stems of the condition, with those of the action where the two cannot be told apart; empty by default."""
    no_action: bool
    """It says that nothing is to be done."""
    otherwise: bool
    """It says what is done when no other clause applies."""
    only: bool
    """The condition restricts what is done as a rule ("… only if …")."""


def clauses(policy: str | None) -> list[Clause]:
    """The clauses of a policy in order; none for no policy."""
    found: list[Clause] = []
    for sentence in _SENTENCE.split((policy or "")[:MAX_POLICY_CHARS]):
        sentence = re.sub(r"^\s*policy[^:.]{0,80}:", "", sentence.strip(), flags=re.IGNORECASE)
        if not sentence or _PERMISSION.search(sentence):
            continue
        only_if = _ONLY_IF.search(sentence)
        if only_if:
            found.append(_clause(sentence[: only_if.start()], sentence[only_if.end() :], sentence, only=True))
            continue
        started = _CONDITION.search(sentence)
        if not started:
            found.append(_clause(sentence, "", sentence))
            continue
        before, rest = sentence[: started.start()], sentence[started.end() :]
        if _BREAK.search(rest):
            if stems(before):
                found.append(_clause(before, "", before))
            found.append(_clause(_consequence(rest), rest, sentence))
        else:
            found.append(_clause(before, rest, sentence))
    return [clause for clause in found if clause.text or clause.no_action]


def nothing_wanted(words: str) -> bool:
    """True when the caller says that nothing needs to be done."""
    return _NOTHING_WANTED.search(" ".join(tokens(words))) is not None


def meant(text: str) -> frozenset[str]:
    """Stems of what a text says is done, without what it forbids, denies or postpones.

    A denial holds from its own part of the sentence up to the next "and", "but", dash, colon or semicolon.
    """
    kept = []
    for piece in _STRONG_BREAK.split(text):
        for part in piece.split(","):
            if _NEGATION.search(part):
                break
            kept.append(_POSTPONED.sub(" ", part))
    return stems(" ".join(kept))


def _consequence(rest: str) -> str:
    """What follows the condition's first break, or all of it when nothing of use follows."""
    parts = _BREAK.split(rest, maxsplit=1)
    return parts[1] if len(parts) > 1 and meant(parts[1]) else rest


def _clause(action: str, condition: str, sentence: str, *, only: bool = False) -> Clause:
    return Clause(
        text=meant(action),
        stated=stems(sentence),
        condition=stems(condition),
        no_action=_NO_ACTION.search(action) is not None,
        otherwise=not condition and re.search(r"\botherwise\b", action, re.IGNORECASE) is not None,
        only=only,
    )
