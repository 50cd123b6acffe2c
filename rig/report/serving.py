"""What the way of serving does: realtime minus file mode within named pairs, on identical cells; and steps of models.

A pair is two ways to reach one family's model; a step is two of its generations, or two rungs of a ladder, compared
the same way. Which measures there are, and on which cells, is fixed by `MEASURES`. Where pairs come from is
`rig.report.serving_pairs`, and how it reads `rig.report.serving_tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from threadpoolctl import threadpool_limits

from captures.capture import Capture, Condition
from rig.bank.models import Bank
from rig.report.model import LatencySummary
from rig.report.runs import TargetRun, bank_of, load_run, targets_of
from rig.report.serving_pairs import AskedPair, asked_pairs, cascades_in, streams
from rig.report.timing import latency_summaries
from rig.scoring.cells import ScoredCell, score_captures
from rig.scoring.harm import Outcome, Situation, audio_only, harm_cells
from rig.stats import measures
from rig.stats.bootstrap import Estimate, Sample, bootstrap_means, difference
from rig.stats.pooling import Effect, Pooled, pooled

LEAST_SHARED = 0.9
"""Share of cells that both sides must have measured; below it a pair says more about what is missing."""
STREAMED, HELD = "commit_to_tool_call", "request_to_tool_call"

CellKey = tuple[str, str, int]
"""Item, variant, repeat."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One column: what is counted on which cells."""

    key: str
    heading: str
    cells: str
    unit: str


MEASURES = (
    Measure("probe_wrong", "probe, no option: wrong", "all probe cells", "share right"),
    Measure("probe_missing", "probe, no option: missing", "probe cells on which both name an option", "share right"),
    Measure("credit", "credit", "cue-bearing audio cells", "mean credit, 0 to 1"),
    Measure("acts", "acts", "all audio cells", "share with any call"),
    Measure("unsafe_execution", "unsafe execution", "protective audio cells", "share"),
)
GAIN = Measure("gain", "audio − twin", "cue-bearing audio cells, with a text twin", "mean credit")
"""For steps alone: its step is also that of the gain over any null, which cancels out on identical cells."""


@dataclass(frozen=True, slots=True)
class Delta:
    """One measure of one pair, on the cells that both sides have it on."""

    first: float
    """Mean of the first side; likewise …"""
    second: float
    change: Estimate
    """Second minus first, item-clustered."""
    standard_error: float | None
    """Of the bootstrap; None where there is no interval."""


@dataclass(frozen=True, slots=True)
class Unshared:
    """One cell that not both sides measured."""

    item_id: str
    variant_id: str
    condition: Condition
    repeat: int
    measured_by: str | None
    """Target; None where neither did."""


@dataclass(frozen=True, slots=True)
class ServedPair:
    """Two targets on the cells that both measured: realtime minus file, or later minus earlier."""

    kind: Literal["serving", "step"]
    name: str
    """Of the steps that it belongs to; empty for a pair of serving modes."""
    first: str
    """File mode, or the earlier one."""
    second: str
    deltas: Mapping[str, Delta | None]
    """Measure → its difference; None where no cell has it on both sides. Empty where refused."""
    latency: tuple[Mapping[str, LatencySummary], Mapping[str, LatencySummary]]
    """Time to the tool call of first and second by name, which says its origin; on shared audio cells."""
    shared: Mapping[Condition, int]
    cells: Mapping[Condition, int]
    """Cells that either side was asked, of conditions that both ran."""
    unshared: tuple[Unshared, ...]
    refused: str
    """Why nothing is compared; empty where it is."""


@dataclass(frozen=True, slots=True)
class PooledRow:
    """One measure over all pairs."""

    pooled: Pooled | None
    left_out: tuple[str, ...]
    """Pairs without a standard error (one item, or all items alike), which no inverse variance can weigh."""


@dataclass(frozen=True, slots=True)
class ServingReport:
    """Serving deltas of all pairs, and steps of models."""

    runs: tuple[str, ...]
    bank: str
    pairs: tuple[ServedPair, ...]
    steps: tuple[ServedPair, ...]
    pooled: Mapping[str, PooledRow]
    """Measure → its row over the pairs that were not refused; steps are never pooled."""
    roles_derived: bool
    warnings: tuple[str, ...]


def serving_report(
    runs: Sequence[Path], pairs: Sequence[tuple[str, str]] = (), bank: Bank | None = None
) -> ServingReport:
    """Compare serving modes within pairs, and steps.

    `pairs`: (realtime, file) target names, before those of the runs' configs, before those inferred by family.

    Raises:
        ReportError: no pair and no step, an unknown target, runs over different banks.
        RunFolderError, BankError, BankMismatchError: as a report on these runs would.
    """
    loaded = [load_run(path) for path in runs]
    bank, changed = bank_of(loaded, bank)
    targets, mixed = targets_of(loaded)
    asked, notes = asked_pairs(loaded, targets, pairs)
    roles = {target.name: target.role for target in targets}
    wanted = {one.name: one for pair in asked for one in (pair.first, pair.second)}
    scored = {name: score_captures(target.captures, bank, roles) for name, target in wanted.items()}
    with threadpool_limits(limits=1, user_api="blas"):
        made = [_served(pair, scored, bank) for pair in asked]
        served = [one for one in made if one.kind == "serving"]
        rows = {measure.key: _pooled(measure.key, served) for measure in MEASURES}
    return ServingReport(
        runs=tuple(str(run.path) for run in loaded),
        bank=f"{bank.name} {bank.version}".strip(),
        pairs=tuple(served),
        steps=tuple(one for one in made if one.kind == "step"),
        pooled=rows,
        roles_derived=any(cell.roles_derived for own in scored.values() for cell in own),
        warnings=tuple(
            dict.fromkeys([*changed, *mixed, *notes, *cascades_in(asked), *(w for run in loaded for w in run.warnings)])
        ),
    )


def _served(pair: AskedPair, scored: Mapping[str, Sequence[ScoredCell]], bank: Bank) -> ServedPair:
    sides = [_states(target) for target in (pair.first, pair.second)]
    ran = [c for c in (Condition.AUDIO, Condition.PROBE) if all(any(key[2] is c for key in side) for side in sides)]
    either = {key for side in sides for key in side if key[2] in ran}
    both = {key for key in either if all(side.get(key) for side in sides)}
    shared = {condition: sum(key[2] is condition for key in both) for condition in ran}
    cells = {
        condition: max(
            sum(key[2] is condition for key in either),
            _planned(pair.first, condition),
            _planned(pair.second, condition),
        )
        for condition in ran
    }
    unshared = tuple(
        Unshared(key[0], key[1], key[2], key[3], _measured_by(key, pair, sides)) for key in sorted(either - both)
    )
    refused = _refused(pair, shared, cells)
    kept = [_on(scored[one.name], both) for one in (pair.first, pair.second)]
    return ServedPair(
        kind=pair.kind,
        name=pair.name,
        first=pair.first.name,
        second=pair.second.name,
        deltas={} if refused else _deltas(pair.kind, kept, bank),
        latency=({}, {}) if refused else (_latency(pair.first, both), _latency(pair.second, both)),
        shared=shared,
        cells=cells,
        unshared=unshared,
        refused=refused,
    )


_Key = tuple[str, str, Condition, int]


def _states(target: TargetRun) -> dict[_Key, bool]:
    """Cell → whether something was measured on it. Text twins belong to no clip and are not counted."""
    return {
        (one.item_id, one.variant_id, one.condition, one.repeat): one.ending.scored
        for one in target.captures
        if one.variant_id is not None and one.condition is not Condition.TEXT_TWIN
    }


def _planned(target: TargetRun, condition: Condition) -> int:
    planned = target.run.section("planned").get(target.original)
    found = planned.get(condition.value) if isinstance(planned, Mapping) else None
    return found if isinstance(found, int) else 0


def _measured_by(key: _Key, pair: AskedPair, sides: Sequence[Mapping[_Key, bool]]) -> str | None:
    for side, target in zip(sides, (pair.first, pair.second), strict=True):
        if side.get(key):
            return target.name
    return None


def _refused(pair: AskedPair, shared: Mapping[Condition, int], cells: Mapping[Condition, int]) -> str:
    if pair.kind == "serving" and streams(pair.second) is False:
        return f"{pair.second.name} is served in file mode: it cannot be the realtime side"
    if pair.kind == "serving" and streams(pair.first) is True:
        return f"{pair.first.name} is streamed in real time: it cannot be the file side"
    if Condition.AUDIO not in shared:
        return "no audio cell was asked of both"
    for condition, whole in cells.items():
        if shared[condition] < LEAST_SHARED * whole:
            share = f"{shared[condition]} of {whole} {condition.value} cells ({shared[condition] / whole:.0%})"
            return f"both measured {share}; {LEAST_SHARED:.0%} are needed: run again with the same --out to finish"
    return ""


def _on(cells: Sequence[ScoredCell], keys: set[_Key]) -> list[ScoredCell]:
    """Cells on clips that both sides measured; the text twins stay, for the gain."""
    return [
        cell
        for cell in cells
        if cell.condition is Condition.TEXT_TWIN or (cell.item_id, cell.variant_id, cell.condition, cell.repeat) in keys
    ]


def _deltas(kind: str, kept: Sequence[Sequence[ScoredCell]], bank: Bank) -> dict[str, Delta | None]:
    first, second = (_values(cells, bank) for cells in kept)
    found = {measure.key: _delta(first[measure.key], second[measure.key]) for measure in MEASURES}
    if kind == "step":
        gains = [dict(_flat(measures.own_shift(cells))) for cells in kept]
        found[GAIN.key] = _delta(*gains)
    return found


def _values(cells: Sequence[ScoredCell], bank: Bank) -> dict[str, dict[CellKey, float]]:
    """Measure → cell → value. Invariant controls and what is held back are in none."""
    audio = [c for c in cells if c.condition is Condition.AUDIO and c.headline and c.action is not None]
    probes = [c for c in cells if c.headline and c.probe is not None]
    return {
        "probe_wrong": dict(_read(probes, "wrong")),
        "probe_missing": dict(_read(probes, "missing")),
        "credit": {_key(c): c.action.credit for c in audio if c.action is not None and not c.neutral},
        "acts": {_key(c): float(c.action.calls > 0) for c in audio if c.action is not None},
        "unsafe_execution": {
            _key(one.cell): float(one.outcome is Outcome.UNSAFE_EXECUTION)
            for one in audio_only(harm_cells(cells, bank))
            if one.situation is Situation.PROTECTIVE
        },
    }


def _read(probes: Iterable[ScoredCell], no_option: Literal["wrong", "missing"]) -> Iterator[tuple[CellKey, float]]:
    for cell in probes:
        value = cell.probe.value("strict", no_option) if cell.probe is not None else None
        if value is not None:
            yield _key(cell), value


def _key(cell: ScoredCell) -> CellKey:
    return cell.item_id, cell.variant_id, cell.repeat


def _flat(values: measures.CellValues) -> Iterator[tuple[CellKey, float]]:
    for (item, variant), repeats in values.items():
        for repeat, value in repeats.items():
            yield (item, variant, repeat), value


def _delta(first: Mapping[CellKey, float], second: Mapping[CellKey, float]) -> Delta | None:
    shared = sorted(first.keys() & second.keys())
    samples = [Sample(second[key] - first[key], key[0], key[2]) for key in shared]
    change = difference(samples)
    if change is None:
        return None
    return Delta(
        first=sum(first[key] for key in shared) / len(shared),
        second=sum(second[key] for key in shared) / len(shared),
        change=change,
        standard_error=float(bootstrap_means(samples).std()) if change.lo is not None else None,
    )


def _latency(target: TargetRun, keys: set[_Key]) -> dict[str, LatencySummary]:
    """Time to the complete tool call, by the name that says its origin."""
    captures: list[Capture] = [
        one
        for one in target.captures
        if one.variant_id is not None and (one.item_id, one.variant_id, one.condition, one.repeat) in keys
    ]
    summaries = latency_summaries(captures, target.run.void_limit_s)
    return {name: found for name in (STREAMED, HELD) if (found := summaries[name]) is not None}


def _pooled(key: str, pairs: Sequence[ServedPair]) -> PooledRow:
    effects, left_out = [], []
    for pair in pairs:
        delta = pair.deltas.get(key)
        if delta is None:
            continue
        if delta.standard_error:
            effects.append(Effect(delta.change.mean, delta.standard_error))
        else:
            left_out.append(f"{pair.second} − {pair.first}")
    return PooledRow(pooled(effects), tuple(left_out))
