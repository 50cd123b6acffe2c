"""`rig bank new`: asks on a terminal for what no option gave; elsewhere names the options that are missing."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from rig.bank.rendering.errors import RenderError
from rig.bank.rendering.voices import VOICES
from rig.bank.scaffold import Answers, choices, draft, opened, problems_of, write_draft
from rig.bank.words import Grounding, HarmClass, Severity
from rig.cli.failures import printable

_NO_CALL = "none"


class _Asker:
    """Gives the option's value, else the answer on the terminal, else the default; remembers what is missing."""

    def __init__(self) -> None:
        self.terminal = sys.stdin.isatty()
        self.missing: list[str] = []

    def text(self, option: str, given: str | None, question: str, default: str | None = None) -> str:
        if given is not None:
            return given
        if self.terminal:
            return str(typer.prompt(question, default=default, err=True))
        if default is None:
            self.missing.append(f"--{option}")
        return default or ""

    def choice(self, option: str, given: str | None, question: str, known: Iterable[str], default: str) -> str:
        names = ", ".join(map(str, known))
        answer = self.text(option, given, f"{question} ({names})", default)
        if answer not in names.split(", "):
            raise RenderError(f"--{option}: {answer!r} is not one of {names}")
        return answer


@dataclass(frozen=True, slots=True)
class Given:
    """The options as given; None where one was not."""

    item_id: str | None = None
    sector: str | None = None
    transcript: str | None = None
    scenario: str | None = None
    policy: str | None = None
    implicit: bool = False
    tools: Sequence[str] = ()
    cue: str | None = None
    intensity: float = 0.8
    neutral_tool: str | None = None
    cue_tool: str | None = None
    harm_class: str | None = None
    severity: str | None = None
    grounding: str | None = None
    citation: str | None = None
    voice: str | None = None


def new(folder: Path, given: Given) -> int:
    """Write the draft of an item and say what the lint has against it; 1 if it has errors, else 0."""
    bank = opened(folder)
    made = draft(_answers(_Asker(), given))
    if made.item.id in {item.id for item in bank.items}:
        raise RenderError(f"{made.item.id} is already the id of {bank.sources[made.item.id]}: ids are unique")
    problems = problems_of(bank, made)
    for problem in problems:
        typer.echo(printable(str(problem)), err=True)
    if any(problem.level == "error" for problem in problems):
        typer.echo("nothing was written: mend the answers above", err=True)
        return 1
    for path in write_draft(folder, made):
        typer.echo(f"written: {path}")
    typer.echo(f"next: fill in what the file marks as to do, then rig bank render {folder} and rig bank lint {folder}")
    return 0


def _answers(ask: _Asker, given: Given) -> Answers:
    item_id = ask.text("id", given.item_id, "Id of the item, e.g. own-parking-01")
    sector = ask.text("sector", given.sector, "Sector, e.g. parking")
    transcript = ask.text("transcript", given.transcript, "The caller's words, the same in every variant")
    scenario = ask.text("scenario", given.scenario, "What the agent knows when the call comes in")
    policy = given.policy
    if policy is None and not given.implicit and ask.terminal:
        policy = ask.text("policy", None, "Rule that the agent is told (empty: it must know)", "") or None
    tools = _tools(ask, given.tools)
    if given.cue is None and ask.terminal:
        typer.echo(choices(), err=True)
    cue = ask.text("cue", given.cue, "The cue, as kind:what")
    names = ", ".join([*(name for name, _ in tools), _NO_CALL])
    neutral_tool = ask.text("neutral-tool", given.neutral_tool, f"Right without the cue ({names})")
    cue_tool = ask.text("cue-tool", given.cue_tool, f"Right with the cue ({names})")
    harm_class = ask.choice("harm-class", given.harm_class, "What a wrong action hurts", HarmClass, "consumer_rights")
    severity = ask.choice("severity", given.severity, "How bad that is", Severity, "friction")
    grounding = ask.choice("grounding", given.grounding, "What the right action rests on", Grounding, "practice")
    voice = ask.choice("voice", given.voice, "Voice", sorted(VOICES), "hibari")
    if ask.missing:
        raise RenderError(f"not on a terminal, so nothing can be asked: give {', '.join(ask.missing)}")
    return Answers(
        item_id=item_id,
        sector=sector,
        transcript=transcript,
        scenario=scenario,
        policy=policy,
        tools=tools,
        cue=cue,
        intensity=given.intensity,
        neutral_tool=None if neutral_tool == _NO_CALL else neutral_tool,
        cue_tool=None if cue_tool == _NO_CALL else cue_tool,
        harm_class=harm_class,
        severity=severity,
        grounding=grounding,
        citation=given.citation,
        voice=voice,
    )


def _tools(ask: _Asker, given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Name and description of each tool, two at least."""
    lines = list(given)
    while ask.terminal and not given:
        told = f"Tool {len(lines) + 1}, as name: what it does" + (" (empty: no more)" if len(lines) > 1 else "")
        line = ask.text("tool", None, told, "")
        if not line and len(lines) > 1:
            break
        lines += [line] if line else []
    if not lines:
        ask.missing.append("--tool")
    pairs: list[tuple[str, str]] = []
    for line in lines:
        found = re.fullmatch(r"\s*([A-Za-z_][A-Za-z0-9_-]*)\s*:\s*(\S.*)", line)
        if not found:
            raise RenderError(f"--tool {line!r}: write name: what it does")
        pairs.append((found[1], found[2]))
    return tuple(pairs)
