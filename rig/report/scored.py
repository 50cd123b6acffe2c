"""Runs read and scored against their bank, once: a report, its page, floors and a person's check all start from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.bank.models import Bank
from rig.report.runs import LoadedRun, ReportError, TargetRun, bank_of, load_run, targets_of
from rig.scoring.cells import ScoredCell, score_captures


@dataclass(frozen=True, slots=True)
class Scored:
    """Every target of some runs, with its scored cells."""

    loaded: tuple[LoadedRun, ...]
    bank: Bank
    targets: tuple[TargetRun, ...]
    cells: Mapping[str, Sequence[ScoredCell]]
    """By target."""
    warnings: tuple[str, ...]
    """A bank that has changed, settings that were mixed."""


def scored_runs(runs: Sequence[Path], bank: Bank | None = None) -> Scored:
    """Read and score run folders. `bank`: by default the one that the runs name.

    Raises:
        ReportError: no run, runs over different banks.
        RunFolderError: a folder that is no run or is damaged.
        BankError: the bank cannot be read.
        BankMismatchError: captures of items that the bank lacks.
    """
    if not runs:
        raise ReportError("no run given: name one or more run folders")
    return scored([load_run(path) for path in runs], bank)


def scored(loaded: Sequence[LoadedRun], bank: Bank | None = None) -> Scored:
    """As `scored_runs`, on runs that were read already."""
    bank, changed = bank_of(loaded, bank)
    targets, mixed = targets_of(loaded)
    roles = {target.name: target.role for target in targets}
    cells = {target.name: score_captures(target.captures, bank, roles) for target in targets}
    return Scored(tuple(loaded), bank, tuple(targets), cells, (*changed, *mixed))
