"""`rig replay`: a run's stored frames through today's code, and how its captures would differ."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from captures.capture import Capture
from captures.cassette import CassetteError
from captures.durable import sync_folder, write_file
from rig.replay.derive import Difference, derive, differences
from rig.replay.repair import repair
from rig.replay.source import ReplayError, StoredRun

_SHOWN = 160
_MOST_SHOWN = 200


@dataclass
class _Outcome:
    replayed: int = 0
    changed: dict[str, tuple[Capture, Capture, list[Difference]]] = field(default_factory=dict)
    """By identity: as stored, as derived, and the differences."""
    failed: list[str] = field(default_factory=list)


def replay_run(run: Path, *, apply: bool, as_json: bool) -> int:
    """Derive every finished capture of `run` anew; the exit code: 0 equal (or applied), 1 different, 2 not all derived.

    Raises:
        RunFolderError, BankError, ConfigError, ReplayError: the run cannot be read again.
        FolderLockedError: `apply`, and another rig is writing there.
    """
    stored = StoredRun(run)
    outcome = _replayed(stored)
    applied = _apply(stored, outcome) if apply and outcome.changed else None
    if as_json:
        print(json.dumps(_plain(outcome, applied)))
    else:
        _tell(outcome, applied)
    if outcome.failed:
        return 2
    return 1 if outcome.changed and applied is None else 0


def repair_run(run: Path, *, as_json: bool) -> int:
    """Make damaged lines anew; the exit code: 0 all made anew, 2 some set aside.

    Raises:
        RunFolderError, BankError, ConfigError, ReplayError: the run cannot be read again.
        FolderLockedError: another rig is writing there.
    """
    done = repair(run)
    lost = sum(one.capture is None for one in done.repairs)
    if as_json:
        told = [{"line": one.line, "made_anew": one.capture is not None, "told": one.told} for one in done.repairs]
        print(json.dumps({"format": 1, "repairs": told, "kept_as": done.kept_as}))
    else:
        for one in done.repairs:
            print(f"line {one.line}: {one.told}")
        print(f"rig: {len(done.repairs)} damaged lines, {len(done.repairs) - lost} made anew", file=sys.stderr)
        if done.kept_as is not None:
            print(f"rig: the file before is {done.kept_as}", file=sys.stderr)
        if lost:
            print("rig: run again with the same --out: the cells of the others are open", file=sys.stderr)
    return 2 if lost else 0


def _replayed(stored: StoredRun) -> _Outcome:
    outcome = _Outcome()
    config = stored.prepared.resolved.config
    for identity, capture in stored.folder.finished().items():
        try:
            call = stored.call(capture)
            derived = derive(call, stored.client(capture.target), config)
        except (ReplayError, CassetteError) as error:
            outcome.failed.append(f"{_name(capture)}: {error}")
            continue
        outcome.replayed += 1
        found = differences(capture, derived)
        if found:
            outcome.changed[identity] = (capture, derived, found)
    return outcome


def _apply(stored: StoredRun, outcome: _Outcome) -> str:
    """Write the derived captures in place of the stored ones; the name under which the old file is kept."""
    folder = stored.folder
    with folder.lock():
        reading = folder.read()
        number = 1
        while (aside := folder.path / f"captures.before-replay-{number}.jsonl").exists():
            number += 1
        lines = []
        for capture in reading.captures:
            changed = outcome.changed.get(capture.identity)
            kept = changed[1] if changed is not None and capture == changed[0] else capture
            lines.append(json.dumps(kept.model_dump(), separators=(",", ":")).encode())
        os.link(folder.captures_path, aside)  # the old file stays whole under its new name, whatever happens next
        write_file(folder.captures_path, b"\n".join(lines) + b"\n")
        sync_folder(folder.path)
    return aside.name


def _name(capture: Capture) -> str:
    where = f"{capture.item_id}/{capture.variant_id}" if capture.variant_id else capture.item_id
    return f"{capture.target}, {where}, {capture.condition}" + (f", {capture.repeat}" if capture.repeat else "")


def _plain(outcome: _Outcome, applied: str | None) -> dict[str, Any]:
    return {
        "format": 1,
        "replayed": outcome.replayed,
        "equal": outcome.replayed - len(outcome.changed),
        "failed": outcome.failed,
        "applied": applied is not None,
        "kept_as": applied,
        "differences": [
            {
                "identity": identity,
                "target": stored.target,
                "item_id": stored.item_id,
                "variant_id": stored.variant_id,
                "condition": stored.condition,
                "repeat": stored.repeat,
                "fields": [asdict(one) for one in found],
            }
            for identity, (stored, _, found) in outcome.changed.items()
        ],
    }


def _tell(outcome: _Outcome, applied: str | None) -> None:
    shown = 0
    for stored, _, found in outcome.changed.values():
        for one in found:
            if shown < _MOST_SHOWN:
                print(f"{_name(stored)}: {one.field}: {_short(one.stored)} → {_short(one.derived)}")
            shown += 1
    if shown > _MOST_SHOWN:
        print(f"… and {shown - _MOST_SHOWN} more; --json has all")
    for line in outcome.failed:
        print(f"rig: not derived: {line}", file=sys.stderr)
    print(
        f"rig: {outcome.replayed} captures replayed, {outcome.replayed - len(outcome.changed)} equal, "
        f"{len(outcome.changed)} different, {len(outcome.failed)} not derived",
        file=sys.stderr,
    )
    if applied is not None:
        print(f"rig: written anew; the file before is {applied}", file=sys.stderr)
    elif outcome.changed:
        print("rig: --apply writes what today's code derives", file=sys.stderr)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
