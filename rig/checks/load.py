"""Run folders → scored targets that limits can be judged on. Reads; changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from rig.bank.models import Bank
from rig.checks.judge import Measured
from rig.report.runs import ReportError, TargetRun, bank_of, load_run, targets_of
from rig.scoring.cells import score_captures
from rig.scoring.harm import harm_cells

CONTESTANT = "contestant"


@dataclass(frozen=True, slots=True)
class LoadedTargets:
    """The chosen targets of a run, their namesakes in the baseline, and what a reader must know of both."""

    targets: tuple[Measured, ...]
    baseline: Mapping[str, Measured]
    warnings: tuple[str, ...]


def load_targets(run: Path, baseline: Path | None, wanted: Sequence[str], bank: Bank | None = None) -> LoadedTargets:
    """Score the targets of `run` that match `wanted` (names or globs; none: every contestant).

    `bank`: by default the one that the run names, for the baseline as well.

    Raises:
        ReportError: nothing is named as `wanted` says, or no contestant; the baseline was made with another bank.
        RunFolderError, BankError, BankMismatchError: as a report on these runs would.
    """
    loaded = load_run(run)
    before = load_run(baseline) if baseline is not None else None
    bank, changed = bank_of([loaded] if before is None else [loaded, before], bank)
    targets, several = targets_of([loaded])
    chosen = [
        target
        for target in targets
        if (any(fnmatchcase(target.name, one) for one in wanted) if wanted else target.role == CONTESTANT)
    ]
    lacking = [one for one in wanted if not any(fnmatchcase(target.name, one) for target in chosen)]
    if lacking or not chosen:
        asked = ", ".join(lacking) or "a contestant"
        raise ReportError(f"{run}: no target is {asked}; there are: {', '.join(one.name for one in targets) or 'none'}")
    earlier, _ = targets_of([before]) if before is not None else ([], [])
    names = {target.name for target in chosen}
    return LoadedTargets(
        targets=tuple(_measured(target, bank) for target in chosen),
        baseline={target.name: _measured(target, bank) for target in earlier if target.name in names},
        warnings=tuple(dict.fromkeys((*changed, *several, *loaded.warnings, *(before.warnings if before else ())))),
    )


def _measured(target: TargetRun, bank: Bank) -> Measured:
    cells = score_captures(target.captures, bank, {target.name: target.role})
    return Measured(
        name=target.name,
        captures=target.captures,
        cells=cells,
        harm=harm_cells(cells, bank),
        void_limit_s=target.run.void_limit_s,
        unfinished=_unfinished(target),
    )


def _unfinished(target: TargetRun) -> int:
    """Planned cells without a finished capture; 0 where the run states no plan (imported runs)."""
    planned = target.run.section("planned").get(target.original)
    if not isinstance(planned, Mapping):
        return 0
    return max(0, sum(planned.values()) - sum(capture.finished for capture in target.captures))
