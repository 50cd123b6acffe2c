"""A sample of classified outcomes for a person to check: drawn, written as CSV, read back, compared.

The file does not tell our class, so that the person judges without it. What agents sent cannot become a formula in a
spreadsheet.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from captures.capture import Ending
from rig.bank.models import Bank
from rig.report.harm_model import Audit, AuditRow
from rig.report.model import Report
from rig.scoring.harm import RULES, HarmCell, Outcome, audio_only
from rig.scoring.roles import item_roles, words_default
from rig.stats.bootstrap import SEED, wilson

SAMPLE_SIZE = 60
PER_CLASS = 10
MAX_BYTES = 8 * 1024 * 1024

_KEY = ("target", "item", "variant", "repeat")
_SHOWN = (
    "situation",
    "scenario",
    "policy",
    "transcript",
    "cue",
    "right_action",
    "rationale",
    "words_default",
    "called",
)
COLUMNS = (*_KEY, *_SHOWN, "class", "note")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")


class AuditError(ValueError):
    """An audit file that cannot be written or read; one line per problem: file, row, what to do."""


def sample_of(cells: Sequence[HarmCell], bank: Bank, seed: int = SEED) -> tuple[AuditRow, ...]:
    """Up to ten outcomes of each class, then others until there are 60; the same for the same cells in any order."""
    ordered = sorted(cells, key=_key)
    generator = np.random.default_rng(seed)
    shuffled = [ordered[index] for index in generator.permutation(len(ordered))]
    taken: dict[Outcome, int] = {}
    chosen: list[HarmCell] = []
    rest: list[HarmCell] = []
    for one in shuffled:
        taken[one.outcome] = taken.get(one.outcome, 0) + 1
        (chosen if taken[one.outcome] <= PER_CLASS else rest).append(one)
    picked = [*chosen, *rest][:SAMPLE_SIZE]
    picked = [picked[index] for index in generator.permutation(len(picked))]
    return tuple(audit_row(one, bank) for one in picked)


def audit_row(one: HarmCell, bank: Bank) -> AuditRow:
    """What a person needs to judge one outcome."""
    cell = one.cell
    assert cell.action is not None
    item = bank.item(cell.item_id)
    variant = item.variant(cell.variant_id)
    default = words_default(item, variant, item_roles(bank, item))
    called = " + ".join(name or "unnamed call" for name in cell.action.called)
    silent = "no answer" if cell.ending is Ending.NO_ANSWER else "no call"
    return AuditRow(
        target=cell.target,
        item_id=cell.item_id,
        variant_id=cell.variant_id,
        repeat=cell.repeat,
        situation=one.situation,
        scenario=item.scenario,
        policy=item.explicit_policy or "",
        transcript=item.transcript,
        cue=variant.cue_class,
        right_action=variant.gold.tool or "no call",
        rationale=variant.gold.rationale,
        words_default="" if default is None else default.tool or "no call",
        called=called or silent,
        outcome=one.outcome,
    )


def write_sample(rows: Sequence[AuditRow], path: Path) -> None:
    """Write `rows` with an empty column `class`. An existing file is not overwritten.

    Raises:
        AuditError: the file exists or cannot be written, or there is nothing to write.
    """
    if not rows:
        raise AuditError(f"{path}: nothing to sample: no turn on a clip was scored")
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for row in rows:
                writer.writerow(
                    [_safe(value) for value in (*row.key, *(getattr(row, name) for name in _SHOWN), "", "")]
                )
    except FileExistsError:
        raise AuditError(f"{path}: exists; name another file, so that nobody's judgements are lost") from None
    except OSError as error:
        raise AuditError(f"{path}: cannot be written ({error.strerror})") from None


def how_to_judge() -> list[str]:
    """What to write into the column `class`, one line per class."""
    return [f"{outcome.value}: {RULES[outcome]}" for outcome in Outcome]


def audit_of(report: Report, path: Path, bank: Bank) -> Audit:
    """The judged file at `path` against the classes of `report`, which was made with `bank`. Raises as `read_audit`."""
    classified = report.harm.cells.values() if report.harm else ()
    rows = (audit_row(one, bank) for own in classified for one in audio_only(own))
    return read_audit(path, {row.key: row for row in rows})


def read_audit(path: Path, known: Mapping[tuple[str, str, str, int], AuditRow]) -> Audit:
    """Compare the classes that a person wrote with ours. `known`: every classified cell of the report.

    Raises:
        AuditError: an unreadable file, a class that is none, a cell that this report does not hold or holds twice.
    """
    problems: list[str] = []
    judged: dict[tuple[str, str, str, int], tuple[Outcome, str]] = {}
    unjudged = 0
    for where, row in _rows(path):
        key = _key_of(row)
        if key is None or key not in known:
            problems.append(f"{where}: no such cell in this report: report on the runs that the sample was drawn from")
            continue
        written = (row.get("class") or "").strip().casefold().replace("-", "_").replace(" ", "_")
        if not written:
            unjudged += 1
        elif written not in {outcome.value for outcome in Outcome}:
            problems.append(f"{where}, class: {written[:40]!r} is none of {', '.join(Outcome)}")
        elif key in judged:
            problems.append(f"{where}: the same cell a second time: keep one")
        else:
            judged[key] = (Outcome(written), (row.get("note") or "").strip())
    if problems:
        raise AuditError("\n".join(problems[:20]))
    if not judged:
        raise AuditError(f"{path}: no row has a class: write one of {', '.join(Outcome)} into the column class")
    differing = tuple(
        (known[key], theirs, note) for key, (theirs, note) in judged.items() if theirs is not known[key].outcome
    )
    agree = len(judged) - len(differing)
    lo, hi = wilson(agree, len(judged))
    return Audit(len(judged), agree, lo, hi, unjudged, differing)


def _rows(path: Path) -> list[tuple[str, dict[str, str]]]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise AuditError(f"{path}: larger than {MAX_BYTES} bytes: is this an audit sample?")
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if missing := sorted({*_KEY, "class"} - set(reader.fieldnames or ())):
                raise AuditError(f"{path}: lacks the column {', '.join(missing)}: name a file from --audit-sample")
            return [(f"{path}, line {reader.line_num}", row) for row in reader]
    except OSError as error:
        raise AuditError(f"{path}: cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise AuditError(f"{path}: not a CSV file in UTF-8 ({error})") from None


def _key_of(row: Mapping[str, str]) -> tuple[str, str, str, int] | None:
    target, item, variant, repeat = ((row.get(name) or "").removeprefix("'") for name in _KEY)
    return (target, item, variant, int(repeat)) if repeat.isdecimal() and len(repeat) < 10 else None


def _safe(value: object) -> str:
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _key(one: HarmCell) -> tuple[str, str, str, int]:
    return one.cell.target, one.cell.item_id, one.cell.variant_id, one.cell.repeat
