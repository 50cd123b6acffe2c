"""Other rules than the null test for who acts on sound: whom they credit, on how many they differ, and ranks. Pure.

The range of the number that differ draws the items for all targets together and keeps the null test's verdicts and any
threshold as they are; a rule that is a significance test itself has none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rig.stats.bootstrap import LEVEL, SEED, Sample, resample_weights
from rig.stats.joint import Floats, ratio

_FEWEST_RANKED = 3


@dataclass(frozen=True, slots=True)
class Ranks:
    """Spearman's rank correlation, with its 95 % bootstrap interval; None where it is undefined."""

    rho: float | None
    lo: float | None
    hi: float | None


class Means:
    """Means of several measures of the same targets over one common draw of items."""

    def __init__(self, measures: Mapping[str, Mapping[str, Sequence[Sample]]], seed: int = SEED) -> None:
        """`measures`: measure → target → its samples (repeats of an item together)."""
        every = [one for of in measures.values() for own in of.values() for one in own]
        self._items = {item: place for place, item in enumerate(sorted({one.item for one in every}))}
        self.point: dict[str, dict[str, float]] = {}
        self._drawn: dict[str, dict[str, Floats]] = {}
        weights = resample_weights(len(self._items), 1, seed)[0] if len(self._items) > 1 else None
        for name, of in measures.items():
            known = {target: own for target, own in of.items() if own}
            self.point[name] = {target: math.fsum(one.value for one in own) / len(own) for target, own in known.items()}
            if weights is None or not known:
                self._drawn[name] = {}
                continue
            columns = [column for own in known.values() for column in self._columns(own)]
            drawn = weights @ np.column_stack(columns)
            means = ratio(drawn[:, 0::2], drawn[:, 1::2])
            self._drawn[name] = {target: means[:, index] for index, target in enumerate(known)}

    def disagreement(
        self, measure: str, threshold: float, above: Mapping[str, bool], *, strictly: bool
    ) -> tuple[float | None, float | None]:
        """The range of how many targets are on the other side of `threshold` than `above` says.

        `strictly`: credited beyond the threshold, else at it too.
        """
        drawn = {target: values for target, values in self._drawn[measure].items() if target in above}
        if not drawn:
            return None, None
        means = np.column_stack(list(drawn.values()))
        defined = np.isfinite(means).all(axis=1)
        if not defined.any():
            return None, None
        credited = means[defined] > threshold if strictly else means[defined] >= threshold
        differing = (credited != np.array([above[target] for target in drawn])).sum(axis=1)
        lo, hi = np.quantile(differing, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return float(lo), float(hi)

    def ranks(self, first: str, second: str, targets: Sequence[str]) -> Ranks:
        """Do two measures rank the targets alike? Only those that have both are ranked."""
        both = [one for one in targets if one in self.point[first] and one in self.point[second]]
        if len(both) < _FEWEST_RANKED:
            return Ranks(None, None, None)
        rho = _spearman(*(np.array([[self.point[name][one] for one in both]]) for name in (first, second)))[0]
        if not np.isfinite(rho):
            return Ranks(None, None, None)
        if not self._drawn[first] or not self._drawn[second]:
            return Ranks(float(rho), None, None)
        drawn = [np.column_stack([self._drawn[name][one] for one in both]) for name in (first, second)]
        defined = np.isfinite(drawn[0]).all(axis=1) & np.isfinite(drawn[1]).all(axis=1)
        rhos = _spearman(drawn[0][defined], drawn[1][defined])
        rhos = rhos[np.isfinite(rhos)]
        if not len(rhos):
            return Ranks(float(rho), None, None)
        lo, hi = np.quantile(rhos, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        if hi - lo < 1e-12:  # no draw changed the order, which is no certainty
            return Ranks(float(rho), None, None)
        return Ranks(float(rho), float(lo), float(hi))

    def _columns(self, samples: Sequence[Sample]) -> tuple[Floats, Floats]:
        where = np.array([self._items[one.item] for one in samples])
        values = np.array([one.value for one in samples])
        size = len(self._items)
        sums = np.bincount(where, values, size).astype(np.float64)
        counts = np.bincount(where, minlength=size).astype(np.float64)
        return sums, counts


def best_threshold(values: Mapping[str, float], above: Mapping[str, bool]) -> float | None:
    """The value of a target that, as a threshold, differs from `above` least; the lowest of equals.

    None where crediting nobody does better than any. Chosen after the fact, so it flatters the measure.
    """
    compared = [target for target in values if target in above]
    fewest = sum(above[target] for target in compared)
    best = None
    for threshold in sorted({values[target] for target in compared}):
        differing = sum((values[target] >= threshold) != above[target] for target in compared)
        if differing < fewest or (differing == fewest and best is None):
            fewest, best = differing, threshold
    return best


def _spearman(first: Floats, second: Floats) -> Floats:
    """Row by row, shape (rows, targets) each; ties share their mean rank; NaN where all are equal."""
    ranks = []
    for values in (first, second):
        above = (values[:, :, None] > values[:, None, :]).sum(axis=2)
        equal = (values[:, :, None] == values[:, None, :]).sum(axis=2)
        own = above + equal / 2
        ranks.append(own - own.mean(axis=1, keepdims=True))
    found: Floats = ratio(
        (ranks[0] * ranks[1]).sum(axis=1), np.sqrt((ranks[0] ** 2).sum(axis=1) * (ranks[1] ** 2).sum(axis=1))
    )
    return found
