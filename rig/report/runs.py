"""Run folders as a report needs them: per target its settings, its attempts, and one capture per cell.

Reads; changes nothing. A key that `run.json` lacks (imported runs) has no value here rather than a guess.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from captures.capture import Capture
from captures.events import FailureKind
from captures.latency import VOID_LIMIT_S
from captures.run_folder import RunFolder
from rig.bank.loader import load_bank
from rig.bank.models import Bank
from rig.scoring.digest import bank_digest


class ReportError(ValueError):
    """A report that cannot be made; one line that says why and what to do."""


@dataclass(frozen=True, slots=True)
class TargetRun:
    """One target's part of one run, under a name that is unique in the report."""

    name: str
    original: str
    """Its name in its own run."""
    settings: Mapping[str, Any]
    """Its entry in `run.json`; empty where that has none."""
    run: LoadedRun
    captures: tuple[Capture, ...]
    """The last capture of each cell, finished or not, renamed to `name`."""
    attempts: int
    retried: int

    @property
    def role(self) -> str:
        """Its role; a contestant unless `run.json` says otherwise."""
        return str(self.settings.get("role") or "contestant")


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """One run folder's content."""

    path: Path
    run_json: Mapping[str, Any]
    captures: tuple[Capture, ...]
    warnings: tuple[str, ...]

    @property
    def chunk_ms(self) -> int | None:
        """Length of a chunk of caller audio; None where nothing was streamed by us."""
        return self.run_json.get("chunk_ms")

    @property
    def pace(self) -> float | None:
        """1.0 is real time; None where nothing was streamed by us."""
        return self.run_json.get("pace")

    @property
    def void_limit_s(self) -> float:
        """Lateness of ours above which a latency is void."""
        return float(self.run_json.get("void_limit_s", VOID_LIMIT_S))

    @property
    def configured(self) -> list[str]:
        """Target names in the config's order; empty where the run had none."""
        targets = self.section("config").get("targets")
        entries = targets if isinstance(targets, list) else []
        return [str(entry["name"]) for entry in entries if isinstance(entry, Mapping) and "name" in entry]

    def section(self, name: str) -> Mapping[str, Any]:
        """A mapping of `run.json`, empty where it is absent."""
        found = self.run_json.get(name)
        return found if isinstance(found, Mapping) else {}


def load_run(path: Path) -> LoadedRun:
    """One run. Raises `RunFolderError` when it cannot be read."""
    folder = RunFolder.open(path)
    reading = folder.read()
    torn = reading.torn
    warnings = (
        [f"{folder.captures_path}, line {torn.line}: a torn last line was left out; its cell is not in this report"]
        if torn
        else []
    )
    warnings += _not_heard(reading.captures)
    return LoadedRun(path, folder.run_json, tuple(reading.captures), tuple(warnings))


def _not_heard(captures: Iterable[Capture]) -> list[str]:
    """A line per target whose provider ignored the caller's audio: such rows are void, whatever was answered."""
    deaf = Counter(one.target for one in captures if one.error and one.error.kind == FailureKind.AUDIO_NOT_HEARD)
    return [
        f"{target}: audio not heard in {count} attempt{'s' if count > 1 else ''}; void, and counted as infrastructure "
        "errors (the captures' `error.message` says by what)"
        for target, count in deaf.items()
    ]


def targets_of(runs: Sequence[LoadedRun]) -> tuple[list[TargetRun], list[str]]:
    """Every target of every run, and warnings. One name in two runs becomes `name@run` in each."""
    found: list[tuple[str, LoadedRun]] = []
    for run in runs:
        names = [*run.configured, *run.section("targets"), *(capture.target for capture in run.captures)]
        found += [(name, run) for name in dict.fromkeys(names)]
    counts: dict[str, int] = {}
    for name, _ in found:
        counts[name] = counts.get(name, 0) + 1
    targets, warnings = [], []
    for name, run in found:
        label = name if counts[name] == 1 else f"{name}@{run.path.resolve().name}"
        target, several = _target(name, label, run)
        targets.append(target)
        if several:
            warnings.append(
                f"{label}: {several} cells were run with different settings in this folder; the last ones count"
            )
    if len({target.name for target in targets}) < len(targets):
        raise ReportError("the same run folder, or two of one name, are given twice: name each run once")
    return targets, warnings


def bank_of(runs: Sequence[LoadedRun], bank: Bank | None) -> tuple[Bank, list[str]]:
    """The bank that the runs were made with, or `bank` where given, and a warning per run that had another text.

    Raises:
        ReportError: the runs name different banks, or one that is not where `run.json` says.
        BankError: the bank cannot be read.
    """
    if bank is None:
        digests = {run.section("bank").get("digest") for run in runs} - {None}
        if len(digests) > 1:
            raise ReportError(
                "the runs were made with different banks, or different versions of its items: report on them one by "
                "one, or name the bank to score them all by with --bank"
            )
        bank = load_bank(*_location(runs[0]))
        undated = [run for run in runs if run.section("bank").get("digest") is None]
        if other := [run for run in undated if _location(run)[0] != _location(runs[0])[0]]:
            raise ReportError(
                f"{other[0].path}: names another bank than {runs[0].path} and not which version of its items: "
                "report on them one by one, or name the bank to score them all by with --bank"
            )
    digest = bank_digest(bank)
    return bank, [
        f"{run.path}: its bank has changed since the run; scores are by the bank as it is now"
        for run in runs
        if run.section("bank").get("digest") not in (None, digest)
    ]


def _location(run: LoadedRun) -> tuple[str | Path, str | None]:
    path = run.section("bank").get("path") or run.section("config").get("bank")
    if not isinstance(path, str):
        raise ReportError(f"{run.path / 'run.json'}: names no bank; give the bank's folder")
    if path != "demo" and not Path(path).is_dir():
        raise ReportError(f"{run.path / 'run.json'}: its bank {path!r} is not here; give the bank's folder")
    return path, run.section("config").get("engine")


def _target(name: str, label: str, run: LoadedRun) -> tuple[TargetRun, int]:
    """The target, and the number of cells that have captures under several identities."""
    own = [capture for capture in run.captures if capture.target == name]
    last: dict[str, Capture] = {}
    attempts: dict[str, int] = {}
    for capture in own:
        attempts[capture.identity] = attempts.get(capture.identity, 0) + 1
        known = last.get(capture.identity)
        if known is None or not known.finished:
            last[capture.identity] = capture
    cells: dict[tuple[object, ...], Capture] = {}
    for capture in last.values():
        cells[capture.item_id, capture.variant_id, capture.condition, capture.repeat] = capture
    settings = run.section("targets").get(name)
    target = TargetRun(
        name=label,
        original=name,
        settings=settings if isinstance(settings, Mapping) else {},
        run=run,
        captures=tuple(
            capture if name == label else capture.model_copy(update={"target": label}) for capture in cells.values()
        ),
        attempts=len(own),
        retried=sum(attempts[capture.identity] > 1 for capture in cells.values()),
    )
    return target, len(last) - len(cells)
