"""Effects of several pairs as one: random effects after DerSimonian and Laird. Pure numbers.

A dozen lines of arithmetic, so that reports need no statistics package; tests hold them to values of statsmodels'
`combine_effects(method_re="dl")`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_Z = 1.959963984540054
"""97.5 % quantile of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One pair's difference and its standard error, which is above 0."""

    mean: float
    standard_error: float


@dataclass(frozen=True, slots=True)
class Pooled:
    """The effects together."""

    mean: float
    lo: float
    hi: float
    pairs: int
    tau_squared: float
    """Variance of the true effects between pairs."""
    q: float
    """Cochran's Q."""
    i_squared: float
    """Share of the spread that is between pairs: (Q − df) / Q, not below 0."""


def pooled(effects: Sequence[Effect]) -> Pooled | None:
    """Random-effects mean with its 95 % normal interval; None with fewer than two effects.

    Between-pair variance by moments (DerSimonian and Laird 1986, Controlled Clinical Trials 7:177-188, eq. 8): with
    w = 1 / se², Q = Σ w (y − ȳ)², τ² = max(0, (Q − (k − 1)) / (Σw − Σw² / Σw)); then weights 1 / (se² + τ²).
    Effects are taken to be independent. Raises ValueError for a standard error that is not above 0.
    """
    if len(effects) < 2:
        return None
    if any(effect.standard_error <= 0 for effect in effects):
        raise ValueError("a standard error must be above 0")
    weights = [effect.standard_error**-2 for effect in effects]
    total = math.fsum(weights)
    fixed = math.fsum(w * effect.mean for w, effect in zip(weights, effects, strict=True)) / total
    q = math.fsum(w * (effect.mean - fixed) ** 2 for w, effect in zip(weights, effects, strict=True))
    freedom = len(effects) - 1
    tau_squared = max(0.0, (q - freedom) / (total - math.fsum(w * w for w in weights) / total))
    weights = [1 / (effect.standard_error**2 + tau_squared) for effect in effects]
    total = math.fsum(weights)
    mean = math.fsum(w * effect.mean for w, effect in zip(weights, effects, strict=True)) / total
    half = _Z / math.sqrt(total)
    i_squared = max(0.0, (q - freedom) / q) if q > 0 else 0.0
    return Pooled(mean, mean - half, mean + half, len(effects), tau_squared, q, i_squared)
