"""What the way of serving does: realtime minus file mode within named pairs, on identical cells; and steps of models.

A pair is two ways to reach one family's model; a step is two of its generations, or two rungs of a ladder, compared
the same way. Pairs and steps come from the config that a run was made with, pairs also from the command line or from a
`family:` that has one realtime and one file-mode contestant. Which measures there are, and on which cells, is fixed by
`MEASURES`; how it reads is `rig.report.serving_tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from threadpoolctl import threadpool_limits

from captures.capture import Capture, Condition
from rig.bank.models import Bank
from rig.report.model import LatencySummary
from rig.report.runs import LoadedRun, ReportError, TargetRun, bank_of, load_run, targets_of
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


@dataclass(frozen=True, slots=True)
class _Asked:
    kind: Literal["serving", "step"]
    name: str
    first: TargetRun
    second: TargetRun


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
    asked, notes = _asked(loaded, targets, pairs)
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
            dict.fromkeys([*changed, *mixed, *notes, *_cascades(asked), *(w for run in loaded for w in run.warnings)])
        ),
    )


# Which pairs


def _asked(
    runs: Sequence[LoadedRun], targets: Sequence[TargetRun], named: Sequence[tuple[str, str]]
) -> tuple[list[_Asked], list[str]]:
    notes: list[str] = []
    found = [_pair(targets, None, realtime, file) for realtime, file in named]
    if not found:
        for run in runs:
            found += [_pair(targets, run, *names) for names in _configured_pairs(run)]
    if not found:
        found, notes = _by_family(targets)
    steps = []
    for run in runs:
        for name, members in _configured_steps(run):
            own = [_target(targets, run, member) for member in members]
            steps += [_Asked("step", name, one, other) for one, other in pairwise(own)]
    if not found and not steps:
        known = ", ".join(target.name for target in targets) or "none"
        raise ReportError(
            "no pair of realtime and file mode: name them with --pair REALTIME=FILE, with `pairs:` in the config, or "
            f"give both one `family:` (targets: {known})"
        )
    return found + steps, notes


def _pair(targets: Sequence[TargetRun], run: LoadedRun | None, realtime: str, file: str) -> _Asked:
    return _Asked("serving", "", _target(targets, run, file), _target(targets, run, realtime))


def _target(targets: Sequence[TargetRun], run: LoadedRun | None, name: str) -> TargetRun:
    """By its name in the report, or by that in its own run where only one has it."""
    found = [one for one in targets if one.name == name and (run is None or one.run is run)]
    found = found or [one for one in targets if one.original == name and (run is None or one.run is run)]
    if len(found) != 1:
        known = ", ".join(target.name for target in targets) or "none"
        raise ReportError(f"{'several targets' if found else 'no target'} {name!r}; there are: {known}")
    return found[0]


def _configured_pairs(run: LoadedRun) -> Iterator[tuple[str, str]]:
    for entry in _list(run.section("config").get("pairs")):
        if isinstance(entry, Mapping) and "realtime" in entry and "file" in entry:
            yield str(entry["realtime"]), str(entry["file"])


def _configured_steps(run: LoadedRun) -> Iterator[tuple[str, list[str]]]:
    for entry in _list(run.section("config").get("steps")):
        if isinstance(entry, Mapping):
            yield str(entry.get("name", "")), [str(name) for name in _list(entry.get("targets"))]


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _by_family(targets: Sequence[TargetRun]) -> tuple[list[_Asked], list[str]]:
    """One pair per family with one contestant of either mode; families with more are named and not guessed at."""
    families: dict[str, dict[bool, list[TargetRun]]] = {}
    for target in targets:
        family, streams = target.settings.get("family"), _streams(target)
        if family and streams is not None and target.role == "contestant":
            families.setdefault(str(family), {}).setdefault(streams, []).append(target)
    pairs, notes = [], []
    for family, by_mode in families.items():
        realtime, file = by_mode.get(True, []), by_mode.get(False, [])
        if len(realtime) == len(file) == 1:
            pairs.append(_Asked("serving", "", file[0], realtime[0]))
        elif realtime and file:
            names = ", ".join(target.name for target in (*realtime, *file))
            notes.append(f"family {family} has several realtime or file-mode targets ({names}): name its pairs")
    return pairs, notes


def _streams(target: TargetRun) -> bool | None:
    able = target.settings.get("capabilities")
    found = able.get("streams_audio") if isinstance(able, Mapping) else None
    return found if isinstance(found, bool) else None


def _cascades(asked: Iterable[_Asked]) -> list[str]:
    names = dict.fromkeys(
        one.name
        for pair in asked
        if pair.kind == "serving"
        for one in (pair.first, pair.second)
        if one.settings.get("adapter") == "cascade"
    )
    what = "its tool-choosing model gets a transcript, so the difference is not one of serving"
    return [f"{name} is a cascade: {what}" for name in names]


# What a pair comes to


def _served(pair: _Asked, scored: Mapping[str, Sequence[ScoredCell]], bank: Bank) -> ServedPair:
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


def _measured_by(key: _Key, pair: _Asked, sides: Sequence[Mapping[_Key, bool]]) -> str | None:
    for side, target in zip(sides, (pair.first, pair.second), strict=True):
        if side.get(key):
            return target.name
    return None


def _refused(pair: _Asked, shared: Mapping[Condition, int], cells: Mapping[Condition, int]) -> str:
    if pair.kind == "serving" and _streams(pair.second) is False:
        return f"{pair.second.name} is served in file mode: it cannot be the realtime side"
    if pair.kind == "serving" and _streams(pair.first) is True:
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
