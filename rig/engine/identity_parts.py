"""What the identities of a run's cells are made of, part by part: so a stale result can be told by its cause. Pure.

A part is a short value, or the first 16 digits of a SHA-256 of a long one. Parts are kept in `run.json`; identities
themselves are made in `rig.engine.plan` from the whole values.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from captures.capture import Capture
from rig.config import Config
from rig.engine.plan import Cell, Target
from rig.prompts.templates import PROMPT_VERSION

Parts = Mapping[str, Any]
_DIGITS: Final = 16
_EXAMPLES: Final = 3
_UNKNOWN: Final = "what changed cannot be told: the folder does not say what it was made of"
_CELL_PARTS: Final = {
    "text": "the item's text (scenario, policy, transcript or question) changed",
    "menu": "the menu of tools changed",
    "clip": "the clip changed",
    "reply": "the caller's second turn changed",
}


class StaleError(ValueError):
    """A folder's results are not what this config and bank would give. One line each: which, and why."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))


def identity_parts(config: Config, targets: Sequence[Target], cells: Iterable[Cell]) -> dict[str, Any]:
    """The parts of a plan, as `run.json` keeps them."""
    return {
        "run": {
            "prompt_version": PROMPT_VERSION,
            "pace": config.pace,
            "chunk_ms": config.chunk_ms,
            "second_turn": config.second_turn,
            "barge_in": None if config.barge_in is None else config.barge_in.model_dump(mode="json"),
        },
        "targets": {target.name: _of_target(target) for target in targets},
        "cells": _of_cells(cells),
    }


def stale(cells: Iterable[Cell], captures: Iterable[Capture]) -> list[Capture]:
    """Finished captures of planned cells that would now be made otherwise, and have not been yet.

    A cell's place is its target, item, variant, condition and repeat. What is merely no longer asked for is not stale.
    """
    planned = {_place(cell): cell.identity for cell in cells}
    finished = [capture for capture in captures if capture.finished]
    done = {capture.identity for capture in finished}
    return [
        capture
        for capture in finished
        if (wanted := planned.get(_place(capture))) not in (None, capture.identity) and wanted not in done
    ]


def reasons(before: Parts | None, now: Parts, found: Sequence[Capture]) -> list[str]:
    """Why captures no longer match, one line for each target and cause, with counts and examples."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for capture in found:
        causes = _causes(before, now, capture) or [_UNKNOWN]
        shown = "/".join(part for part in (capture.item_id, capture.variant_id) if part)
        groups[capture.target, "; ".join(causes)].append(f"{shown} ({capture.condition})")
    lines = []
    for (target, cause), places in groups.items():
        distinct = list(dict.fromkeys(places))
        more = len(distinct) - _EXAMPLES
        named = ", ".join(distinct[:_EXAMPLES]) + (f" and {more} more" if more > 0 else "")
        counted = "1 cell" if len(places) == 1 else f"{len(places)} cells"
        lines.append(f"{counted} of {target}: {cause}: {named}")
    return lines


def _causes(before: Parts | None, now: Parts, capture: Capture) -> list[str]:
    if not isinstance(before, Mapping):
        return []
    causes = _changed(_part(before, "run"), _part(now, "run"), "")
    causes += _changed(_part(before, "targets", capture.target), _part(now, "targets", capture.target), "")
    key = _key(capture)
    old, new = _part(before, "cells", key), _part(now, "cells", key)
    causes += [text for name, text in _CELL_PARTS.items() if old and old.get(name) != new.get(name)]
    return causes


def _changed(old: Parts, new: Parts, prefix: str) -> list[str]:
    """`name: old → new` for short values, `name changed` for the others."""
    lines: list[str] = []
    for name in dict.fromkeys([*old, *new]) if old else ():
        was, is_now = old.get(name), new.get(name)
        if was == is_now:
            continue
        if isinstance(was, Mapping) or isinstance(is_now, Mapping):
            lines += _changed(was or {"": None}, is_now or {}, f"{prefix}{name}.") if name == "settings" else []
            lines += [f"{prefix}{name} changed"] if name != "settings" else []
        elif name.endswith("#"):
            lines.append(f"{prefix}{name[:-1]} changed")
        elif name:
            lines.append(f"{prefix}{name} {_shown(was)} → {_shown(is_now)}")
    return lines


def _shown(value: Any) -> str:
    return "none" if value in (None, "") else str(value)


def _of_target(target: Target) -> dict[str, Any]:
    own = target.config
    return {
        "adapter": own.adapter,
        "wire_version": target.wire_version,
        "model": own.model,
        "base_url": target.shown["base_url"],
        "embedded_agent": own.embedded_agent,
        "faults#": _hash(list(own.faults)),
        "input_rate_hz": target.input_rate_hz,
        "turn_control": str(target.turn_control.mode),
        "turn_control.parameters#": _hash(dict(target.turn_control.parameters)),
        "settings": {f"{name}#": _hash(value) for name, value in target.shown["settings"].items()},
    }


def _of_cells(cells: Iterable[Cell]) -> dict[str, dict[str, Any]]:
    """By item, variant and condition. A target without second turns says nothing about the caller's reply."""
    found: dict[str, dict[str, Any]] = {}
    for cell in cells:
        if cell.repeat == 0 and ((key := _key(cell)) not in found or found[key]["reply"] is None):
            found[key] = _of_cell(cell)
    return found


def _of_cell(cell: Cell) -> dict[str, Any]:
    return {
        "text": _hash([cell.setup.instructions, cell.text]),
        "menu": _hash([[tool.name, tool.description, tool.parameters] for tool in cell.setup.tools]),
        "clip": None if cell.clip is None else _hash([cell.clip.pcm_sha256, cell.clip.source_rate_hz]),
        "reply": None if cell.planned_reply is None else _hash(cell.planned_reply.identity()),
    }


def _part(parts: Parts, *names: str) -> Parts:
    found: Any = parts
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _key(one: Cell | Capture) -> str:
    return "|".join((one.item_id, one.variant_id or "", one.condition))


def _place(one: Cell | Capture) -> tuple[str, str, str | None, str, int]:
    return one.target, one.item_id, one.variant_id, one.condition, one.repeat


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
