"""A report as tables of plain text: what stands in which cell, with one line under each table that says which reading
and which definition it uses. Colours, borders and escaping belong to the renderers.
"""

from __future__ import annotations

from captures.capture import Ending
from rig.bank.models import CueKind
from rig.report.floor_tables import floor_tables
from rig.report.harm_tables import harm_tables
from rig.report.hearing_tables import hearing_tables
from rig.report.latency_tables import latency_tables
from rig.report.layout import ABSENT, Table, mean, number, p_value, plain, table
from rig.report.model import PROBE_READINGS, Report, TargetReport, Tested
from rig.report.null_tables import null_tables, repeat_tables

_ENDINGS = {
    Ending.CALLED: "called",
    Ending.DECLINED: "declined",
    Ending.ANSWERED: "an-\nswered",
    Ending.NO_ANSWER: "no\nanswer",
    Ending.UNFINISHED: "un-\nfinished",
    Ending.INFRASTRUCTURE_ERROR: "infra.\nerror",
    Ending.CONFIGURATION_ERROR: "config.\nerror",
    Ending.INPUT_ERROR: "input\nerror",
}
"""Ending → its heading, on lines short enough for one table."""

_DIFFERING_SHOWN = 10


def tables(report: Report, *, full: bool = True) -> list[Table]:
    """All tables that have something to show, in order; without `full`, those that a first look needs."""
    made = [
        _credit(report),
        _hearing(report),
        *((_credit_rules(report), _both_right(report)) if full else ()),
        _probe(report),
        _cue_kinds(report),
        _endings(report),
        *(null_tables(report) if full else ()),
        *repeat_tables(report),
        *(harm_tables(report.harm, report.audit) if full and report.harm else ()),
        *(hearing_tables(report.hearing, report.roles_derived) if full and report.hearing else ()),
        *latency_tables(report),
        _pacing(report),
        _second_turns(report),
        _transcripts(report),
        _agreement(report),
        *(floor_tables(report.floors) if report.floors else ()),
    ]
    return [table for table in made if table.rows]


def notes(report: Report) -> list[tuple[str, list[str]]]:
    """Headed lists that belong to the tables: what was not run, warnings, differing cells."""
    differing = [
        f"{cell.item_id}/{cell.variant_id or 'text twin'} ({cell.condition}, repeat {cell.repeat}): "
        + "; ".join(f"{target}: {answer}" for target, answer in cell.answers.items())
        for agreement in report.agreements
        for cell in agreement.differing
    ]
    if len(differing) > _DIFFERING_SHOWN:
        more = f"… and {len(differing) - _DIFFERING_SHOWN} more (all are in --json)"
        differing = [*differing[:_DIFFERING_SHOWN], more]
    lists = [
        ("No null test", list(report.without_null_test)),
        ("Cells on which targets differ", differing),
        ("Not run, or failed", list(report.not_run)),
        ("How far off our own marks were", list(report.calibrations)),
        ("Warnings", list(report.warnings)),
    ]
    return [(heading, [plain(line) for line in lines]) for heading, lines in lists if lines]


def _credit(report: Report) -> Table:
    rows = [
        (
            target.name,
            target.role.replace("_", " "),
            mean(target.credit_cue_bearing),
            mean(target.credit_neutral),
            mean(target.both_right),
        )
        for target in report.targets
    ]
    return table(
        "Credit",
        ("target", "role", "cue-bearing", "neutral", "both right"),
        rows,
        "Action score of the first turn on audio cells, more than one call earns 0; mean [95 % interval] n cells. "
        "Both right: strict pass on every variant of an item" + _eligible(report) + _self_check(report) + ". "
        "Intervals: item-clustered bootstrap unless a method is named. Invariant controls are left out. Exploratory.",
    )


def _credit_rules(report: Report) -> Table:
    rows = [
        (
            target.name,
            mean(target.credit_cue_bearing),
            mean(target.first_call_cue_bearing),
            mean(target.selection_cue_bearing),
            str(target.several_calls),
        )
        for target in report.targets
        if target.credit_cue_bearing is not None
    ]
    return table(
        "Credit by other rules",
        ("target", "released rule", "first call alone", "by the tool's\nname alone", "2+ calls"),
        rows,
        "Cue-bearing audio cells. Released rule: more than one call earns 0. First call alone: as if the others had "
        "not been made. By the tool's name: arguments are not judged. 2+ calls: scored turns on clips. Exploratory.",
    )


def _both_right(report: Report) -> Table:
    rows = []
    for target in report.targets:
        own, against, twin = target.both_right, target.both_right_against_null, target.twin_both_right
        if own is None:
            continue
        check = ABSENT if twin is None else f"{'FAILED, ' if twin.mean else ''}{number(twin.mean)} of {twin.items}"
        rows.append(
            (
                target.name,
                mean(own),
                f"{own.items} of {target.both_right_items}",
                check,
                mean(against.estimate if against else None, signed=True),
                p_value(against.holm_p if against else None),
                _verdict(target, against, report.null),
                number(against.estimate.detectable if against else None),
            )
        )
    return table(
        "Both right",
        (
            "target",
            "both right",
            "items measured\nof eligible",
            "twin\nself-check",
            "minus the\nnull's",
            "Holm p",
            "verdict",
            "detectable",
        ),
        rows,
        "Strict pass on every runnable variant of an item, of items with at least two such whose golds differ. Twin "
        "self-check: the same on the text twin, which must be 0, of the items with a twin. Minus the null's: on items "
        f"that both have (null: {report.null or 'none'}); Holm over the contestants. Detectable: difference found with "
        "80 % power. Exploratory.",
    )


def _second_turns(report: Report) -> Table:
    rows = [
        (
            target.name,
            str(target.second_turn.recorded),
            str(target.second_turn.answered),
            mean(target.second_turn.credit),
        )
        for target in report.targets
        if target.second_turn is not None
    ]
    return table(
        "Second turns",
        ("target", "recorded", "answered", "credit"),
        rows,
        "Cells whose first call asked the caller something that the item scripts an answer to. Credit of what the "
        "agent did then, by the second turn's own gold, on audio cells; in no other measure but the robustness column "
        "that says so. Exploratory.",
    )


def _transcripts(report: Report) -> Table:
    rows = [
        (target.name, mean(target.transcripts.rate), str(target.transcripts.empty))
        for target in report.targets
        if target.transcripts is not None
    ]
    return table(
        "Transcripts of the caller",
        ("target", "word error rate", "empty"),
        rows,
        "Substituted, deleted and inserted words over the words of the item, all clips together, without case and "
        "punctuation; [95 % interval] n clips. Of a cascade the transcriber's own text, before any rung; of a realtime "
        "agent the transcript that it states, which its model need not have used. Rows in --json. Exploratory.",
    )


def _eligible(report: Report) -> str:
    items = max((target.both_right_items for target in report.targets), default=0)
    return f", of the {items} with two or more variants run and golds that differ" if items else ""


def _self_check(report: Report) -> str:
    wrong = [target.name for target in report.targets if target.twin_both_right and target.twin_both_right.mean]
    if wrong:
        return f" (SELF-CHECK FAILED: text twins of {', '.join(wrong)} pass on differing golds)"
    checked = any(target.twin_both_right for target in report.targets)
    return " (self-check: 0 on every text twin)" if checked else ""


def _hearing(report: Report) -> Table:
    rows: list[tuple[str, ...]] = []
    for target in report.targets:
        shown = target.null_gain or target.level_contrast
        rows.append(
            (
                target.name,
                mean(target.audio_minus_twin, signed=True),
                mean(target.null_gain.estimate if target.null_gain else None, signed=True),
                mean(target.level_contrast.estimate if target.level_contrast else None, signed=True),
                p_value(shown.holm_p if shown else None),
                _verdict(target, shown, report.null),
                number(shown.estimate.detectable if shown else None),
            )
        )
    measured = [row for row in rows if any(cell != ABSENT for cell in row[1:4])]
    columns: tuple[str, ...] = (
        "target",
        "audio − twin",
        "null gain",
        "level contrast",
        "Holm p",
        "verdict",
        "detectable",
    )
    if not any(target.level_contrast for target in report.targets):
        columns = (*columns[:3], *columns[4:])
        measured = [(*row[:3], *row[4:]) for row in measured]
    against = report.null or "no words-only target, so no null gain"
    families = "; ".join(
        f"{family.name}: {len(family.tested)} tested"
        + (f", without a p-value and not counted: {', '.join(family.missing)}" if family.missing else "")
        for family in report.families
    )
    return table(
        "Hearing beyond the words",
        columns,
        measured,
        f"Credit on identical cue-bearing cells. Null gain: (audio − twin) minus that of the null ({against}); level "
        "contrast: audio − audio of the null, for targets without a text path. Confirmatory; contestants alone are "
        f"tested, Holm within each family ({families or 'none: nobody to test'}). Detectable: difference found with "
        "80 % power. Audio − twin: exploratory.",
    )


def _verdict(target: TargetReport, tested: Tested | None, null: str | None) -> str:
    if target.name == null:
        return "is the null"
    if tested is None:
        return ABSENT
    if tested.family is None:
        return "not tested"
    return tested.verdict or "no p-value"


def _probe(report: Report) -> Table:
    rows = [
        (
            f"{target.name}\n{target.probe_note}",
            *(mean(target.probe[name] if target.probe else None) for name in PROBE_READINGS),
        )
        for target in report.targets
    ]
    return table(
        "Probe: what was heard",
        ("target", *(name.replace("_", ",\n") for name in PROBE_READINGS)),
        rows,
        "Strict: the whole answer is one option; lenient: exactly one option occurs in it. An answer that names no "
        "option is wrong or missing, as each column says. Cue-bearing and neutral cells together. Exploratory.",
    )


def _cue_kinds(report: Report) -> Table:
    kinds = [kind for kind in CueKind if any(kind in target.credit_by_cue_kind for target in report.targets)]
    rows = [
        (kind.replace("_", " "), *(mean(target.credit_by_cue_kind.get(kind)) for target in report.targets))
        for kind in kinds
    ]
    if any(target.control_credit for target in report.targets):
        rows.append(("invariant control", *(mean(target.control_credit) for target in report.targets)))
    return table(
        "Credit by kind of cue",
        ("cue", *(target.name for target in report.targets)),
        rows,
        "Action score on cue-bearing audio cells, and on all audio cells of invariant controls, which are in no other "
        "figure; mean [95 % interval] n cells. Exploratory.",
    )


_BLIND = "Answered: ended normally, where tool calls cannot be seen; its action is not applicable. "


def _endings(report: Report) -> Table:
    blind = any(target.endings[Ending.ANSWERED] for target in report.targets)
    shown = [ending for ending in Ending if ending is not Ending.ANSWERED or blind]
    rows = [
        (
            target.name,
            *(str(target.endings[ending]) for ending in shown),
            str(target.attempts),
            str(target.retried),
            str(target.several_calls),
            str(target.co_executed),
        )
        for target in report.targets
    ]
    derived = " (some tool roles are derived from golds, not annotated)" if report.roles_derived else ""
    return table(
        "Endings",
        (
            "target",
            *(_ENDINGS[ending] for ending in shown),
            "tries",
            "retried",
            "2+\ncalls",
            "did\nboth",
        ),
        rows,
        "Cells of all conditions by their last attempt (tries: all attempts); the three errors are not scored, no "
        "answer is scored as wrong. "
        f"{_BLIND if blind else ''}"
        f"Did both: protective call and the words' default in one turn{derived}. Exploratory.",
    )


def _pacing(report: Report) -> Table:
    rows = [
        (
            target.name,
            number(target.pacing.p50_ms, 2),
            number(target.pacing.p99_ms, 2),
            number(target.pacing.max_ms, 2),
            str(target.pacing.captures),
            ABSENT if target.chunk_ms is None else str(target.chunk_ms),
        )
        for target in report.targets
        if target.pacing is not None
    ]
    return table(
        "Pacing: lateness of our chunks, milliseconds",
        ("target", "p50", "p99", "max", "captures", "chunk ms"),
        rows,
        "Sent minus due. p50: median of the captures' medians; p99 and max: the worst capture's. Exploratory.",
    )


def _agreement(report: Report) -> Table:
    rows = [
        (agreement.group, ", ".join(agreement.targets), f"{agreement.agree} of {agreement.cells} cells agree")
        for agreement in report.agreements
    ]
    return table(
        "Agreement",
        ("same", "targets", "agreement"),
        rows,
        "Same first call (name and arguments) or no call; on a probe the same strict reading. Cells measured on at "
        "least two of them. Exploratory.",
    )
