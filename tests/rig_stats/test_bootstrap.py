"""Intervals and tests: B23 (Holm), B24 (intervals that vanish), an independent slow bootstrap, properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.stats.bootstrap import SEED, Estimate, Sample, difference, inverted_p, proportion
from rig.stats.holm import holm


def per_item(*values: float) -> list[Sample]:
    return [Sample(value, f"item-{index:03}") for index, value in enumerate(values)]


def bounds(estimate: Estimate | None) -> tuple[float, float]:
    assert estimate is not None
    assert estimate.lo is not None
    assert estimate.hi is not None
    return estimate.lo, estimate.hi


@pytest.mark.parametrize(
    ("items", "right", "lo", "hi"), [(10, 10, 0.722, 1.0), (10, 0, 0.0, 0.278), (50, 0, 0.0, 0.071)]
)
def test_b24_all_right_or_all_wrong_is_wilson_on_items(items: int, right: int, lo: float, hi: float) -> None:
    estimate = proportion(per_item(*[1.0 if right else 0.0] * items))
    assert estimate is not None
    assert estimate.mean == (1.0 if right else 0.0)
    assert bounds(estimate) == (pytest.approx(lo, abs=5e-4), pytest.approx(hi, abs=5e-4))
    assert estimate.method == f"Wilson on {items} items"


def test_b24_one_scenario_has_a_point_and_no_interval() -> None:
    estimate = proportion([Sample(float(trial < 14), "only", trial) for trial in range(20)])
    assert estimate == Estimate(0.7, None, None, 20, 1, "interval cannot be estimated from one cluster")
    tested = difference([Sample(1.0, "only"), Sample(0.0, "only", 1)])
    assert tested is not None
    assert (tested.mean, tested.p) == (0.5, None)


def test_b24_nothing_scored_is_no_estimate() -> None:
    assert proportion([]) is None
    assert difference([]) is None


def test_equal_item_means_between_0_and_1_have_no_interval_of_zero_width() -> None:
    estimate = proportion(per_item(0.7, 0.7, 0.7))
    assert estimate == Estimate(
        pytest.approx(0.7),
        None,
        None,
        3,
        3,
        "no interval: all items have the same mean",  # type: ignore[arg-type]
    )


def test_constant_differences() -> None:
    nothing = difference(per_item(0.0, 0.0, 0.0))
    assert nothing is not None
    assert (nothing.mean, nothing.lo, nothing.p) == (0.0, None, 1.0)
    always = difference(per_item(*[1.0] * 8))
    assert always is not None
    assert (always.lo, always.p) == (None, 2 / 2**8)


def test_a_slow_bootstrap_written_from_the_definition_gives_the_same_numbers() -> None:
    draws = np.random.default_rng(5)
    samples = [
        Sample(float(draws.integers(0, 11)) / 10, f"item-{item:02}") for item in range(17) for _ in range(1 + item % 3)
    ]
    clusters = sorted({sample.item for sample in samples})
    chosen = np.random.default_rng(SEED).integers(0, len(clusters), size=(4000, len(clusters)))
    means = []
    for row in chosen:
        values = [sample.value for index in row for sample in samples if sample.item == clusters[index]]
        means.append(math.fsum(values) / len(values))
    estimate = proportion(samples)
    assert bounds(estimate) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=1e-12)
    shifted = difference([Sample(sample.value - 0.4, sample.item) for sample in samples])
    assert shifted is not None
    below = sum(mean - 0.4 <= 0 for mean in means) / 4000
    above = sum(mean - 0.4 >= 0 for mean in means) / 4000
    assert shifted.p == pytest.approx(max(2 * min(below, above), 1 / 4000), abs=1e-3)


values_of_items = st.lists(
    st.tuples(st.floats(0, 1).map(lambda value: round(value, 3)), st.sampled_from("abcdef"), st.integers(0, 2)),
    min_size=2,
    max_size=24,
)


@settings(max_examples=25, deadline=None)
@given(values_of_items, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(rows: list[tuple[float, str, int]], random: object) -> None:
    samples = [Sample(*row) for row in rows]
    shuffled = list(samples)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert proportion(samples) == proportion(shuffled)
    assert difference(samples) == difference(shuffled)


@settings(max_examples=25, deadline=None)
@given(values_of_items, st.floats(-5, 5))
def test_a_constant_added_moves_the_mean_and_leaves_the_width(
    rows: list[tuple[float, str, int]], constant: float
) -> None:
    before = difference([Sample(value, item, repeat) for value, item, repeat in rows])
    after = difference([Sample(value + constant, item, repeat) for value, item, repeat in rows])
    assert before is not None
    assert after is not None
    assert after.mean == pytest.approx(before.mean + constant, abs=1e-9)
    if before.lo is None or before.hi is None:
        assert after.lo is None
    else:
        assert bounds(after) == pytest.approx((before.lo + constant, before.hi + constant), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(values_of_items)
def test_no_number_is_ever_nan_and_the_interval_holds_only_possible_values(rows: list[tuple[float, str, int]]) -> None:
    estimate = proportion([Sample(*row) for row in rows])
    assert estimate is not None
    for number in (estimate.mean, estimate.lo, estimate.hi):
        assert number is None or 0.0 <= number <= 1.0 + 1e-12


def test_repeats_are_resampled_too() -> None:
    # All items agree; only the repeats differ, and so the interval must not vanish.
    estimate = proportion([Sample(float(repeat == 0), item, repeat) for item in "abcd" for repeat in range(3)])
    lo, hi = bounds(estimate)
    assert lo < 1 / 3 < hi


def test_p_has_a_floor_and_a_ceiling() -> None:
    assert inverted_p(np.ones(4000)) == 1 / 4000
    assert inverted_p(np.zeros(4000)) == 1.0


def test_b23_holm_with_a_missing_p() -> None:
    corrected = holm([0.01, None, 0.04, 0.03])
    assert corrected[1] is None
    assert [p for p in corrected if p is not None] == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.00001] * 3) == pytest.approx([0.00003] * 3)
    assert holm([]) == []
    assert holm([None]) == [None]


@settings(max_examples=50)
@given(st.lists(st.none() | st.floats(0, 1), max_size=8))
def test_holm_keeps_order_and_bounds(ps: list[float | None]) -> None:
    corrected = holm(ps)
    assert [p is None for p in corrected] == [p is None for p in ps]
    pairs = sorted((p, q) for p, q in zip(ps, corrected, strict=True) if p is not None and q is not None)
    assert all(p <= q <= 1.0 for p, q in pairs)
    assert [q for _, q in pairs] == sorted(q for _, q in pairs)
