"""Statistics made of several sums at once (a ratio, a difference of ratios, d′), with item-clustered intervals. Pure.

Items, and repeats where there are several, are drawn exactly as in `rig.stats.bootstrap`; the sums of all columns are
taken over the same draws, and the statistic is computed on each draw.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rig.stats.bootstrap import LEVEL, RESAMPLES, SEED, Estimate, inverted_p, resample_weights

Floats = np.ndarray[Any, np.dtype[np.float64]]
Statistic = Callable[["Sums"], Floats]
"""Sums of columns, each of shape (draws,) → values of that shape; NaN where a draw leaves it undefined."""

_SMALLEST_SPREAD = 1e-12
_LOWEST_SHARE = 0.9
"""With fewer draws defined than this there is no interval."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one cell adds to each column."""

    item: str
    repeat: int
    values: Mapping[str, float]


class Sums:
    """Columns by name; one that no row names is 0 throughout."""

    def __init__(self, columns: Mapping[str, Floats], size: int) -> None:
        self._columns, self._size = columns, size

    def __getitem__(self, name: str) -> Floats:
        found = self._columns.get(name)
        return np.zeros(self._size) if found is None else found

    def mean(self, name: str, count: str) -> Floats:
        """One column divided by another; NaN where that is 0."""
        return ratio(self[name], self[count])


class Joint:
    """Rows of cells, drawn once; any number of statistics may be taken of them."""

    def __init__(self, rows: Iterable[Row], columns: Iterable[str] | None = None, seed: int = SEED) -> None:
        """`columns`: only these are summed, where only they are asked for."""
        rows = list(rows)
        self.n = len(rows)
        items = sorted({row.item for row in rows})
        repeats = sorted({row.repeat for row in rows})
        self.items = len(items)
        names = sorted({name for row in rows for name in row.values} if columns is None else set(columns))
        places = {place: index for index, place in enumerate(itertools.product(items, repeats))}
        parts: dict[str, dict[int, list[float]]] = {name: {} for name in names}
        for row in rows:
            place = places[row.item, row.repeat]
            for name, value in row.values.items():
                if value and name in parts:
                    parts[name].setdefault(place, []).append(value)
        table = np.zeros((len(names), len(places)))
        for index, name in enumerate(names):
            for place, values in parts[name].items():
                # fsum is exact: the order of the rows changes nothing.
                table[index, place] = math.fsum(values)
        self.point = Sums({name: table[index].sum().reshape(1) for index, name in enumerate(names)}, 1)
        self._drawn = Sums({}, RESAMPLES)
        if self.items > 1:
            by_item, by_repeat = resample_weights(len(items), len(repeats), seed)
            shaped = table.reshape(len(names), len(items), len(repeats))
            drawn = sum(
                (shaped[:, :, index] @ by_item.T * by_repeat[:, index] for index in range(len(repeats))),
                start=np.zeros((len(names), RESAMPLES)),
            )
            self._drawn = Sums({name: drawn[index] for index, name in enumerate(names)}, RESAMPLES)

    def value(self, statistic: Statistic) -> float | None:
        """The statistic of all rows; None where it is undefined."""
        if not self.n:
            return None
        value = float(statistic(self.point)[0])
        return value if math.isfinite(value) else None

    def estimate(self, statistic: Statistic, count: str, tested: bool = False) -> Estimate | None:
        """The statistic with its interval; None where it is undefined. `count`: the column that `n` is the sum of.

        `tested` adds the p-value against 0. An interval is missing, and the method says why, with one item, where all
        draws agree, or where over a tenth of the draws leave the statistic undefined.
        """
        value = self.value(statistic)
        if value is None:
            return None
        n = round(float(self.point[count][0]))

        def without_interval(why: str) -> Estimate:
            return Estimate(value, None, None, n, self.items, why)

        if self.items < 2:
            return without_interval("interval cannot be estimated from one cluster")
        drawn = statistic(self._drawn)
        defined = drawn[np.isfinite(drawn)]
        if len(defined) < _LOWEST_SHARE * len(drawn):
            return without_interval(f"no interval: undefined in {len(drawn) - len(defined)} of {len(drawn)} draws")
        if float(np.ptp(defined)) < _SMALLEST_SPREAD:
            return without_interval("no interval: all items have the same mean")
        lo, hi = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        left_out = len(drawn) - len(defined)
        method = "item-clustered bootstrap" + (f", {left_out} undefined draws left out" if left_out else "")
        p = inverted_p(defined) if tested else None
        return Estimate(value, float(lo), float(hi), n, self.items, method, p)


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """NaN where the denominator is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(denominator == 0, np.nan, numerator / denominator)
    return found
