"""Scored cells of all targets → does each gain survive other choices? Pure. All of it is exploratory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from captures.capture import Capture, Condition
from rig.bank.models import Bank, CueKind, Item
from rig.report.families import corrected
from rig.report.model import TargetReport, Tested
from rig.report.null_model import Measure, Robustness
from rig.report.null_tests import Cells, as_one, measure_of
from rig.scoring.harm import HarmCell, audio_only
from rig.scoring.second_turn import second_credit
from rig.stats.bootstrap import Estimate, difference
from rig.stats.measures import CellValues, credits, minus, own_shift, samples_of
from rig.stats.robustness import Group, left_out, penalised

COLUMNS: Mapping[str, str] = {
    "neutral": "on neutral cells",
    "over_reaction_subtracted": "excess over-\nreaction off",
    "without_masked_word": "without\nmasked words",
    "without_legacy": "without\nlegacy items",
    "every_null": "over every\nnull",
    "follow_up": "second turn\nscored",
    "stacked": "all\nstacked",
}
"""Column → its heading. Stacked: first turn, no legacy item, over every null."""

_NOT_COMMON = "no identical cell with the null"


def robustness(
    reports: Sequence[TargetReport],
    cells: Cells,
    harm: Mapping[str, Sequence[HarmCell]],
    captures: Mapping[str, Sequence[Capture]],
    against: Mapping[str, Mapping[str, Tested]],
    nulls: Sequence[str],
    contestants: Sequence[str],
    bank: Bank,
) -> dict[str, Robustness]:
    """By target, for those that have a gain over the first null. `against`: target → null → gain."""
    measured = [report for report in reports if against.get(report.name)]
    if not measured:
        return {}
    kinds = {report.name: measure_of(report) for report in measured}
    gains = {name: _gain(kinds[name], cells, name, nulls[0]) for name in kinds}
    notes: dict[str, dict[str, str]] = {name: {} for name in kinds}
    items = {item.id: item for item in bank.items}
    masked = {
        (item.id, variant.variant_id)
        for item in bank.items
        for variant in item.variants
        if bank.cue_kind(item, variant) is CueKind.MASKED_WORD
    }
    legacy = {item.id for item in bank.items if _is_legacy(bank, item)}
    over = {name: _over_reaction(own) for name, own in harm.items()}
    found: dict[str, dict[str, Tested | None]] = {name: {} for name in kinds}

    def column(name: str, estimate: Callable[[str], Estimate | str | None]) -> None:
        """`estimate`: target → its estimate, or why it has none."""
        tests: dict[str, Tested | None] = {}
        for target in kinds:
            made = estimate(target)
            if made is None or isinstance(made, str):
                notes[target][name] = made or _NOT_COMMON
            tests[target] = Tested(made, nulls[0]) if isinstance(made, Estimate) else None
        for target, tested in _corrected(tests, kinds, contestants, name).items():
            found[target][name] = tested

    column("neutral", lambda name: _difference(_gain(kinds[name], cells, name, nulls[0], neutral=True)))
    column(
        "over_reaction_subtracted",
        lambda name: (
            penalised(gains[name], minus(over[name], over[nulls[0]])) or "no clean clip in common with the null"
        ),
    )
    column("without_masked_word", lambda name: _without(gains[name], lambda cell: cell in masked, "masked word"))
    column("without_legacy", lambda name: _without(gains[name], lambda cell: cell[0] in legacy, "legacy item"))
    followed = {name: _followed(cells, captures, name, bank) for name in {*kinds, nulls[0]}}
    column("follow_up", lambda name: _followed_gain(kinds[name], followed[name], followed[nulls[0]]))
    stacked = _stacked(kinds, cells, nulls, contestants, legacy)
    for target in kinds:
        found[target]["every_null"] = as_one(against[target], nulls) if len(nulls) > 1 else None
        found[target]["stacked"] = stacked[target]
        if len(nulls) < 2:
            notes[target]["every_null"] = "there is one null"
        for name in ("every_null", "stacked"):
            if found[target][name] is None:
                notes[target].setdefault(name, _NOT_COMMON)
    ranges = {name: left_out(gains, group) for name, group in _groupings(bank, items).items()}
    return {
        target: Robustness(
            columns={name: found[target][name] for name in COLUMNS},
            notes=notes[target],
            left_out={name: by_target[target] for name, by_target in ranges.items()},
        )
        for target in kinds
    }


def _gain(kind: Measure, cells: Cells, name: str, null: str, *, neutral: bool = False) -> CellValues:
    if kind == "null gain":
        return minus(own_shift(cells[name], neutral=neutral), own_shift(cells[null], neutral=neutral))
    own, theirs = (credits(cells[one], Condition.AUDIO, neutral=neutral) for one in (name, null))
    return minus(own, theirs)


def _difference(values: CellValues) -> Estimate | None:
    return difference(samples_of(values))


def _without(gain: CellValues, leaves: Callable[[tuple[str, str]], bool], what: str) -> Estimate | str:
    kept = {cell: values for cell, values in gain.items() if not leaves(cell)}
    if len(kept) == len(gain):
        return f"no {what} among the cells"
    return _difference(kept) or f"every cell is a {what}"


def _is_legacy(bank: Bank, item: Item) -> bool:
    annotation = bank.annotation(item)
    return bool(item.legacy) or bool(annotation and annotation.legacy)


def _over_reaction(harm: Iterable[HarmCell]) -> CellValues:
    found: dict[tuple[str, str], dict[int, float]] = {}
    for one in audio_only(harm):
        if one.over_reaction is not None:
            found.setdefault((one.cell.item_id, one.cell.variant_id), {})[one.cell.repeat] = float(one.over_reaction)
    return found


def _followed(
    cells: Cells, captures: Mapping[str, Sequence[Capture]], name: str, bank: Bank
) -> tuple[CellValues, CellValues, int]:
    """Audio credit with that of the second turn in its place where one was measured, twin credit, number replaced."""
    audio = {cell: dict(values) for cell, values in credits(cells[name], Condition.AUDIO).items()}
    replaced = 0
    for capture in captures[name]:
        if capture.second_turn is None or capture.variant_id is None:
            continue
        credit, cell = second_credit(capture, bank), (capture.item_id, capture.variant_id)
        if credit is not None and capture.repeat in audio.get(cell, {}):
            audio[cell][capture.repeat] = credit
            replaced += 1
    return audio, credits(cells[name], Condition.TEXT_TWIN), replaced


def _followed_gain(
    kind: Measure, own: tuple[CellValues, CellValues, int], null: tuple[CellValues, CellValues, int]
) -> Estimate | str | None:
    if not own[2]:
        return "no second turn was measured"
    if kind == "level contrast":
        return _difference(minus(own[0], null[0]))
    return _difference(minus(minus(own[0], own[1]), minus(null[0], null[1])))


def _stacked(
    kinds: Mapping[str, Measure], cells: Cells, nulls: Sequence[str], contestants: Sequence[str], legacy: set[str]
) -> dict[str, Tested | None]:
    by_target: dict[str, dict[str, Tested]] = {name: {} for name in kinds}
    for null in nulls:
        tests: dict[str, Tested | None] = {}
        for name, kind in kinds.items():
            kept = {cell: own for cell, own in _gain(kind, cells, name, null).items() if cell[0] not in legacy}
            estimate = _difference(kept)
            tests[name] = Tested(estimate, null) if estimate else None
        for name, tested in _corrected(tests, kinds, contestants, f"stacked, {null}").items():
            if tested is not None:
                by_target[name][null] = tested
    return {name: as_one(gains, nulls) for name, gains in by_target.items()}


def _corrected(
    tests: Mapping[str, Tested | None], kinds: Mapping[str, Measure], contestants: Sequence[str], column: str
) -> dict[str, Tested | None]:
    """Corrected over the contestants that have the same measure."""
    done = dict(tests)
    for kind in sorted(set(kinds.values())):
        members = {name: tests[name] for name in contestants if kinds.get(name) == kind}
        done |= corrected(members, f"robustness, {kind}: {column}")[0]
    return done


def _groupings(bank: Bank, items: Mapping[str, Item]) -> dict[str, Group]:
    def family(item_id: str, _variant: str) -> str | None:
        annotation = bank.annotation(items[item_id])
        return annotation.family if annotation else None

    def sector(item_id: str, _variant: str) -> str | None:
        annotation = bank.annotation(items[item_id])
        return (annotation.sector if annotation else None) or items[item_id].domain

    def voice(item_id: str, variant_id: str) -> str | None:
        clip = bank.clip(items[item_id], items[item_id].variant(variant_id))
        return (clip.engine or None) if clip else None

    return {"family": family, "sector": sector, "voice vendor": voice}
