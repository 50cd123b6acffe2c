"""Holm's correction of one family of tests, and the words for what it leaves. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rig.report.model import Family, Tested, Verdict
from rig.stats.holm import ALPHA, holm


def corrected(members: Mapping[str, Tested | None], name: str) -> tuple[dict[str, Tested], Family | None]:
    """The tests with corrected p-values and verdicts, and the family that they make; None where nobody was tested.

    A member without a p-value, or without any estimate, is named in the family and not counted in it.
    """
    tested = {target: one for target, one in members.items() if one is not None}
    if not tested:
        return {}, None
    ps = {target: one.estimate.p for target, one in tested.items()}
    found = {
        target: replace(one, family=name, holm_p=p, verdict=verdict_of(one.estimate.mean, p))
        for (target, one), p in zip(tested.items(), holm(list(ps.values())), strict=True)
    }
    family = Family(
        name,
        tested=tuple(target for target, p in ps.items() if p is not None),
        missing=tuple(target for target in members if ps.get(target) is None),
    )
    return found, family


def verdict_of(mean: float, holm_p: float | None) -> Verdict | None:
    """`above`, `below` or `none`; None without a corrected p-value."""
    if holm_p is None:
        return None
    if holm_p > ALPHA:
        return "none"
    return "above" if mean > 0 else "below"
