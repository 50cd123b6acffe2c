"""Thresholds, ranges of disagreement and rank correlations, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.stats.bootstrap import SEED, Sample
from rig.stats.verdicts import Means, best_threshold


def slow_spearman(first: list[float], second: list[float]) -> float | None:
    def ranks(values: list[float]) -> list[float]:
        return [sum(other < value for other in values) + (values.count(value) + 1) / 2 for value in values]

    a, b = ranks(first), ranks(second)
    mean = (len(a) + 1) / 2
    spread = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    return None if spread == 0 else sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True)) / spread**0.5


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=7))
def test_rank_correlation_with_ties(pairs: list[tuple[int, int]]) -> None:
    names = [f"t{index}" for index in range(len(pairs))]
    means = Means(
        {
            which: {name: [Sample(float(pair[place]), "only")] for name, pair in zip(names, pairs, strict=True)}
            for place, which in enumerate(("first", "second"))
        }
    )
    expected = slow_spearman([float(a) for a, _ in pairs], [float(b) for _, b in pairs])
    found = means.ranks("first", "second", names)
    assert found.rho == (None if expected is None else pytest.approx(expected))
    assert (found.lo, found.hi) == (None, None)


def test_range_of_disagreement_is_that_of_plain_loops() -> None:
    draws = np.random.default_rng(3)
    items = [f"item-{index}" for index in range(9)]
    samples = {
        name: [Sample(float(draws.random() < share), item) for item in items for _ in range(2)]
        for name, share in (("a", 0.3), ("b", 0.5), ("c", 0.7))
    }
    above = {"a": False, "b": True, "c": True}
    differing = []
    for row in np.random.default_rng(SEED).integers(0, len(items), size=(4000, len(items))):
        count = 0
        for name, own in samples.items():
            values = [one.value for index in row for one in own if one.item == items[index]]
            count += (sum(values) / len(values) >= 0.5) != above[name]
        differing.append(count)
    found = Means({"probe": samples}).disagreement("probe", 0.5, above, strictly=False)
    assert found == tuple(np.quantile(differing, [0.025, 0.975]))


def test_best_threshold_differs_least_and_is_the_lowest_of_equals() -> None:
    values = {"a": 0.2, "b": 0.5, "c": 0.6, "d": 0.9}
    assert best_threshold(values, {"a": False, "b": True, "c": False, "d": True}) == 0.5
    assert best_threshold(values, dict.fromkeys(values, True)) == 0.2
    assert best_threshold(values, dict.fromkeys(values, False)) is None
    assert best_threshold({}, {"a": True}) is None
