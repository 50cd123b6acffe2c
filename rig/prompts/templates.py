"""Fills the prompt templates, and takes filled ones apart again for the embedded agents, which see nothing else.

Pure text. The words are in `action.txt` and `probe.txt` beside this file; a change to them, or to how they are filled,
needs a new `PROMPT_VERSION`, since it may change every result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

PROMPT_VERSION = 1

_ROLE = "# Role"
_POLICY = "# Policy"
_QUESTION = "# Question"
_OPTIONS = "# Options"
_TASK = "# Task"
_HEADINGS = (_ROLE, _POLICY, _QUESTION, _OPTIONS, _TASK)


@dataclass(frozen=True, slots=True)
class ParsedPrompt:
    """What a filled template says; a prompt without our headings is all scenario."""

    scenario: str
    policy: str | None = None
    question: str | None = None
    options: tuple[str, ...] = ()

    @property
    def is_probe(self) -> bool:
        """True when a question with options is asked."""
        return bool(self.options)


def instructions(scenario: str, policy: str | None) -> str:
    """The system text of an action turn (audio or text twin); `policy` None where the item states none."""
    stated = f"\n{_POLICY}\n{_one_paragraph(policy)}\n" if policy and policy.strip() else ""
    return _filled("action.txt", {"scenario": _one_paragraph(scenario), "policy": stated})


def probe_instructions(scenario: str, question: str, options: Sequence[str]) -> str:
    """The system text of a probe: policy and tools left out, `options` one per line in the order given."""
    listed = "\n".join(_one_paragraph(option) for option in options)
    return _filled(
        "probe.txt",
        {"scenario": _one_paragraph(scenario), "question": _one_paragraph(question), "options": listed},
    )


def parse(text: str) -> ParsedPrompt:
    """The parts of a filled template, each heading at its first place; never raises."""
    parts: dict[str, list[str]] = {}
    current = _ROLE
    for line in text.splitlines():
        heading = line.strip()
        if heading in _HEADINGS and heading not in parts:
            current = heading
            parts[current] = []
        else:
            parts.setdefault(current, []).append(line)
    joined = {heading: "\n".join(lines).strip() for heading, lines in parts.items()}
    question = joined.get(_QUESTION, "").splitlines()
    options = [line.strip() for line in joined.get(_OPTIONS, "").splitlines()]
    return ParsedPrompt(
        scenario=joined.get(_ROLE, ""),
        policy=joined.get(_POLICY) or None,
        question=question[-1] if question else None,
        options=tuple(option for option in options if option),
    )


def _one_paragraph(text: str) -> str:
    """One line without surplus white space, so that no item's text can open a heading of its own."""
    return " ".join(text.split())


def _filled(name: str, values: dict[str, str]) -> str:
    pieces = []
    for piece in _template(name).split("{"):
        key, brace, rest = piece.partition("}")
        pieces.append(values[key] + rest if brace and key in values else piece)
    return "".join(pieces).strip()


@cache
def _template(name: str) -> str:
    return files("rig.prompts").joinpath(name).read_text(encoding="utf-8")
