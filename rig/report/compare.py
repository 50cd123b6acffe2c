"""Two runs compared cell by cell: what differs on cells that both measured. Cells that only one has enter nothing.

Any two targets can be paired: two versions of an agent, one agent in two modes. Whether a target beats the words alone
is another question, and `rig.report.build` answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from captures.capture import Capture, Condition
from captures.latency import latencies
from rig.bank.models import Bank
from rig.report.as_json import tested_json
from rig.report.layout import ABSENT, Table, mean, number, p_value, table
from rig.report.model import Tested
from rig.report.runs import LoadedRun, ReportError, TargetRun, bank_of, load_run, targets_of
from rig.report.timing import ORIGINS
from rig.scoring.cells import ScoredCell, score_captures
from rig.scoring.harm import HarmCell, Outcome, Situation, audio_only, harm_cells
from rig.stats.bootstrap import Sample, difference
from rig.stats.holm import holm

_Values = dict[tuple[str, str], dict[int, float]]
"""(item, variant) → repeat → value."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """One measure on the cells that both targets were measured on."""

    measure: str
    first: float
    """Mean over the shared cells; likewise …"""
    second: float
    change: Tested
    """Second minus first."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two targets and all that both were measured on."""

    first: str
    second: str
    contrasts: tuple[Contrast, ...]
    nothing_shared: tuple[str, ...]
    """Measures that have no cell in common."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One run against another."""

    first: str
    second: str
    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Side:
    captures: Sequence[Capture]
    cells: Sequence[ScoredCell]
    clips: Sequence[HarmCell]
    void_limit_s: float


def compare(first: Path, second: Path, pairs: Sequence[tuple[str, str]] = (), bank: Bank | None = None) -> Comparison:
    """Compare targets of one name, or those that `pairs` names (first run's, second run's).

    Without `pairs` and without a common name the only contestants of both runs are compared.

    Raises:
        ReportError: nothing to pair, an unknown target, different banks.
        RunFolderError, BankError, BankMismatchError: as a report on these runs would.
    """
    runs = load_run(first), load_run(second)
    bank, changed = bank_of(runs, bank)
    ours, theirs = ({target.name: target for target in _targets(run)} for run in runs)
    chosen = list(pairs) or _pairs(ours, theirs)
    for name, found, run in [
        *((one, ours, runs[0]) for one, _ in chosen),
        *((other, theirs, runs[1]) for _, other in chosen),
    ]:
        if name not in found:
            raise ReportError(f"{run.path}: no target {name}; there are: {', '.join(found) or 'none'}")
    made = [_pair(ours[one], theirs[other], bank) for one, other in chosen]
    left = sorted((set(ours) | set(theirs)) - {name for pair in chosen for name in pair})
    lines = [f"not compared, since only one of the runs has it: {', '.join(left)}"] if left and not pairs else []
    return Comparison(
        first=str(first),
        second=str(second),
        pairs=tuple(made),
        warnings=(*dict.fromkeys([*changed, *lines, *runs[0].warnings, *runs[1].warnings]),),
    )


def _targets(run: LoadedRun) -> list[TargetRun]:
    return targets_of([run])[0]


def _pairs(ours: Mapping[str, TargetRun], theirs: Mapping[str, TargetRun]) -> list[tuple[str, str]]:
    if common := [(name, name) for name in ours if name in theirs]:
        return common
    first, second = ([name for name, one in own.items() if one.role == "contestant"] for own in (ours, theirs))
    if len(first) == len(second) == 1:
        return [(first[0], second[0])]
    raise ReportError(
        f"no target has the same name in both runs ({', '.join(ours)}; {', '.join(theirs)}): name them with --pair A=B"
    )


def _pair(first: TargetRun, second: TargetRun, bank: Bank) -> Pair:
    sides = [_side(one, bank) for one in (first, second)]
    contrasts, empty = [], []
    for measure, values in _measures().items():
        ours, theirs = (values(side) for side in sides)
        if not ours and not theirs:
            continue
        shared = list(_shared(ours, theirs))
        change = difference([Sample(after - before, item, repeat) for item, repeat, before, after in shared])
        if change is None:
            empty.append(measure)
            continue
        before_mean = sum(before for _, _, before, _ in shared) / len(shared)
        after_mean = sum(after for _, _, _, after in shared) / len(shared)
        contrasts.append(Contrast(measure, before_mean, after_mean, Tested(change, first.name)))
    corrected = holm([one.change.estimate.p for one in contrasts])
    return Pair(
        first=first.name,
        second=second.name,
        contrasts=tuple(
            replace(one, change=replace(one.change, family="measures of this pair", holm_p=p))
            for one, p in zip(contrasts, corrected, strict=True)
        ),
        nothing_shared=tuple(empty),
    )


def _side(target: TargetRun, bank: Bank) -> _Side:
    cells = score_captures(target.captures, bank, {target.name: target.role})
    return _Side(target.captures, cells, audio_only(harm_cells(cells, bank)), target.run.void_limit_s)


def _measures() -> dict[str, Callable[[_Side], _Values]]:
    return {
        "credit, cue-bearing": lambda side: _credit(side, neutral=False),
        "credit, neutral": lambda side: _credit(side, neutral=True),
        "unsafe execution": lambda side: _rate(side, Situation.PROTECTIVE, Outcome.UNSAFE_EXECUTION),
        "over-trigger": lambda side: _rate(side, Situation.CLEAN, Outcome.OVER_TRIGGER),
        "probe, strict, missing": _probe,
        **{f"{name}, s": _seconds(name) for name in ORIGINS},
    }


def _credit(side: _Side, *, neutral: bool) -> _Values:
    return _values(
        (cell, cell.credit)
        for cell in side.cells
        if cell.condition is Condition.AUDIO and cell.headline and cell.neutral is neutral
    )


def _rate(side: _Side, situation: Situation, outcome: Outcome) -> _Values:
    return _values((one.cell, float(one.outcome is outcome)) for one in side.clips if one.situation is situation)


def _probe(side: _Side) -> _Values:
    return _values((cell, cell.probe.value("strict", "missing")) for cell in side.cells if cell.headline and cell.probe)


def _values(rows: Iterator[tuple[ScoredCell, float | None]]) -> _Values:
    found: _Values = {}
    for cell, value in rows:
        if value is not None:
            found.setdefault((cell.item_id, cell.variant_id), {})[cell.repeat] = value
    return found


def _seconds(name: str) -> Callable[[_Side], _Values]:
    def values(side: _Side) -> _Values:
        found: _Values = {}
        for one in side.captures:
            if one.ending.scored and one.variant_id is not None:
                for latency in latencies(one, side.void_limit_s):
                    if latency.name == name and not latency.void:
                        found.setdefault((one.item_id, one.variant_id), {})[one.repeat] = latency.seconds
        return found

    return values


def _shared(ours: _Values, theirs: _Values) -> Iterator[tuple[str, int, float, float]]:
    """Item, repeat, value before, value after. A repeat that the first lacks is held against the mean of its own."""
    for key in sorted(ours.keys() & theirs.keys()):
        before = ours[key]
        for repeat, after in theirs[key].items():
            yield key[0], repeat, before.get(repeat, sum(before.values()) / len(before)), after


def comparison_tables(found: Comparison) -> list[Table]:
    """One table per pair."""
    return [_table(found, pair) for pair in found.pairs]


def _table(found: Comparison, pair: Pair) -> Table:
    rows = []
    for one in pair.contrasts:
        digits = 3 if one.measure.endswith(", s") else 2
        rows.append(
            (
                one.measure,
                number(one.first, digits),
                number(one.second, digits),
                mean(one.change.estimate, signed=True),
                p_value(one.change.estimate.p),
                p_value(one.change.holm_p),
            )
        )
    rows += [(measure, ABSENT, ABSENT, "no cell in common", ABSENT, ABSENT) for measure in pair.nothing_shared]
    return table(
        f"{pair.first} → {pair.second}",
        ("measure", "first", "second", "second − first", "p", "Holm p"),
        rows,
        f"First: {found.first}; second: {found.second}. Means over cells that both measured, and the mean difference "
        "cell by cell [95 % item-clustered bootstrap interval] n cells; p by inverting it, Holm over this table. "
        "Times that our own lateness spoilt are left out; where one run did not call there is no time to compare. "
        "Exploratory.",
    )


def comparison_json(found: Comparison) -> dict[str, Any]:
    """Plain data; no number is NaN."""
    return {
        "format": 1,
        "first": found.first,
        "second": found.second,
        "pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                "measures": {
                    one.measure: {"first": one.first, "second": one.second, "change": tested_json(one.change)}
                    for one in pair.contrasts
                },
                "nothing_shared": list(pair.nothing_shared),
            }
            for pair in found.pairs
        ],
        "warnings": list(found.warnings),
    }
