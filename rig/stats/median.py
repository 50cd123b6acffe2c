"""An item-clustered percentile bootstrap of the median. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rig.stats.bootstrap import LEVEL, SEED, Sample, resample_weights


def median_interval(samples: Sequence[Sample], seed: int = SEED) -> tuple[float | None, float | None, str]:
    """Lower and upper bound, and the method; bounds are None where there is no interval, and the method says why.

    Items are drawn as everywhere else; an item's values, of all repeats, come together.
    """
    items = sorted({sample.item for sample in samples})
    if not items:
        return None, None, "no valid value"
    if len(items) < 2:
        return None, None, "interval cannot be estimated from one cluster"
    if len({sample.value for sample in samples}) == 1:
        return None, None, "no interval: all values are equal"
    ordered = sorted(samples, key=lambda sample: (sample.value, sample.item))
    values = np.array([sample.value for sample in ordered])
    places = {item: index for index, item in enumerate(items)}
    by_item, _ = resample_weights(len(items), 1, seed)
    # How many drawn values lie at or below each value: the median's two middle places are found by counting.
    below = np.cumsum(by_item[:, [places[sample.item] for sample in ordered]], axis=1)
    total = below[:, -1:]
    lower = (below > (total - 1) // 2).argmax(axis=1)
    upper = (below > total // 2).argmax(axis=1)
    medians = (values[lower] + values[upper]) / 2
    lo, hi = np.quantile(medians, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    if lo == hi:
        return None, None, "no interval: the draws agree on the median"
    return float(lo), float(hi), "item-clustered bootstrap of the median"
