"""Runs + bank → a report, as data. Scores what the captures hold; lays out nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from captures.capture import Capture, Condition, Ending
from captures.playback import AUDIBLE_VERSION
from rig.bank.models import Bank, CueKind
from rig.report.agreement import agreements
from rig.report.disagreement import disagreements
from rig.report.families import corrected
from rig.report.harm import harm_report
from rig.report.hearing import DEFAULT_LEADING, groups_of, hearing_report
from rig.report.model import PROBE_READINGS, Family, Report, TargetReport, Tested
from rig.report.null_tests import null_test_company
from rig.report.provenance import calibration, device_latencies, provenance
from rig.report.repeats import repeats
from rig.report.robustness import robustness
from rig.report.runs import LoadedRun, ReportError, TargetRun
from rig.report.scored import Scored, scored, scored_runs
from rig.report.second_turns import second_turns
from rig.report.timing import ORIGINS, gaps, latency_summaries, pacing_summary, part_summaries
from rig.report.transcripts import transcripts
from rig.scoring.cells import WORDS_ONLY, ScoredCell
from rig.scoring.harm import harm_cells
from rig.scoring.hearing import heard_cells
from rig.scoring.probe import NoOption, Reading
from rig.stats import measures
from rig.stats.bootstrap import Estimate, Sample, difference, proportion

CONTESTANT = "contestant"
NULL_GAIN, LEVEL_CONTRAST, BOTH_RIGHT = "null gain", "level contrast", "both right against the null"

_ERRORS_NAMED = 3
"""Different messages of errors shown per target."""


def build_report(
    runs: Sequence[Path], bank: Bank | None = None, nulls: Sequence[str] = (), leading: int = DEFAULT_LEADING
) -> Report:
    """Score the runs and summarise them.

    `bank`: by default the one that the runs name. `nulls`: words-only targets to measure gains against, the first of
    which gives the confirmatory null gain; by default the targets with that role.
    `leading`: how many contestants the leading group has.

    Raises:
        ReportError: no run, runs over different banks, an unknown null.
        RunFolderError: a folder that is no run or is damaged.
        BankError: the bank cannot be read.
        BankMismatchError: captures of items that the bank lacks.
    """
    return report_of(scored_runs(runs, bank), nulls, leading)


def report_on(
    loaded: Sequence[LoadedRun], bank: Bank | None = None, nulls: Sequence[str] = (), leading: int = DEFAULT_LEADING
) -> Report:
    """As `build_report`, on runs that were read already."""
    return report_of(scored(loaded, bank), nulls, leading)


def report_of(runs: Scored, nulls: Sequence[str] = (), leading: int = DEFAULT_LEADING) -> Report:
    """As `build_report`, on runs that were scored already. Raises `ReportError` for an unknown null alone."""
    # The bootstrap's products are narrow: more threads wait for one another, and cost whoever else is at work.
    with threadpool_limits(limits=1, user_api="blas"):
        return _report_of(runs, nulls, leading)


def _report_of(runs: Scored, nulls: Sequence[str], leading: int) -> Report:
    loaded, bank, targets, cells = runs.loaded, runs.bank, runs.targets, runs.cells
    nulls = _nulls(targets, nulls)
    null = nulls[0] if nulls else None
    runnable = {
        (cell.item_id, cell.variant_id) for own in cells.values() for cell in own if cell.condition is Condition.AUDIO
    }
    reports = [
        _target_report(target, cells[target.name], null, cells[null] if null else [], bank, runnable)
        for target in targets
    ]
    contestants = [target.name for target in targets if target.role == CONTESTANT and target.name not in nulls]
    reports, families = _corrected(reports, contestants)
    classified = {name: harm_cells(own, bank) for name, own in cells.items()}
    heard = {name: heard_cells(own, classified[name], bank) for name, own in cells.items()}
    groups, ungrouped = groups_of(heard, contestants, leading)
    harm = harm_report(classified, heard, bank, contestants, null, groups)
    if nulls:
        company, more = null_test_company(reports, cells, nulls, contestants, bank)
        families = (*families, *more)
        captures = {target.name: target.captures for target in targets}
        against = {name: found.against for name, found in company.items()}
        robust = robustness(reports, cells, classified, captures, against, nulls, contestants, bank)
        reports = [
            replace(report, null_tests=company.get(report.name), robustness=robust.get(report.name))
            for report in reports
        ]
    return Report(
        runs=tuple(str(run.path) for run in loaded),
        bank=f"{bank.name} {bank.version}".strip(),
        targets=tuple(reports),
        null=null,
        nulls=tuple(nulls),
        disagreements=disagreements(reports, cells, null, bank),
        families=(*families, *harm.families),
        agreements=agreements(targets, cells),
        calibrations=tuple(
            line
            for run in {target.run.path: target.run for target in targets}.values()
            for line in (calibration(run), *device_latencies(run))
        ),
        not_run=tuple(line for target in targets for line in _not_run(target))
        + tuple(f"input: {line}" for run in loaded for line in run.run_json.get("input_errors") or ()),
        warnings=(
            *runs.warnings,
            *_unforced_turns(targets),
            *_cut_in_on(targets),
            *(line for run in loaded for line in run.warnings),
        ),
        without_null_test=tuple(_untested(reports, nulls)),
        void_limit_ms=tuple(sorted({run.void_limit_s * 1000 for run in loaded})),
        roles_derived=any(cell.roles_derived for own in cells.values() for cell in own),
        audible_version=AUDIBLE_VERSION,
        origins=ORIGINS,
        harm=harm,
        hearing=hearing_report(heard, classified, groups, ungrouped),
    )


def _untested(reports: Sequence[TargetReport], nulls: Sequence[str]) -> list[str]:
    """Says which contestants have no null test, and why."""
    contestants = [report for report in reports if report.role == CONTESTANT and report.name not in nulls]
    acted = [report for report in contestants if report.credit_cue_bearing is not None]
    if acted and not nulls:
        return [
            "no words-only target, so no null test: nothing here shows that anybody acts on sound; "
            "run one with role words_only, or name one with --null"
        ]
    lines = []
    if names := [report.name for report in acted if report.null_gain is None and report.level_contrast is None]:
        lines.append(
            f"no null test for {', '.join(names)}: no cue-bearing cell on which clip and text twin (or, without a text "
            f"path, the clip) were measured for it and for {nulls[0]}"
        )
    if names := [report.name for report in contestants if report.credit_cue_bearing is None]:
        lines.append(f"no cue-bearing clip was scored for {', '.join(names)}: no null test, no headline credit")
    one = [
        report.name
        for report in acted
        if (tested := report.null_gain or report.level_contrast) is not None and tested.estimate.items < 2
    ]
    if one:
        lines.append(f"one item alone for {', '.join(one)}: no interval and no test can be had from one cluster")
    return lines


def _unforced_turns(targets: Sequence[TargetRun]) -> list[str]:
    """Says which targets end turns by themselves, with no way to commit one."""
    names = []
    for target in targets:
        able = target.settings.get("capabilities")
        if isinstance(able, Mapping) and able.get("deterministic_turns") is False:
            names.append(target.name)
    what = "no turn can be committed there, so the peer alone decides what it answers to; repeats may differ by that"
    return [f"turns are not deterministic on {', '.join(names)}: {what}"] if names else []


def _cut_in_on(targets: Sequence[TargetRun]) -> list[str]:
    """Says which targets were cut in on, since their scores are not those of whole answers."""
    names = [target.name for target in targets if any(capture.barge_in for capture in target.captures)]
    what = "endings and credit there are those of answers up to the cut; what followed stands in the captures"
    return [f"the caller cut in on {', '.join(names)}: {what}"] if names else []


def _nulls(targets: Sequence[TargetRun], nulls: Sequence[str]) -> list[str]:
    names = [target.name for target in targets]
    if unknown := [name for name in nulls if name not in names]:
        raise ReportError(f"null {', '.join(unknown)}: no such target; there are: {', '.join(names)}")
    return list(dict.fromkeys(nulls)) or [target.name for target in targets if target.role == WORDS_ONLY]


def _target_report(
    target: TargetRun,
    cells: Sequence[ScoredCell],
    null: str | None,
    null_cells: Sequence[ScoredCell],
    bank: Bank,
    runnable: set[tuple[str, str]],
) -> TargetReport:
    tested = null if null != target.name else None
    has_twin = any(cell.condition is Condition.TEXT_TWIN and cell.scored for cell in cells)
    both_right = measures.both_right(cells, bank, runnable)
    audio = [cell for cell in cells if cell.condition is Condition.AUDIO and cell.action is not None]
    probe, probe_note = _probe(target, cells)
    streamed = any(capture.pacing is not None and capture.pacing.chunks for capture in target.captures)
    return TargetReport(
        name=target.name,
        role=target.role,
        adapter=str(target.settings.get("adapter") or (target.captures[0].adapter if target.captures else "")),
        model=str(target.settings.get("model") or ""),
        chunk_ms=target.run.chunk_ms if streamed else None,
        pace=target.run.pace if streamed else None,
        credit_cue_bearing=proportion(measures.credit(cells, neutral=False)),
        credit_neutral=proportion(measures.credit(cells, neutral=True)),
        credit_by_cue_kind={
            kind: estimate
            for kind in CueKind
            if (estimate := proportion(measures.credit(cells, neutral=False, cue_kind=kind)))
        },
        selection_cue_bearing=proportion(measures.selection_credit(cells)),
        first_call_cue_bearing=proportion(measures.first_call_credit(cells)),
        audio_minus_twin=difference(measures.audio_minus_twin(cells)),
        null_gain=_tested(measures.null_gain(cells, null_cells), tested),
        has_text_path=has_twin,
        level_contrast=None if has_twin else _tested(measures.level_contrast(cells, null_cells), tested),
        both_right=proportion(both_right),
        both_right_against_null=_tested(
            measures.paired(both_right, measures.both_right(null_cells, bank, runnable)), tested
        ),
        twin_both_right=proportion(measures.both_right(cells, bank, runnable, Condition.TEXT_TWIN)),
        control_credit=proportion(measures.control_credit(cells)),
        probe=probe,
        probe_note=probe_note,
        endings={ending: sum(capture.ending is ending for capture in target.captures) for ending in Ending},
        attempts=target.attempts,
        retried=target.retried,
        several_calls=sum(cell.action is not None and cell.action.calls > 1 for cell in audio),
        co_executed=sum(cell.co_executed for cell in audio),
        latency=latency_summaries(target.captures, target.run.void_limit_s),
        latency_parts=part_summaries(target.captures, target.run.void_limit_s),
        pacing=pacing_summary(target.captures),
        second_turn=second_turns(target.captures, bank),
        both_right_items=measures.both_right_items(bank, runnable),
        repeats=repeats(target.captures, cells),
        transcripts=transcripts(target.captures, bank),
        provenance=provenance(target),
        gaps=gaps(target.captures),
    )


def _tested(samples: Iterable[Sample], null: str | None) -> Tested | None:
    estimate = difference(samples) if null is not None else None
    return Tested(estimate, null) if estimate is not None and null is not None else None


def _probe(target: TargetRun, cells: Sequence[ScoredCell]) -> tuple[Mapping[str, Estimate | None] | None, str]:
    asked = [cell for cell in cells if cell.condition is Condition.PROBE and cell.headline]
    if target.role == WORDS_ONLY:
        return None, "words only: it cannot hear"
    if not any(cell.probe is not None for cell in asked):
        return None, "no probe was run" if not asked else "no answer could be read"
    readings: dict[str, Estimate | None] = {}
    for name in PROBE_READINGS:
        reading, no_option = _axes(name)
        readings[name] = proportion(measures.probe_accuracy(cells, reading, no_option))
    sources = Counter(cell.probe.source for cell in asked if cell.probe is not None)
    unread = sum(cell.probe is None for cell in asked)
    note = ", ".join(f"{n} by {source.replace('_', ' ')}" for source, n in sorted(sources.items()))
    return readings, note + (f", {unread} without a reading" if unread else "")


def _axes(name: str) -> tuple[Reading, NoOption]:
    return ("strict" if name.startswith("strict") else "lenient"), ("wrong" if name.endswith("wrong") else "missing")


def _corrected(
    reports: Sequence[TargetReport], contestants: Sequence[str]
) -> tuple[list[TargetReport], tuple[Family, ...]]:
    """The reports with Holm's corrections, and the families they were made in. Only contestants are tested."""
    done = {report.name: report for report in reports}
    families = []
    for field, name in (
        ("null_gain", NULL_GAIN),
        ("level_contrast", LEVEL_CONTRAST),
        ("both_right_against_null", BOTH_RIGHT),
    ):
        found, family = corrected(
            {
                report.name: getattr(report, field)
                for report in reports
                if report.name in contestants and _belongs(report, field)
            },
            name,
        )
        for target, tested in found.items():
            change: dict[str, Any] = {field: tested}
            done[target] = replace(done[target], **change)
        families += [family] if family else []
    return list(done.values()), tuple(families)


def _belongs(report: TargetReport, field: str) -> bool:
    """Whether a contestant is tested by its null gain or, for want of a text path, by its level contrast."""
    if field == "both_right_against_null":
        return True
    return report.has_text_path is (field == "null_gain")


def _not_run(target: TargetRun) -> list[str]:
    """What a target was not asked, did not finish, or failed at; one line each."""
    run, lines = target.run, []
    for left in run.run_json.get("not_planned") or ():
        if target.original == left.get("target"):
            lines.append(
                f"{target.name}: {left.get('cells')} {left.get('condition')} cells not run: {left.get('reason')}"
            )
    planned = run.section("planned").get(target.original)
    if isinstance(planned, Mapping):
        missing = sum(planned.values()) - sum(capture.finished for capture in target.captures)
        if missing > 0:
            lines.append(f"{target.name}: {missing} of {sum(planned.values())} planned cells have no finished capture")
    for ending in (Ending.CONFIGURATION_ERROR, Ending.INPUT_ERROR, Ending.INFRASTRUCTURE_ERROR):
        lines += _errors(target, ending)
    return lines


def _errors(target: TargetRun, ending: Ending) -> list[str]:
    messages = Counter(_message(capture) for capture in target.captures if capture.ending is ending)
    lines = [
        f"{target.name}: {ending.replace('_', ' ')} in {n} {'cell' if n == 1 else 'cells'}: {message}"
        for message, n in messages.most_common(_ERRORS_NAMED)
    ]
    if left := len(messages) - len(lines):
        lines.append(f"{target.name}: {left} more kinds of {ending.replace('_', ' ')}")
    return lines


def _message(capture: Capture) -> str:
    if capture.error is None:
        return capture.ending_detail or "no message"
    return " ".join(part for part in (capture.error.code, capture.error.message) if part)
