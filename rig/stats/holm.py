"""Holm's step-down correction of a family of p-values, of which some may be missing. Pure."""

from __future__ import annotations

from collections.abc import Sequence

ALPHA = 0.05


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Corrected p-values in the order given. Missing ones stay missing and are not counted in the family."""
    present = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(present):
        highest = max(highest, min(1.0, p * (len(present) - rank)))
        corrected[index] = highest
    return corrected
