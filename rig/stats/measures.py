"""The measures of the scoring page, each as samples (value, item, repeat) ready for the bootstrap. Pure.

Every measure leaves out what is held back, invariant controls, and cells where nothing was measured. Paired measures
use identical cells only; a cell that lacks its partner is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from captures.capture import Condition
from rig.bank.models import Bank, CueKind, Item
from rig.scoring.cells import ScoredCell
from rig.scoring.probe import NoOption, Reading
from rig.stats.bootstrap import Sample

CellValues = Mapping[tuple[str, str], Mapping[int, float]]
"""(item, variant) → repeat → value."""


def credit(cells: Iterable[ScoredCell], *, neutral: bool, cue_kind: CueKind | None = None) -> list[Sample]:
    """Credit on audio cells: on neutral ones, or on cue-bearing ones (of one kind of cue, if given)."""
    return [
        Sample(cell.action.credit, cell.item_id, cell.repeat)
        for cell in cells
        if cell.condition is Condition.AUDIO
        and cell.headline
        and cell.action is not None
        and cell.neutral is neutral
        and cue_kind in (None, cell.cue_kind)
    ]


def selection_credit(cells: Iterable[ScoredCell]) -> list[Sample]:
    """Credit by the tool's name alone, on cue-bearing audio cells."""
    return [
        Sample(cell.action.selection_credit, cell.item_id, cell.repeat)
        for cell in _cue_bearing_audio(cells)
        if cell.action is not None
    ]


def first_call_credit(cells: Iterable[ScoredCell]) -> list[Sample]:
    """Credit of the first call alone, on cue-bearing audio cells."""
    return [
        Sample(cell.action.first_call_credit, cell.item_id, cell.repeat)
        for cell in _cue_bearing_audio(cells)
        if cell.action is not None
    ]


def control_credit(cells: Iterable[ScoredCell]) -> list[Sample]:
    """Credit on the audio cells of invariant controls, which no other measure counts."""
    return [
        Sample(cell.action.credit, cell.item_id, cell.repeat)
        for cell in cells
        if cell.condition is Condition.AUDIO and cell.control and not cell.held and cell.action is not None
    ]


def paired(first: Iterable[Sample], second: Iterable[Sample]) -> list[Sample]:
    """Differences between samples of one value per item and repeat, where both have one."""
    partners: dict[str, dict[int, float]] = defaultdict(dict)
    for sample in second:
        partners[sample.item][sample.repeat] = sample.value
    return [
        Sample(sample.value - _at(partners[sample.item], sample.repeat), sample.item, sample.repeat)
        for sample in first
        if sample.item in partners
    ]


def audio_minus_twin(cells: Iterable[ScoredCell]) -> list[Sample]:
    """Credit on the clip minus credit on the bare words, on cue-bearing cells."""
    return samples_of(own_shift(cells))


def null_gain(cells: Iterable[ScoredCell], null: Iterable[ScoredCell]) -> list[Sample]:
    """(audio − twin) of the target − (audio − twin) of the words-only target, on identical cue-bearing cells."""
    return samples_of(minus(own_shift(cells), own_shift(null)))


def level_contrast(cells: Iterable[ScoredCell], null: Iterable[ScoredCell]) -> list[Sample]:
    """Audio of the target − audio of the words-only target, on identical cue-bearing cells."""
    return samples_of(minus(credits(cells, Condition.AUDIO), credits(null, Condition.AUDIO)))


def own_shift(cells: Iterable[ScoredCell], *, neutral: bool | None = False) -> CellValues:
    """Audio − twin by cell; `neutral` as in `credits`."""
    cells = list(cells)
    audio, twin = (credits(cells, one, neutral=neutral) for one in (Condition.AUDIO, Condition.TEXT_TWIN))
    return minus(audio, twin)


def credits(cells: Iterable[ScoredCell], condition: Condition, *, neutral: bool | None = False) -> CellValues:
    """Credit by cell, on cue-bearing cells (or on neutral ones, or with None on both)."""
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for cell in cells:
        wanted = neutral is None or cell.neutral is neutral
        if wanted and cell.condition is condition and cell.headline and cell.action is not None:
            found[cell.item_id, cell.variant_id][cell.repeat] = cell.action.credit
    return dict(found)


def minus(first: CellValues, second: CellValues) -> CellValues:
    """Differences on the cells that both have."""
    return {
        cell: {repeat: value - _at(second[cell], repeat) for repeat, value in repeats.items()}
        for cell, repeats in first.items()
        if cell in second
    }


def samples_of(values: CellValues) -> list[Sample]:
    """The values, ready for the bootstrap."""
    return [Sample(value, item, repeat) for (item, _), repeats in values.items() for repeat, value in repeats.items()]


def both_right(
    cells: Iterable[ScoredCell],
    bank: Bank,
    runnable: Iterable[tuple[str, str]],
    condition: Condition = Condition.AUDIO,
) -> list[Sample]:
    """Per item: 1 where every runnable variant is a strict pass, else 0.

    Items with at least two runnable variants whose golds differ; one whose runnable variants were not all measured is
    left out. `runnable`: (item, variant) pairs that have a clip. On text twins it must be 0 throughout (self-check).
    """
    passes: dict[str, dict[int, dict[str, bool]]] = defaultdict(lambda: defaultdict(dict))
    for cell in cells:
        if cell.condition is condition and cell.headline and cell.action is not None:
            passes[cell.item_id][cell.repeat][cell.variant_id] = cell.action.passed
    wanted: dict[str, set[str]] = defaultdict(set)
    for item_id, variant_id in runnable:
        wanted[item_id].add(variant_id)
    return [
        Sample(float(all(passed[variant] for variant in wanted[item_id])), item_id, repeat)
        for item_id, repeats in passes.items()
        if _golds_differ(bank.item(item_id), wanted[item_id])
        for repeat, passed in repeats.items()
        if wanted[item_id] <= passed.keys()
    ]


def probe_accuracy(cells: Iterable[ScoredCell], reading: Reading, no_option: NoOption) -> list[Sample]:
    """Probe answers right, on cue-bearing and neutral cells alike."""
    return [
        Sample(value, cell.item_id, cell.repeat)
        for cell in cells
        if cell.headline and cell.probe is not None and (value := cell.probe.value(reading, no_option)) is not None
    ]


def recognition(cells: Iterable[ScoredCell], no_option: NoOption = "wrong") -> list[Sample]:
    """Probe answers right on cue-bearing clips, strictly read."""
    return [
        Sample(value, cell.item_id, cell.repeat)
        for cell in cells
        if cell.headline
        and not cell.neutral
        and cell.probe is not None
        and (value := cell.probe.value("strict", no_option)) is not None
    ]


def pairs_recognised(
    cells: Iterable[ScoredCell], runnable: Iterable[tuple[str, str]], no_option: NoOption = "wrong"
) -> list[Sample]:
    """Per item with at least two runnable variants: 1 where the probe is right on every one of them, else 0.

    Strictly read. An item whose runnable variants were not all asked about is left out, and with `missing` also one on
    which an answer names no option.
    """
    right: dict[str, dict[int, dict[str, bool]]] = defaultdict(lambda: defaultdict(dict))
    for cell in cells:
        if cell.headline and cell.probe is not None and (value := cell.probe.value("strict", no_option)) is not None:
            right[cell.item_id][cell.repeat][cell.variant_id] = bool(value)
    wanted: dict[str, set[str]] = defaultdict(set)
    for item_id, variant_id in runnable:
        wanted[item_id].add(variant_id)
    return [
        Sample(float(all(heard[variant] for variant in wanted[item_id])), item_id, repeat)
        for item_id, repeats in right.items()
        if len(wanted[item_id]) > 1
        for repeat, heard in repeats.items()
        if wanted[item_id] <= heard.keys()
    ]


def both_right_items(bank: Bank, runnable: Iterable[tuple[str, str]]) -> int:
    """How many items `both_right` is about: at least two runnable variants whose golds differ, no control, not held."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for item_id, variant_id in runnable:
        wanted[item_id].add(variant_id)
    found = 0
    for item_id, variants in wanted.items():
        item = bank.item(item_id)
        annotation = bank.annotation(item)
        held = bool(item.held) or bool(annotation and annotation.held)
        found += not item.is_control and not held and _golds_differ(item, variants)
    return found


def _cue_bearing_audio(cells: Iterable[ScoredCell]) -> Iterator[ScoredCell]:
    return (cell for cell in cells if cell.condition is Condition.AUDIO and cell.headline and not cell.neutral)


def _golds_differ(item: Item, variants: set[str]) -> bool:
    golds = [variant.gold for variant in item.variants if variant.variant_id in variants]
    return any((gold.tool, gold.args) != (golds[0].tool, golds[0].args) for gold in golds[1:])


def _at(repeats: Mapping[int, float], repeat: int) -> float:
    """The partner of the same repeat, else the mean of the partner's repeats (it may have fewer)."""
    return repeats[repeat] if repeat in repeats else sum(repeats.values()) / len(repeats)
