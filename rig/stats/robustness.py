"""Does a gain survive other choices? Excess over-reaction subtracted, each group of cells left out in turn. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rig.stats.bootstrap import LEVEL, SEED, Estimate, bootstrap_means, resample_weights
from rig.stats.joint import Floats, Joint, Row, Sums
from rig.stats.measures import CellValues, samples_of

Group = Callable[[str, str], str | None]
"""(item, variant) → the group that the cell belongs to; None where it belongs to none and always stays."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The range of a mean when each group is left out in turn."""

    groups: int
    lowest: float
    lowest_without: str
    highest: float
    highest_without: str
    lowest_lo: float | None
    """Lowest lower 95 % bound among them; None where any of them has no interval."""


def penalised(gain: CellValues, excess: CellValues) -> Estimate | None:
    """The mean gain less the mean excess over-reaction, where that is positive; None where either has no cell.

    Both are drawn by the same items; a draw with negative excess is given no bonus for it.
    """
    rows = [Row(one.item, one.repeat, {"gain": one.value, "gain_n": 1.0}) for one in samples_of(gain)]
    rows += [Row(one.item, one.repeat, {"over": one.value, "over_n": 1.0}) for one in samples_of(excess)]

    def statistic(sums: Sums) -> Floats:
        # NaN, where a draw has no clean clip, must come through.
        excess_rate = sums.mean("over", "over_n")
        kept: Floats = sums.mean("gain", "gain_n") - np.where(excess_rate < 0, 0.0, excess_rate)
        return kept

    return Joint(rows).estimate(statistic, "gain_n", tested=True)


def left_out(gains: Mapping[str, CellValues], group_of: Group) -> dict[str, LeftOut | None]:
    """By target; None where the target's cells lie in fewer than two groups."""
    found: dict[str, dict[str, tuple[float, float | None]]] = {name: {} for name in gains}
    groups = {name: {group for cell in gain if (group := group_of(*cell)) is not None} for name, gain in gains.items()}
    for group in sorted(set().union(*groups.values())) if groups else ():
        rest = {
            name: {cell: values for cell, values in sorted(gain.items()) if group_of(*cell) != group}
            for name, gain in gains.items()
            if group in groups[name] and len(groups[name]) > 1
        }
        for name, figures in _lower_bounds({name: gain for name, gain in rest.items() if gain}).items():
            found[name][group] = figures
    return {name: _range(figures) if figures else None for name, figures in found.items()}


def _range(figures: Mapping[str, tuple[float, float | None]]) -> LeftOut:
    least, most = (choose(sorted(figures), key=lambda group: figures[group][0]) for choose in (min, max))
    bounds = [lo for _, lo in figures.values()]
    known = [lo for lo in bounds if lo is not None]
    return LeftOut(
        groups=len(figures),
        lowest=figures[least][0],
        lowest_without=least,
        highest=figures[most][0],
        highest_without=most,
        lowest_lo=min(known) if len(known) == len(bounds) else None,
    )


def _lower_bounds(gains: Mapping[str, CellValues]) -> dict[str, tuple[float, float | None]]:
    """Target → mean and lower 95 % bound, as `difference` has them; targets measured on the same items together."""
    alike: dict[tuple[str, ...], dict[str, tuple[Floats, Floats]]] = defaultdict(dict)
    found: dict[str, tuple[float, float | None]] = {}
    for name, gain in gains.items():
        samples = samples_of(gain)
        items = sorted({one.item for one in samples})
        mean = sum(one.value for one in samples) / len(samples)
        if len(items) < 2:
            found[name] = (mean, None)
        elif len({one.repeat for one in samples}) > 1:
            found[name] = (mean, float(np.quantile(bootstrap_means(samples), (1 - LEVEL) / 2)))
        else:
            places = {item: index for index, item in enumerate(items)}
            where = np.array([places[one.item] for one in samples])
            sums = np.bincount(where, weights=[one.value for one in samples], minlength=len(items)).astype(np.float64)
            alike[tuple(items)][name] = (sums, np.bincount(where, minlength=len(items)).astype(np.float64))
            found[name] = (mean, None)
    for shared, parts in alike.items():
        weights, _ = resample_weights(len(shared), 1, SEED)
        drawn = weights @ np.column_stack([*(sums for sums, _ in parts.values()), *(n for _, n in parts.values())])
        means = drawn[:, : len(parts)] / drawn[:, len(parts) :]
        lows = np.quantile(means, (1 - LEVEL) / 2, axis=0)
        spreads = np.ptp(means, axis=0)
        for name, lo, spread in zip(parts, lows, spreads, strict=True):
            found[name] = (found[name][0], float(lo) if spread > 1e-12 else None)
    return found
