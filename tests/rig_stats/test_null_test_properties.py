"""Properties of differences and of the ranges with groups left out, on any cells."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.stats.bootstrap import Sample, difference
from rig.stats.measures import samples_of
from rig.stats.null_tests import equivalent
from rig.stats.robustness import left_out, penalised

cells_by_variant = st.dictionaries(
    st.tuples(st.sampled_from("abcdefg"), st.sampled_from(["v", "w"])),
    st.floats(-1, 1).map(lambda value: round(value, 2)),
    min_size=3,
    max_size=12,
).map(lambda cells: {cell: {0: value} for cell, value in cells.items()})


@settings(max_examples=25, deadline=None)
@given(cells_by_variant)
def test_cells_given_twice_leave_clusters_and_interval_as_they_are(
    cells: dict[tuple[str, str], dict[int, float]],
) -> None:
    samples = samples_of(cells)
    once, twice = difference(samples), difference([*samples, *samples])
    assert once is not None
    assert twice is not None
    assert (twice.items, twice.n) == (once.items, 2 * once.n)
    for name in ("mean", "lo", "hi", "p", "lo90", "hi90", "detectable"):
        expected = getattr(once, name)
        assert getattr(twice, name) == (None if expected is None else pytest.approx(expected, abs=1e-9)), name
    # One item's cells alone: the number of clusters stays, though that item weighs more.
    first = samples[0].item
    more = difference([*samples, *(one for one in samples if one.item == first)])
    assert more is not None
    assert more.items == once.items


@settings(max_examples=25, deadline=None)
@given(cells_by_variant, st.floats(-2, 2))
def test_a_constant_moves_both_intervals_and_never_what_is_detectable(
    cells: dict[tuple[str, str], dict[int, float]], constant: float
) -> None:
    samples = samples_of(cells)
    before = difference(samples)
    after = difference([Sample(one.value + constant, one.item) for one in samples])
    assert before is not None
    assert after is not None
    if before.lo90 is None or before.hi90 is None:
        assert after.lo90 is None
        assert equivalent(before, 0.1) is None
        return
    assert before.lo is not None
    assert before.hi is not None
    assert before.lo <= before.lo90 <= before.hi90 <= before.hi
    assert (after.lo90, after.hi90) == (
        pytest.approx(before.lo90 + constant, abs=1e-9),
        pytest.approx(before.hi90 + constant, abs=1e-9),
    )
    assert after.detectable == pytest.approx(before.detectable, abs=1e-9)
    assert equivalent(before, 3.0) is True


@settings(max_examples=20, deadline=None)
@given(cells_by_variant, cells_by_variant)
def test_ranges_are_those_of_leaving_each_group_out(
    cells: dict[tuple[str, str], dict[int, float]], others: dict[tuple[str, str], dict[int, float]]
) -> None:
    def group_of(item: str, _variant: str) -> str | None:
        return {"a": "x", "b": "x", "c": "y", "d": "y", "e": "z"}.get(item)

    found = left_out({"one": cells, "other": others}, group_of)
    for name, own in (("one", cells), ("other", others)):
        groups = {group for cell in own if (group := group_of(*cell))}
        rests = {
            group: difference(samples_of({cell: values for cell, values in own.items() if group_of(*cell) != group}))
            for group in groups
        }
        known = {group: rest for group, rest in rests.items() if rest is not None}
        ours = found[name]
        if len(groups) < 2:
            assert ours is None
            continue
        assert ours is not None
        assert ours.lowest == pytest.approx(min(rest.mean for rest in known.values()), abs=1e-9)
        assert ours.highest == pytest.approx(max(rest.mean for rest in known.values()), abs=1e-9)
        bounds = [rest.lo for rest in known.values()]
        present = [bound for bound in bounds if bound is not None]
        assert ours.lowest_lo == (pytest.approx(min(present), abs=1e-9) if len(present) == len(bounds) else None)


def test_excess_over_reaction_is_a_charge_and_never_a_bonus() -> None:
    gain = {(item, "v"): {0: 0.5 + 0.1 * index} for index, item in enumerate("abcde")}
    worse = penalised(gain, {(item, "calm"): {0: 0.2 + 0.01 * index} for index, item in enumerate("abcde")})
    better = penalised(gain, {(item, "calm"): {0: -0.5} for item in "abcde"})
    plain = difference(samples_of(gain))
    assert worse is not None
    assert better is not None
    assert plain is not None
    assert worse.mean == pytest.approx(0.7 - 0.22)
    assert (better.mean, better.lo, better.hi) == pytest.approx((plain.mean, plain.lo, plain.hi))
    assert (worse.n, worse.items) == (5, 5)
    assert penalised(gain, {}) is None
