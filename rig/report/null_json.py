"""The null test's company, robustness, repeats and verdicts compared, as JSON-ready data; null: not measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rig.report.model import Tested
from rig.report.null_model import Disagreements, NullTests, Repeats, Robustness
from rig.stats.bootstrap import Estimate

EstimateJson = Callable[[Estimate | None], dict[str, Any] | None]
TestedJson = Callable[[Tested | None], dict[str, Any] | None]


def null_tests_json(found: NullTests | None, estimate: EstimateJson, tested: TestedJson) -> dict[str, Any] | None:
    """One target against all nulls."""
    if found is None:
        return None
    first = next(iter(found.against.values())).estimate
    every = found.every_null
    incomplete = estimate(found.incomplete)
    if incomplete is not None and found.incomplete is not None:
        incomplete |= {"p": found.incomplete.p, "incomplete_cells": found.incomplete_cells}
    return {
        "measure": found.measure,
        "against": {null: tested(one) for null, one in found.against.items()},
        "every_null": None
        if every is None
        else {
            "nulls": list(every.nulls),
            "holm_p": every.holm_p,
            "verdict": every.verdict,
            "weakest_against": every.weakest,
        },
        "equivalence": {
            "lo90": first.lo90,
            "hi90": first.hi90,
            "within": {f"{margin:.2f}": holds for margin, holds in found.equivalent.items()},
        },
        "shift": tested(found.shift),
        "shift_note": found.shift_note,
        "with_incomplete_cells": incomplete,
        "acts": {
            "audio": estimate(found.acts_on_audio),
            "text_twin": estimate(found.acts_on_twin),
            "twin_seldom_acts": found.twin_seldom_acts,
        },
    }


def robustness_json(found: Robustness | None, tested: TestedJson) -> dict[str, Any] | None:
    """One target's gain under other choices."""
    if found is None:
        return None
    return {
        **{name: tested(one) for name, one in found.columns.items()},
        "not_measured": dict(found.notes),
        "left_out": {
            name.replace(" ", "_"): None
            if one is None
            else {
                "groups": one.groups,
                "lowest": one.lowest,
                "lowest_without": one.lowest_without,
                "highest": one.highest,
                "highest_without": one.highest_without,
                "lowest_lo": one.lowest_lo,
            }
            for name, one in found.left_out.items()
        },
    }


def repeats_json(found: Repeats | None, estimate: EstimateJson) -> dict[str, Any] | None:
    """Reliability over rollouts; keys of `pass_all` (pass^k) and `pass_any` (pass@k) are k."""
    if found is None:
        return None
    return {
        "rollouts": found.rollouts,
        "cells": found.cells,
        "pass_all": {str(k): estimate(one) for k, one in found.pass_all.items()},
        "pass_any": {str(k): estimate(one) for k, one in found.pass_any.items()},
        "agreement": estimate(found.agreement),
        "flakes": [
            {"item": one.item_id, "variant": one.variant_id, "passed": one.passed, "rollouts": one.rollouts}
            for one in found.flakes
        ],
    }


def disagreements_json(found: Disagreements | None) -> dict[str, Any] | None:
    """Verdicts of other rules against those of the null test."""
    if found is None:
        return None
    return {
        "tested": list(found.tested),
        "null_test_above": list(found.above),
        "rules": [
            {
                "rule": rule.name,
                "compared": rule.compared,
                "credited": list(rule.credited),
                "disagree": list(rule.disagree),
                "disagree_lo": rule.lo,
                "disagree_hi": rule.hi,
                "rho": rule.rho,
                "rho_lo": rule.rho_lo,
                "rho_hi": rule.rho_hi,
                "threshold": rule.threshold,
                "note": rule.note,
            }
            for rule in found.rules
        ],
    }
