"""Item-clustered percentile bootstrap: means with intervals and p-values. Pure numbers; no cells, no targets.

Clusters sorted by id, one `default_rng(seed).integers(0, g, size=(4000, g))`, statistic = sum of the values in the
drawn clusters / number of them, 95 % quantiles. With several repeats those are drawn as well, for all items alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

SEED = 20260915
RESAMPLES = 4_000
LEVEL = 0.95

_Z = 1.959963984540054
"""97.5 % quantile of the normal distribution."""
_Z_POWER = 0.8416212335729143
"""80 % quantile of the normal distribution."""
_ROUNDING = 1e-12
_Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of one cell. Values of an item belong together."""

    value: float
    item: str
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over `n` cells of `items` items. `lo` and `hi` are None where no interval can be estimated."""

    mean: float
    lo: float | None
    hi: float | None
    n: int
    items: int
    method: str
    p: float | None = None
    """Two-sided, against a mean of 0; None where it was not asked for or cannot be estimated."""
    detectable: float | None = None
    """Smallest true difference found with 80 % power at 5 %, (1.96 + 0.84) standard errors; as `p`."""
    lo90: float | None = None
    """Lower and …"""
    hi90: float | None = None
    """… upper bound of the 90 % interval, which two one-sided tests at 5 % come to; as `p`."""


def proportion(samples: Iterable[Sample], seed: int = SEED) -> Estimate | None:
    """Mean of values in [0, 1]. Where all are 0 or all are 1, the Wilson interval on the number of items.

    None without samples: nothing was measured.
    """
    values = list(samples)
    if not values:
        return None
    estimate, statistics = _estimate(values, seed)
    if statistics is not None and _is_constant(statistics) and estimate.mean in (0.0, 1.0):
        lo, hi = wilson(round(estimate.mean) * estimate.items, estimate.items)
        return Estimate(estimate.mean, lo, hi, estimate.n, estimate.items, f"Wilson on {estimate.items} items")
    return estimate


def difference(samples: Iterable[Sample], seed: int = SEED) -> Estimate | None:
    """Mean of paired differences, with its p-value by inverting the bootstrap. None without samples.

    Where every draw gives the same value there is no interval; p is then 1 at zero, else that of a sign test on items.
    """
    values = list(samples)
    if not values:
        return None
    estimate, statistics = _estimate(values, seed)
    if statistics is None:
        return estimate
    if _is_constant(statistics):
        p = 1.0 if estimate.mean == 0 else max(2.0 ** (1 - estimate.items), 1 / RESAMPLES)
        how = "" if estimate.mean == 0 else "; p by a sign test on items"
        return Estimate(estimate.mean, None, None, estimate.n, estimate.items, estimate.method + how, p)
    lo90, hi90 = np.quantile(statistics, [0.05, 0.95])
    return replace(
        estimate,
        p=inverted_p(statistics),
        detectable=(_Z + _Z_POWER) * float(statistics.std()),
        lo90=float(lo90),
        hi90=float(hi90),
    )


def bootstrap_means(samples: Sequence[Sample], seed: int = SEED) -> _Floats:
    """The bootstrap distribution of the mean, shape (RESAMPLES,). Needs at least one sample."""
    items = sorted({sample.item for sample in samples})
    repeats = sorted({sample.repeat for sample in samples})
    parts: dict[tuple[str, int], list[float]] = {}
    for sample in samples:
        parts.setdefault((sample.item, sample.repeat), []).append(sample.value)
    sums, counts = np.zeros((len(items), len(repeats))), np.zeros((len(items), len(repeats)))
    for row, item in enumerate(items):
        for column, repeat in enumerate(repeats):
            own = parts.get((item, repeat), ())
            # fsum is exact: the order of the rows changes nothing.
            sums[row, column], counts[row, column] = math.fsum(own), len(own)
    totals = _drawn_total(sums, seed)
    cells = _drawn_count(counts.tobytes(), counts.shape, seed)
    # A draw of items and repeats that never met holds no cell and says nothing.
    drawn = cells > 0
    means: _Floats = totals[drawn] / cells[drawn]
    return means


def _drawn_total(table: _Floats, seed: int) -> _Floats:
    """Sum of `table`, shape (items, repeats), over each draw of items and repeats."""
    item_weights, repeat_weights = resample_weights(*table.shape, seed)
    total: _Floats = ((item_weights @ table) * repeat_weights).sum(axis=1)
    return total


@lru_cache(maxsize=256)
def _drawn_count(table: bytes, shape: tuple[int, int], seed: int) -> _Floats:
    """`_drawn_total` of numbers of cells, which many measures of many targets share."""
    return _drawn_total(np.frombuffer(table).reshape(shape), seed)


def inverted_p(statistics: _Floats) -> float:
    """Two-sided p of a mean of 0 by inverting the bootstrap, floor 1 / RESAMPLES.

    A draw that differs from 0 by no more than rounding is one at 0.
    """
    tail = min(float((statistics <= _ROUNDING).mean()), float((statistics >= -_ROUNDING).mean()))
    return min(1.0, max(2 * tail, 1 / RESAMPLES))


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of `successes` in `trials` (at least 1)."""
    share = successes / trials
    scale = 1 + _Z**2 / trials
    centre = (share + _Z**2 / (2 * trials)) / scale
    half = _Z * math.sqrt(share * (1 - share) / trials + _Z**2 / (4 * trials**2)) / scale
    # At the ends the bound is the end itself, which rounding misses by one bit.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return low, high


def _estimate(samples: list[Sample], seed: int) -> tuple[Estimate, _Floats | None]:
    """The estimate, and the bootstrap distribution where there are clusters enough for one."""
    n = len(samples)
    items = len({sample.item for sample in samples})
    mean = math.fsum(sample.value for sample in samples) / n
    if items < 2:
        return Estimate(mean, None, None, n, items, "interval cannot be estimated from one cluster"), None
    statistics = bootstrap_means(samples, seed)
    if _is_constant(statistics):
        return Estimate(mean, None, None, n, items, "no interval: all items have the same mean"), statistics
    lo, hi = np.quantile(statistics, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(mean, float(lo), float(hi), n, items, "item-clustered bootstrap"), statistics


def _is_constant(statistics: _Floats) -> bool:
    return float(np.ptp(statistics)) < _ROUNDING


@lru_cache(maxsize=64)
def resample_weights(items: int, repeats: int, seed: int) -> tuple[_Floats, _Floats]:
    """How often each item (RESAMPLES, items), and each repeat (RESAMPLES, repeats), is drawn in each resample."""
    generator = np.random.default_rng(seed)
    drawn_items = generator.integers(0, items, size=(RESAMPLES, items))
    if repeats == 1:
        return _tally(drawn_items, items), np.ones((RESAMPLES, 1))
    return _tally(drawn_items, items), _tally(generator.integers(0, repeats, size=(RESAMPLES, repeats)), repeats)


def _tally(drawn: np.ndarray[Any, np.dtype[np.int64]], kinds: int) -> _Floats:
    flat = drawn + np.arange(RESAMPLES)[:, None] * kinds
    return np.bincount(flat.ravel(), minlength=RESAMPLES * kinds).reshape(RESAMPLES, kinds).astype(np.float64)
