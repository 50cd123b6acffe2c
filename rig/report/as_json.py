"""A report as JSON-ready data: the interface that scripts rely on. What does not apply or was not measured is null."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rig.report.floor_tables import floors_json
from rig.report.harm_json import audit_json, harm_json, harm_report_json, hearing_json, hearing_report_json
from rig.report.model import Agreement, LatencySummary, PacingSummary, Report, SecondTurns, TargetReport, Tested
from rig.report.null_json import disagreements_json, null_tests_json, repeats_json, robustness_json
from rig.report.plots import latency_against_credit
from rig.report.transcripts import Transcripts
from rig.stats.bootstrap import Estimate

FORMAT = 1


def report_json(report: Report) -> dict[str, Any]:
    """Plain dictionaries, lists, numbers and strings; no number is ever NaN or infinite."""
    return {
        "format": FORMAT,
        "runs": list(report.runs),
        "bank": report.bank,
        "null": report.null,
        "nulls": list(report.nulls),
        "verdicts": disagreements_json(report.disagreements),
        "targets": {target.name: _target(target) | _harm_and_hearing(report, target.name) for target in report.targets},
        "families": {
            family.name: {"tested": list(family.tested), "missing": list(family.missing)} for family in report.families
        },
        "agreement": [_agreement(agreement) for agreement in report.agreements],
        "without_null_test": list(report.without_null_test),
        "confirmatory": ["null_gain", "level_contrast"],
        "not_run": list(report.not_run),
        "calibrations": list(report.calibrations),
        "warnings": list(report.warnings),
        "void_limit_ms": list(report.void_limit_ms),
        "audible_version": report.audible_version,
        "latency_origins": dict(report.origins),
        "latency_against_credit": [
            {
                "target": point.target,
                "latency": point.latency,
                "p50": point.p50,
                "lo": point.lo,
                "hi": point.hi,
                "credit": _estimate(point.credit),
            }
            for point in latency_against_credit(report)
        ],
        "harm": harm_report_json(report.harm, _estimate, tested_json) if report.harm else None,
        "hearing": hearing_report_json(report.hearing, _estimate) if report.hearing else None,
        "floors": floors_json(report.floors) if report.floors else None,
        "audit": audit_json(report.audit) if report.audit else None,
    }


def _harm_and_hearing(report: Report, name: str) -> dict[str, Any]:
    return {
        "harm": harm_json(report.harm.targets[name], _estimate, tested_json) if report.harm else None,
        "hearing": hearing_json(report.hearing.targets[name], _estimate) if report.hearing else None,
    }


def _target(target: TargetReport) -> dict[str, Any]:
    both_right = _estimate(target.both_right)
    if both_right is not None:
        both_right["against_null"] = tested_json(target.both_right_against_null)
        both_right["text_twin"] = _estimate(target.twin_both_right)
        both_right["eligible_items"] = target.both_right_items
    return {
        "role": target.role,
        "adapter": target.adapter,
        "model": target.model,
        "credit": {
            "cue_bearing": _estimate(target.credit_cue_bearing),
            "neutral": _estimate(target.credit_neutral),
            "selection": _estimate(target.selection_cue_bearing),
            "first_call": _estimate(target.first_call_cue_bearing),
            "control": _estimate(target.control_credit),
            "by_cue_kind": {kind.value: _estimate(found) for kind, found in target.credit_by_cue_kind.items()},
        },
        "audio_minus_twin": _estimate(target.audio_minus_twin),
        "null_gain": tested_json(target.null_gain),
        "level_contrast": tested_json(target.level_contrast),
        "both_right": both_right,
        "probe": _probe(target.probe),
        "probe_note": target.probe_note,
        "endings": {ending.value: count for ending, count in target.endings.items()},
        "attempts": target.attempts,
        "retried": target.retried,
        "several_calls": target.several_calls,
        "co_executed": target.co_executed,
        "latency": {name: _latency(found) for name, found in target.latency.items()},
        "latency_parts": {name: _latency(found) for name, found in target.latency_parts.items()},
        "pacing": _pacing(target.pacing),
        "chunk_ms": target.chunk_ms,
        "pace": target.pace,
        "second_turn": _second_turns(target.second_turn),
        "null_tests": null_tests_json(target.null_tests, _estimate, tested_json),
        "robustness": robustness_json(target.robustness, tested_json),
        "repeats": repeats_json(target.repeats, _estimate),
        "transcripts": _transcripts(target.transcripts),
        "provenance": dict(target.provenance),
        "gaps": None if target.gaps is None else asdict(target.gaps),
    }


def _transcripts(found: Transcripts | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "word_error_rate": _estimate(found.rate),
        "empty": found.empty,
        "rows": [
            {
                "item": row.item_id,
                "variant": row.variant_id,
                "condition": row.condition.value,
                "repeat": row.repeat,
                "word_error_rate": row.found.rate,
                "tags": None if row.tags is None else list(row.tags),
            }
            for row in found.rows
        ],
    }


def _second_turns(found: SecondTurns | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"recorded": found.recorded, "answered": found.answered, "credit": _estimate(found.credit)}


def _estimate(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {
        "mean": estimate.mean,
        "lo": estimate.lo,
        "hi": estimate.hi,
        "n": estimate.n,
        "items": estimate.items,
        "method": estimate.method,
    }


def tested_json(tested: Tested | None) -> dict[str, Any] | None:
    """Estimate, p-values and verdict; None where it was not tested."""
    found = _estimate(tested.estimate) if tested else None
    if tested is None or found is None:
        return None
    return found | {
        "p": tested.estimate.p,
        "holm_p": tested.holm_p,
        "family": tested.family,
        "verdict": tested.verdict,
        "null": tested.null,
        "detectable": tested.estimate.detectable,
    }


def _probe(probe: Mapping[str, Estimate | None] | None) -> dict[str, Any] | None:
    return None if probe is None else {name: _estimate(found) for name, found in probe.items()}


def _latency(found: LatencySummary | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "p50": found.p50,
        "p90": found.p90,
        "p95": found.p95,
        "p99": found.p99,
        "n": found.n,
        "void": found.void,
        "p50_lo": found.lo,
        "p50_hi": found.hi,
        "p50_method": found.method,
    }


def _pacing(found: PacingSummary | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"p50_ms": found.p50_ms, "p99_ms": found.p99_ms, "max_ms": found.max_ms, "captures": found.captures}


def _agreement(agreement: Agreement) -> dict[str, Any]:
    return {
        "group": agreement.group,
        "targets": list(agreement.targets),
        "agree": agreement.agree,
        "cells": agreement.cells,
        "differing": [
            {
                "item": cell.item_id,
                "variant": cell.variant_id,
                "condition": cell.condition.value,
                "repeat": cell.repeat,
                "answers": dict(cell.answers),
            }
            for cell in agreement.differing
        ],
    }
