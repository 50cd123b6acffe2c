"""What stands beside the null gain: shift test, equivalence, incomplete cells, how often a target acts at all. Pure.

The null gain itself is in `rig.stats.measures`; what makes it robust, in `rig.stats.robustness`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from captures.capture import Condition
from rig.scoring.cells import ScoredCell
from rig.stats.bootstrap import Estimate, Sample, difference, wilson
from rig.stats.joint import Floats, Joint, Row, Sums
from rig.stats.measures import CellValues, credits, own_shift, samples_of

MARGINS = (0.10, 0.05)
"""Equivalence is claimed within these, in credit."""


def upper_bound(null: Iterable[ScoredCell]) -> float | None:
    """Upper 95 % bound of a words-only target's own audio − twin; None where there is none (one item, equal means).

    Where no cell differs at all, the bound is Wilson's on the share of items that might.
    """
    samples = samples_of(own_shift(null))
    estimate = difference(samples)
    if estimate is None or estimate.items < 2:
        return None
    if not any(sample.value for sample in samples):
        return wilson(0, estimate.items)[1]
    return estimate.hi


def shift(cells: Iterable[ScoredCell], bound: float) -> Estimate | None:
    """Own audio − twin on cue-bearing cells, less `bound`; tested against 0."""
    samples = samples_of(own_shift(cells))
    return difference(Sample(sample.value - bound, sample.item, sample.repeat) for sample in samples)


def equivalent(estimate: Estimate, margin: float) -> bool | None:
    """Whether the 90 % interval lies inside ±`margin`; None without one."""
    if estimate.lo90 is None or estimate.hi90 is None:
        return None
    return -margin < estimate.lo90 and estimate.hi90 < margin


def incomplete_gain(cells: Iterable[ScoredCell], null: Iterable[ScoredCell]) -> tuple[Estimate | None, int]:
    """The null gain from whatever was measured, not cell by cell, and how many cells lack one of the four parts.

    Mean audio − mean twin of the target, less that of the null; repeats are averaged within a cell. None where one of
    the parts was never measured.
    """
    cells, null = list(cells), list(null)
    parts: Mapping[str, CellValues] = {
        "own_audio": credits(cells, Condition.AUDIO),
        "own_twin": credits(cells, Condition.TEXT_TWIN),
        "null_audio": credits(null, Condition.AUDIO),
        "null_twin": credits(null, Condition.TEXT_TWIN),
    }
    # A twin answers for all variants of its item; which of them are cells of the bank's audio, the clips say.
    clips = sorted(set(parts["own_audio"]) | set(parts["null_audio"]))
    rows, incomplete = [], 0
    for clip in clips:
        values = {"cells": 1.0}
        for name, credit in parts.items():
            if clip in credit:
                values |= {name: sum(credit[clip].values()) / len(credit[clip]), f"{name}_n": 1.0}
        rows.append(Row(clip[0], 0, values))
        incomplete += any(clip not in credit for credit in parts.values())

    def gain(sums: Sums) -> Floats:
        own_audio, own_twin, null_audio, null_twin = (sums.mean(name, f"{name}_n") for name in parts)
        return (own_audio - own_twin) - (null_audio - null_twin)

    return Joint(rows).estimate(gain, "cells", tested=True), incomplete


def acts(cells: Iterable[ScoredCell], condition: Condition) -> list[Sample]:
    """1 where any tool was called, else 0: on all audio cells, or once per text twin."""
    found: dict[tuple[str, str, int], float] = {}
    for cell in cells:
        if cell.condition is condition and cell.headline and cell.action is not None:
            variant = cell.variant_id if condition is Condition.AUDIO else ""
            found[cell.item_id, variant, cell.repeat] = float(bool(cell.action.called))
    return [Sample(value, item, repeat) for (item, _, repeat), value in found.items()]


def acts_more_on_audio(cells: Iterable[ScoredCell], items: Collection[str]) -> tuple[float | None, Estimate | None]:
    """On `items`: how often the twin acts, and by how much more often the clips are acted on, item by item."""
    cells = [cell for cell in cells if cell.item_id in items]
    twin: dict[str, list[float]] = {}
    for sample in acts(cells, Condition.TEXT_TWIN):
        twin.setdefault(sample.item, []).append(sample.value)
    more = [
        Sample(sample.value - sum(twin[sample.item]) / len(twin[sample.item]), sample.item, sample.repeat)
        for sample in acts(cells, Condition.AUDIO)
        if sample.item in twin
    ]
    rates = [value for values in twin.values() for value in values]
    return (sum(rates) / len(rates) if rates else None), difference(more)
