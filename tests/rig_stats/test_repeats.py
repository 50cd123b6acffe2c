"""pass^k, pass@k and agreement against enumeration; their intervals."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.stats.repeats import Reliability, Rollouts, sizes

cells_of_rollouts = st.lists(
    st.tuples(st.sampled_from("abcd"), st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=5)),
    min_size=1,
    max_size=8,
).map(
    lambda rows: [
        Rollouts(item, f"v{index}", tuple(passed for passed, _ in own), tuple(did for _, did in own))
        for index, (item, own) in enumerate(rows)
    ]
)


@settings(max_examples=30, deadline=None)
@given(cells_of_rollouts, st.integers(1, 5), st.randoms(use_true_random=False))
def test_figures_are_shares_of_all_choices_of_k_rollouts(cells: list[Rollouts], k: int, order: object) -> None:
    every = {index: list(combinations(cell.passed, k)) for index, cell in enumerate(cells) if len(cell.passed) >= k}
    shuffled = list(cells)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    drawn = Reliability(shuffled)
    assert drawn.pass_all(k) == Reliability(cells).pass_all(k)
    for found, rule in ((drawn.pass_all(k), all), (drawn.pass_any(k), any)):
        if not every:
            assert found is None
            continue
        slow = [sum(rule(chosen) for chosen in choices) / len(choices) for choices in every.values()]
        assert found is not None
        assert (found.mean, found.n) == (pytest.approx(sum(slow) / len(slow)), len(slow))
        if found.lo is not None and found.hi is not None:
            assert found.hi > found.lo
            assert 0 <= found.lo <= found.mean + 1e-12
            assert found.mean - 1e-12 <= found.hi <= 1
    pairs = [[a == b for a, b in combinations(cell.did, 2)] for cell in cells if len(cell.did) > 1]
    agreement = drawn.agreement()
    if pairs:
        assert agreement is not None
        assert agreement.mean == pytest.approx(sum(sum(own) / len(own) for own in pairs) / len(pairs))
    else:
        assert agreement is None


def test_intervals_draw_rollouts_too() -> None:
    # Every item passes on one rollout of two: drawing the items alone would show no spread.
    flaky = Reliability([Rollouts(item, "v", (True, False), (0, 1)) for item in "abcdefgh"])
    found = flaky.pass_all(1)
    assert found is not None
    assert found.lo is not None
    assert found.hi is not None
    assert found.lo < 0.4 < 0.5 == found.mean < 0.6 < found.hi
    both = flaky.pass_all(2)
    assert both is not None
    assert both.mean == both.lo == 0.0
    assert both.hi is not None
    assert both.hi > 0


def test_steady_agents_have_wilson_on_items_and_one_item_no_interval() -> None:
    steady = Reliability([Rollouts(item, "v", (True, True, True), (0, 0, 0)) for item in "abcdefghij"])
    found = steady.pass_all(3)
    assert found is not None
    assert (found.mean, round(found.lo or 0, 3), found.method) == (1.0, 0.722, "Wilson on 10 items")
    one = Reliability([Rollouts("a", "v", (True, False), (0, 1))]).pass_any(2)
    assert one is not None
    assert (one.mean, one.lo, one.method) == (1.0, None, "interval cannot be estimated from one cluster")
    assert steady.pass_all(4) is None


def test_which_k_are_shown() -> None:
    assert sizes(1) == [1]
    assert sizes(3) == [1, 2, 3]
    assert sizes(20) == [1, 2, 3, 4, 5, 8, 16, 20]
