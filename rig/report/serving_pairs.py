"""Which targets make a pair of serving modes, or a step of models: from the command line, the config, or `family:`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from rig.report.runs import LoadedRun, ReportError, TargetRun


@dataclass(frozen=True, slots=True)
class AskedPair:
    """Two targets to compare: file mode and realtime, or the earlier and the later."""

    kind: Literal["serving", "step"]
    name: str
    first: TargetRun
    second: TargetRun


def asked_pairs(
    runs: Sequence[LoadedRun], targets: Sequence[TargetRun], named: Sequence[tuple[str, str]]
) -> tuple[list[AskedPair], list[str]]:
    """Pairs and steps to compare, and one line for each family that could not be paired.

    `named`: (realtime, file) names, before those of the runs' configs, before families.

    Raises:
        ReportError: neither pair nor step, or an unknown target.
    """
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
            steps += [AskedPair("step", name, one, other) for one, other in pairwise(own)]
    if not found and not steps:
        known = ", ".join(target.name for target in targets) or "none"
        raise ReportError(
            "no pair of realtime and file mode: name them with --pair REALTIME=FILE, with `pairs:` in the config, or "
            f"give both one `family:` (targets: {known})"
        )
    return found + steps, notes


def _pair(targets: Sequence[TargetRun], run: LoadedRun | None, realtime: str, file: str) -> AskedPair:
    return AskedPair("serving", "", _target(targets, run, file), _target(targets, run, realtime))


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


def _by_family(targets: Sequence[TargetRun]) -> tuple[list[AskedPair], list[str]]:
    """One pair per family with one contestant of either mode; families with more are named and not guessed at."""
    families: dict[str, dict[bool, list[TargetRun]]] = {}
    for target in targets:
        family, live = target.settings.get("family"), streams(target)
        if family and live is not None and target.role == "contestant":
            families.setdefault(str(family), {}).setdefault(live, []).append(target)
    pairs, notes = [], []
    for family, by_mode in families.items():
        realtime, file = by_mode.get(True, []), by_mode.get(False, [])
        if len(realtime) == len(file) == 1:
            pairs.append(AskedPair("serving", "", file[0], realtime[0]))
        elif realtime and file:
            names = ", ".join(target.name for target in (*realtime, *file))
            notes.append(f"family {family} has several realtime or file-mode targets ({names}): name its pairs")
    return pairs, notes


def streams(target: TargetRun) -> bool | None:
    """Whether the caller's audio is streamed to the target; None where its run does not say (imported ones)."""
    able = target.settings.get("capabilities")
    found = able.get("streams_audio") if isinstance(able, Mapping) else None
    return found if isinstance(found, bool) else None


def cascades_in(asked: Iterable[AskedPair]) -> list[str]:
    """Says which sides of serving pairs are no audio models."""
    names = dict.fromkeys(
        one.name
        for pair in asked
        if pair.kind == "serving"
        for one in (pair.first, pair.second)
        if one.settings.get("adapter") == "cascade"
    )
    what = "its tool-choosing model gets a transcript, so the difference is not one of serving"
    return [f"{name} is a cascade: {what}" for name in names]
