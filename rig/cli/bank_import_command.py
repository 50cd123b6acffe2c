"""`rig bank import`: a table becomes a bank with clips, which is then checked."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from rig.bank.from_csv import MAX_PROBLEMS, OwnItem, read_items
from rig.bank.lint import lint
from rig.bank.loader import load_bank
from rig.bank.models import Bank, BankInfo, Problem
from rig.bank.own_bank import write_bank
from rig.bank.own_tools import BankImportError, read_tools
from rig.bank.rendering.errors import RenderError
from rig.bank.rendering.voices import VOICES
from rig.cli.bank_render_command import NEEDED
from rig.cli.failures import printable

INTERRUPTED = 130
_WARNINGS_SHOWN = 20
_VARIANT = re.compile(r"variants\[(\d+)\]")


@dataclass(slots=True)
class _Clips:
    recorded: int = 0
    rendered: int = 0
    failures: list[str] = field(default_factory=list)
    interrupted: bool = False


def import_bank(
    table: Path, out: Path, tools: Path | None, scenario: str, voice: str, *, render: bool, as_json: bool
) -> int:
    """Import, render what has no recording, and lint; 1 where a clip failed or the lint has an error, else 0.

    Raises:
        BankImportError, RenderError: one line per problem, for the user; nothing was written.
    """
    if voice not in VOICES:
        raise BankImportError("--voice", [f"{voice!r} is unknown; there are: {', '.join(sorted(VOICES))}"])
    prefix = "".join(c if c.isascii() and c.isalnum() else "-" for c in table.stem)[:40].strip("-").lower() or "own"
    menu = read_tools(tools) if tools is not None else None
    items, notes = read_items(table, menu, prefix=prefix, scenario=scenario, voice=voice)
    _check(table, items)
    to_render = render and not all(own.recorded for own in items)
    if to_render and (missing := [name for name in NEEDED if find_spec(name) is None]):
        raise RenderError(
            f"rendering needs {', '.join(missing)}: install the extra, voice-agent-rig[render]; "
            "or give every row a wav; or import with --no-render"
        )
    notes += write_bank(out, items, table)
    clips = _Clips(recorded=sum(row.wav is not None for own in items for row in own.rows))
    if to_render:
        _render(out, items, clips)
    problems = lint(load_bank(out))
    _tell(out, items, clips, notes, problems, as_json=as_json)
    if clips.interrupted:
        return INTERRUPTED
    return 1 if clips.failures or any(problem.level == "error" for problem in problems) else 0


def _check(table: Path, items: list[OwnItem]) -> None:
    """What the lint has against the items before anything is written: calls that a tool could never take, and such."""
    own_of = {own.item.id: own for own in items}
    bank = Bank(table.parent, BankInfo(), tuple(own.item for own in items), sources={item: item for item in own_of})
    problems = []
    for one in lint(bank):
        if one.level == "error" and one.file in own_of:
            at = _VARIANT.match(one.field)
            row = own_of[one.file].rows[int(at[1]) if at else 0]
            problems.append(f"{row}: {one.field}: {one.message}")
    if problems:
        raise BankImportError(str(table), problems[:MAX_PROBLEMS])


def _render(out: Path, items: list[OwnItem], clips: _Clips) -> None:
    from rig.bank.rendering.bank_render import render_bank
    from rig.bank.rendering.voices import SynthesisError

    rows = {f"{row.item_id}/{row.variant_id}": row.number for own in items for row in own.rows}
    try:
        done = render_bank(load_bank(out), console=Console(stderr=True, soft_wrap=True, quiet=True))
    except KeyboardInterrupt:
        clips.interrupted = True
        return
    except (ValueError, SynthesisError) as error:
        raise RenderError(str(error)) from error
    clips.rendered = len(done.rendered)
    clips.failures = [f"row {rows.get(line.split(': ', 1)[0], '?')}: {line}" for line in done.failures]


def _tell(
    out: Path, items: list[OwnItem], clips: _Clips, notes: list[str], problems: list[Problem], *, as_json: bool
) -> None:
    if as_json:
        told = {
            "bank": str(out),
            "items": len(items),
            "variants": sum(len(own.rows) for own in items),
            "recorded": clips.recorded,
            "rendered": clips.rendered,
            "failures": clips.failures,
            "notes": notes,
            "problems": [
                {"level": one.level, "file": one.file, "field": one.field, "message": one.message} for one in problems
            ],
        }
        print(json.dumps(told, indent=2))
        return
    errors = [str(one) for one in problems if one.level == "error"]
    warnings = [*notes, *(str(one) for one in problems if one.level == "warning")]
    if len(warnings) > _WARNINGS_SHOWN:
        warnings = [*warnings[:_WARNINGS_SHOWN], f"and {len(warnings) - _WARNINGS_SHOWN} more: rig bank lint {out}"]
    for line in [*warnings, *(f"failed: {one}" for one in clips.failures), *errors]:
        print(printable(line), file=sys.stderr)
    print(
        printable(
            f"{out}: {len(items)} items, {clips.recorded} clips from recordings, {clips.rendered} rendered, "
            f"{len(clips.failures)} failed"
        )
    )
    print(printable(f"next: bank: {out} in a config, or rig bank show {out}"), file=sys.stderr)
