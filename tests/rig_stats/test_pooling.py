"""Random-effects pooling against values of statsmodels 0.15 (`combine_effects`, method_re="dl")."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.stats.pooling import Effect, pooled


def test_values_of_statsmodels() -> None:
    means = (-0.13, 0.01, 0.0, 0.0, -0.20, -0.05)
    errors = (0.033, 0.028, 0.028, 0.029, 0.030, 0.036)
    found = pooled([Effect(mean, error) for mean, error in zip(means, errors, strict=True)])
    assert found is not None
    assert found.mean == pytest.approx(-0.061059338256890416)
    assert found.tau_squared == pytest.approx(0.006713867090449139)
    assert found.q == pytest.approx(41.38106808887029)
    assert found.i_squared == pytest.approx(0.879171799305374)
    assert (found.lo, found.hi) == (pytest.approx(-0.13108258), pytest.approx(0.0089639))


def test_effects_that_agree_are_weighed_by_their_precision_alone() -> None:
    found = pooled([Effect(0.06, 0.03), Effect(0.11, 0.04)])
    assert found is not None
    assert (found.mean, found.tau_squared, found.i_squared) == (pytest.approx(0.078), 0.0, 0.0)


def test_one_effect_is_no_pool_and_certainty_is_refused() -> None:
    assert pooled([]) is None
    assert pooled([Effect(0.1, 0.1)]) is None
    with pytest.raises(ValueError, match="above 0"):
        pooled([Effect(0.1, 0.0), Effect(0.1, 0.1)])


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0.01, 1)).map(lambda pair: Effect(*pair)), min_size=2, max_size=12),
    st.floats(-1, 1),
)
@settings(max_examples=50, deadline=None)
def test_it_lies_between_the_effects_and_moves_with_them(effects: list[Effect], shift: float) -> None:
    found = pooled(effects)
    moved = pooled([Effect(effect.mean + shift, effect.standard_error) for effect in effects])
    assert found is not None
    assert moved is not None
    assert min(e.mean for e in effects) - 1e-9 <= found.mean <= max(e.mean for e in effects) + 1e-9
    assert moved.mean == pytest.approx(found.mean + shift, abs=1e-6)
    assert found.tau_squared >= 0
    assert found.lo <= found.mean <= found.hi
