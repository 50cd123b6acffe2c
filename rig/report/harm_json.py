"""Harm and hearing of a report as JSON-ready data; what does not apply or was not measured is null."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rig.report.harm_model import Audit, HarmReport, TargetHarm
from rig.report.hearing_model import HearingPart, HearingReport, HearingSummary
from rig.report.model import Tested
from rig.stats.bootstrap import Estimate

EstimateJson = Callable[[Estimate | None], dict[str, Any] | None]
TestedJson = Callable[[Tested | None], dict[str, Any] | None]


def harm_json(found: TargetHarm, estimate: EstimateJson, tested: TestedJson) -> dict[str, Any]:
    """One target's (or group's) harm."""
    return {
        "counts": {kind.value: {o.value: n for o, n in counts.items()} for kind, counts in found.counts.items()},
        "rates": {name: estimate(one) for name, one in found.rates.items()},
        "twin_rates": {name: estimate(one) for name, one in found.twin_rates.items()},
        "beyond_equal_rates": found.beyond_equal_rates,
        "unsafe_against_null": tested(found.unsafe_against_null),
        "unsafe_against_twin": tested(found.unsafe_against_twin),
        "responses_protective": {response.value: estimate(one) for response, one in found.responses.items()},
        "co_execution": estimate(found.co_execution),
        "over_reaction": estimate(found.over_reaction),
        "balanced_credit": estimate(found.balanced_credit),
        "risk_per_100": {f"{tiers}_{outcomes}": estimate(one) for (tiers, outcomes), one in found.risk.items()},
        "risk_per_100_without_service": estimate(found.risk_without_service),
        "without_severity": found.without_severity,
        "roles_derived": found.derived,
    }


def harm_report_json(found: HarmReport, estimate: EstimateJson, tested: TestedJson) -> dict[str, Any]:
    """What concerns several targets: pooled groups, the scatter, cells that nobody gets right, departures."""
    return {
        "scatter": [
            {
                "target": name,
                "unsafe_execution": estimate(one.rates["unsafe_execution"]),
                "over_trigger": estimate(one.rates["over_trigger"]),
            }
            for name, one in found.targets.items()
            if one.beyond_equal_rates is not None
        ],
        "pooled": {name: harm_json(one, estimate, tested) for name, one in found.pooled.items()},
        "nobody_right": [
            {
                "item": one.item_id,
                "variant": one.variant_id,
                "situation": one.situation.value,
                "cue": one.cue,
                "gold": one.gold,
                "contestants": one.contestants,
                "usual_response": one.usual,
                "usual_count": one.usual_count,
                "heard": one.heard if one.probed else None,
                "probed": one.probed,
            }
            for one in found.nobody_right
        ],
        "departures": [
            {
                "citation": one.citation,
                "grounding": one.grounding.value if one.grounding else None,
                "items": list(one.items),
                "cells": one.cells,
                "by_target": {name: {"departed": d, "n": n} for name, (d, n) in one.by_target.items()},
                "contestants_departing": list(one.any_),
                "contestants_departing_on_half": list(one.half),
            }
            for one in found.departures
        ],
    }


def hearing_json(found: HearingSummary | None, estimate: EstimateJson) -> dict[str, Any] | None:
    """One target's (or group's) hearing and deciding."""
    if found is None:
        return None

    def each(figures: Mapping[Any, Estimate | None]) -> dict[str, Any]:
        return {str(name): estimate(one) for name, one in figures.items()}

    shapley = found.shapley
    return {
        "members": list(found.members),
        "n": found.cells,
        "without_probe": found.without_probe,
        "probe_reading": "strict_wrong",
        **each(found.shares),
        **each(found.credit),
        "recognition": each(found.recognition),
        "right_given_truly_heard": each(found.policy_when_heard),
        "perfect_hearing": each(found.perfect_hearing),
        "perfect_deciding": each(found.perfect_deciding),
        "detection": each(found.detection),
        "taxonomy": each(found.fates),
        "by": {
            contrast: {group: _part(one, estimate) for group, one in groups.items()}
            for contrast, groups in found.parts.items()
        },
        "shapley": None
        if shapley is None
        else {
            "reference": list(shapley.reference),
            "clips": shapley.clips,
            **{correction: each(factors) for correction, factors in shapley.by_correction.items()},
        },
    }


def hearing_report_json(found: HearingReport, estimate: EstimateJson) -> dict[str, Any]:
    """Pooled groups, and the leading one with its cross-fitted figures."""
    leading = found.leading
    return {
        "pooled": {name: hearing_json(one, estimate) for name, one in found.pooled.items()},
        "leading": None
        if leading is None
        else {
            "members": list(leading.members),
            "candidates": leading.candidates,
            "splits": leading.splits,
            "reselected": leading.reselected,
            "figures": {
                name: {"in_sample": one.in_sample, "held_out": one.held_out, "largest_move": one.largest_move}
                for name, one in leading.figures.items()
            },
        },
        "note": found.note,
    }


def _part(one: HearingPart, estimate: EstimateJson) -> dict[str, Any]:
    return {
        "heard": estimate(one.heard),
        "credit": estimate(one.credit),
        "right_given_heard": estimate(one.right_given_heard),
        "right_given_missed": estimate(one.right_given_missed),
        "words_action_given_heard": estimate(one.words_action_given_heard),
        "recognition": estimate(one.recognition),
    }


def audit_json(found: Audit) -> dict[str, Any]:
    """A person's check of our classes."""
    return {
        "judged": found.judged,
        "agree": found.agree,
        "lo": found.lo,
        "hi": found.hi,
        "unjudged": found.unjudged,
        "differing": [
            {
                "target": row.target,
                "item": row.item_id,
                "variant": row.variant_id,
                "repeat": row.repeat,
                "ours": row.outcome.value,
                "theirs": theirs.value,
                "note": note,
            }
            for row, theirs, note in found.differing
        ],
    }
