"""Reliability of repeats: pass^k, pass@k and how often rollouts of one cell agree. Pure.

A cell with c passes in n rollouts has pass^k = C(c, k) / C(n, k) and pass@k = 1 − C(n − c, k) / C(n, k), both without
bias; the figures are means over cells with at least k rollouts. Intervals draw the items, and within each cell its
rollouts. Rollouts drawn with replacement agree more than they did, so the distribution is moved until its mean is the
unbiased figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rig.stats.bootstrap import LEVEL, RESAMPLES, SEED, Estimate, resample_weights, wilson
from rig.stats.joint import Floats

_Whole = np.ndarray[Any, np.dtype[np.int64]]
_Value = Callable[[_Whole, _Whole], Floats]
"""Passed (0 or 1) and kind of action, each of shape (draws, rollouts) → one value per draw."""

_METHOD = "bootstrap of items and of rollouts within cells, centred"


@dataclass(frozen=True, slots=True)
class Rollouts:
    """All rollouts of one cell: whether each passed, and what it did (equal numbers: the same)."""

    item: str
    variant: str
    passed: tuple[bool, ...]
    did: tuple[int, ...]


class Reliability:
    """One target's cells with their rollouts, drawn once; any number of figures may be taken of them."""

    def __init__(self, cells: Iterable[Rollouts], seed: int = SEED) -> None:
        self._cells = sorted(cells, key=lambda cell: (cell.item, cell.variant))
        self._seed = seed
        generator = np.random.default_rng(seed)
        # Where all rollouts are alike, drawing them changes nothing.
        self._drawn = {
            index: generator.integers(0, len(cell.did), size=(RESAMPLES, len(cell.did)))
            for index, cell in enumerate(self._cells)
            if len({*zip(cell.passed, cell.did, strict=True)}) > 1
        }

    def pass_all(self, k: int) -> Estimate | None:
        """Chance that `k` rollouts of a cell all pass; None where no cell has so many."""
        return self._estimate(lambda passed, _: _chosen(passed, k), k)

    def pass_any(self, k: int) -> Estimate | None:
        """Chance that at least one of `k` rollouts passes; as `pass_all`."""
        return self._estimate(lambda passed, _: 1 - _chosen(1 - passed, k), k)

    def agreement(self) -> Estimate | None:
        """Share of pairs of rollouts of one cell that did the same; None where no cell has two."""
        return self._estimate(lambda _, did: _pairs_alike(did), 2)

    def _estimate(self, value: _Value, fewest: int) -> Estimate | None:
        taken = [index for index, cell in enumerate(self._cells) if len(cell.did) >= fewest]
        if not taken:
            return None
        points = [float(value(*self._shaped(index))[0]) for index in taken]
        mean, n = math.fsum(points) / len(points), len(points)
        items = sorted({self._cells[index].item for index in taken})
        if len(items) < 2:
            return Estimate(mean, None, None, n, len(items), "interval cannot be estimated from one cluster")
        drawn = np.tile(np.array(points), (RESAMPLES, 1))
        for column, index in enumerate(taken):
            if index in self._drawn:
                drawn[:, column] = value(*self._shaped(index, self._drawn[index]))
        places = {item: place for place, item in enumerate(items)}
        by_item, _ = resample_weights(len(items), 1, self._seed)
        weights = by_item[:, [places[self._cells[index].item] for index in taken]]
        statistics = (weights * drawn).sum(axis=1) / weights.sum(axis=1)
        lo, hi = np.quantile(statistics, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) + (mean - statistics.mean())
        # Moved as a whole, a skewed distribution may come to lie beside the figure, or beyond what is possible.
        low, high = min(mean, max(0.0, float(lo))), max(mean, min(1.0, float(hi)))
        if high - low < 1e-12:
            if mean in (0.0, 1.0):
                low, high = wilson(round(mean) * len(items), len(items))
                return Estimate(mean, low, high, n, len(items), f"Wilson on {len(items)} items")
            return Estimate(mean, None, None, n, len(items), "no interval: all items have the same mean")
        return Estimate(mean, low, high, n, len(items), _METHOD)

    def _shaped(self, index: int, drawn: _Whole | None = None) -> tuple[_Whole, _Whole]:
        cell = self._cells[index]
        passed, did = np.array(cell.passed, dtype=np.int64), np.array(cell.did, dtype=np.int64)
        return (passed[None, :], did[None, :]) if drawn is None else (passed[drawn], did[drawn])


def sizes(rollouts: int) -> list[int]:
    """The k that are shown for so many rollouts: each up to 5, then doubling, and all."""
    return sorted({k for k in (1, 2, 3, 4, 5, 8, 16, 32, 64, rollouts) if k <= rollouts})


def _chosen(ones: _Whole, k: int) -> Floats:
    """Share of the ways to choose `k` rollouts that are 1 throughout."""
    n = ones.shape[1]
    shares = np.array([math.comb(count, k) / math.comb(n, k) for count in range(n + 1)])
    found: Floats = shares[ones.sum(axis=1)]
    return found


def _pairs_alike(did: _Whole) -> Floats:
    n = did.shape[1]
    alike = (did[:, :, None] == did[:, None, :]).sum(axis=(1, 2)) - n
    found: Floats = alike / (n * (n - 1))
    return found
