"""A leading group chosen by credit, and what choosing it on the outcome costs: half-split cross-fitting. Pure.

In each split the items fall into two halves at random. The group is chosen on one half and measured on the other, and
the other way round; the two figures are averaged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rig.stats.bootstrap import SEED, Sample
from rig.stats.joint import Floats, ratio

SPLITS = 200


@dataclass(frozen=True, slots=True)
class HeldOut:
    """One figure of a group: in sample, and over the splits (None where undefined)."""

    in_sample: float | None
    held_out: float | None
    largest_move: float | None


def leaders(credit: Mapping[str, Sequence[Sample]], k: int) -> tuple[str, ...]:
    """The `k` names of highest mean, ties by name; fewer than `k` where there are fewer."""
    means = {name: sum(one.value for one in own) / len(own) for name, own in credit.items() if own}
    return tuple(sorted(means, key=lambda name: (-means[name], name))[:k])


def cross_fitted(
    credit: Mapping[str, Sequence[Sample]],
    figures: Mapping[str, Mapping[str, Sequence[Sample]]],
    k: int,
    splits: int = SPLITS,
    seed: int = SEED,
) -> tuple[float | None, dict[str, HeldOut]]:
    """How often a half chooses the same group, and each figure's held-out value.

    `credit`: name → what the group is chosen by. `figures`: figure → name → its samples; pooled over the group.
    """
    names = sorted(name for name, own in credit.items() if own)
    group = set(leaders(credit, k))
    items = sorted({one.item for name in names for one in credit[name]})
    if len(items) < 2 or len(names) <= k:
        return None, {name: HeldOut(_pooled(own, group), None, None) for name, own in figures.items()}
    first = _halves(len(items), splits, seed)
    halves = np.concatenate([first, 1 - first])  # each split both ways: chosen on the half, measured on the rest
    chosen = _chosen(_by_item(credit, names, items), halves, k)
    same = (chosen == np.array([float(name in group) for name in names])).all(axis=1)
    found = {}
    for figure, samples in figures.items():
        sums, counts = _by_item(samples, names, items)
        outside = 1 - halves
        values = ratio((outside @ sums.T * chosen).sum(axis=1), (outside @ counts.T * chosen).sum(axis=1))
        both = (values[:splits] + values[splits:]) / 2
        defined, point = both[np.isfinite(both)], _pooled(samples, group)
        known = len(defined) > 0 and point is not None
        found[figure] = HeldOut(
            point,
            float(defined.mean()) if known else None,
            float(np.abs(defined - point).max()) if known and point is not None else None,
        )
    return float(same.mean()), found


def _halves(items: int, splits: int, seed: int) -> Floats:
    """1 for an item of the first half, shape (splits, items)."""
    generator = np.random.default_rng(seed)
    ranks = generator.permuted(np.tile(np.arange(items), (splits, 1)), axis=1)
    halves: Floats = (ranks < items // 2).astype(np.float64)
    return halves


def _chosen(by_item: tuple[Floats, Floats], halves: Floats, k: int) -> Floats:
    """1 for a name that is among the k best on that half, shape (halves, names). Ties: the earlier name."""
    sums, counts = by_item
    means = ratio(halves @ sums.T, halves @ counts.T)
    order = np.argsort(-np.nan_to_num(means, nan=-1.0), axis=1, kind="stable")[:, :k]
    chosen = np.zeros_like(means)
    np.put_along_axis(chosen, order, 1.0, axis=1)
    return chosen


def _by_item(
    samples: Mapping[str, Sequence[Sample]], names: Sequence[str], items: Sequence[str]
) -> tuple[Floats, Floats]:
    """Sums and numbers of values, each of shape (names, items)."""
    places = {item: index for index, item in enumerate(items)}
    sums, counts = np.zeros((len(names), len(items))), np.zeros((len(names), len(items)))
    for row, name in enumerate(names):
        for one in samples.get(name, ()):
            if one.item in places:
                sums[row, places[one.item]] += one.value
                counts[row, places[one.item]] += 1
    return sums, counts


def _pooled(samples: Mapping[str, Sequence[Sample]], group: set[str]) -> float | None:
    values = [one.value for name in sorted(group) for one in samples.get(name, ())]
    return sum(values) / len(values) if values else None
