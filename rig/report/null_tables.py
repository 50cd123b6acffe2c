"""The report's tables on the null test's company, robustness, repeats, and verdicts compared."""

from __future__ import annotations

from rig.report.layout import ABSENT, Table, mean, number, p_value, table
from rig.report.model import Report, Tested
from rig.report.null_model import NullTests, VerdictRule
from rig.report.robustness import COLUMNS
from rig.stats.bootstrap import Estimate
from rig.stats.robustness import LeftOut

_FLAKES_SHOWN = 20
_TRUTH = {True: "yes", False: "no", None: ABSENT}


def null_tables(report: Report) -> list[Table]:
    """All of them; one without rows has nothing to show."""
    return [
        _every_null(report),
        _company(report),
        _robustness(report),
        _left_out(report),
        _acting(report),
        _disagreements(report),
    ]


def repeat_tables(report: Report) -> list[Table]:
    """Reliability of repeats; without rows where no clip was answered twice."""
    return [_repeats(report), _flakes(report)]


def _measured(report: Report) -> list[tuple[str, NullTests]]:
    return [(target.name, target.null_tests) for target in report.targets if target.null_tests is not None]


def _mark(name: str, found: NullTests) -> str:
    return name if found.measure == "null gain" else f"{name}\nlevel contrast"


def _gain(tested: Tested | None) -> str:
    if tested is None:
        return ABSENT
    return f"{mean(tested.estimate, signed=True)}\n{_verdict(tested)}"


def _verdict(tested: Tested) -> str:
    if tested.family is None and tested.verdict is None:
        return "not tested"
    return f"{tested.verdict or 'no p-value'}, p {p_value(tested.holm_p)}"


def _every_null(report: Report) -> Table:
    rows = [
        (
            _mark(name, found),
            *(_gain(found.against.get(null)) for null in report.nulls),
            ABSENT
            if found.every_null is None
            else f"{found.every_null.verdict or 'not tested'}\np {p_value(found.every_null.holm_p)}",
        )
        for name, found in _measured(report)
        if len(report.nulls) > 1
    ]
    return table(
        "Gain over each null",
        ("target", *(f"over {null}" for null in report.nulls), "over every\nnull"),
        rows,
        "Null gain, or the level contrast where said, on cue-bearing cells identical with that null's; p after Holm "
        "within the family of that null, over the contestants. Over every null: intersection–union test, the largest "
        "of these p-values. Confirmatory: the first null; the others are exploratory. Item-clustered bootstrap.",
    )


def _company(report: Report) -> Table:
    rows = [
        (
            _mark(name, found),
            _ninety(next(iter(found.against.values())).estimate),
            " / ".join(_TRUTH[holds] for holds in found.equivalent.values()),
            _gain(found.shift),
            ABSENT
            if found.incomplete is None
            else f"{mean(found.incomplete, signed=True)}\n{found.incomplete_cells} incomplete",
        )
        for name, found in _measured(report)
    ]
    notes = {found.shift_note for _, found in _measured(report) if found.measure == "null gain"}
    margins = " / ".join(f"±{margin:.2f}" for _, found in _measured(report)[:1] for margin in found.equivalent)
    return table(
        "Beside the null test",
        ("target", "90 % interval\nof the gain", f"equivalent\n{margins}", "shift test", "incomplete cells too"),
        rows,
        "Equivalent: the 90 % interval lies inside the margins (two one-sided tests). Shift test: own audio − twin "
        f"less the highest null's upper 95 % bound ({'; '.join(sorted(notes)) or 'no text path'}), bootstrap p, Holm "
        "over the contestants. Incomplete cells too: mean audio − mean twin less that of the null over all cells, "
        "not paired, with the number of cells that lack a part. Exploratory.",
    )


def _ninety(estimate: Estimate) -> str:
    if estimate.lo90 is None or estimate.hi90 is None:
        return "no interval"
    return f"[{number(estimate.lo90, signed=True)}, {number(estimate.hi90, signed=True)}]"


def _robustness(report: Report) -> Table:
    shown = [
        name
        for name in COLUMNS
        if any(target.robustness is not None and target.robustness.columns[name] for target in report.targets)
    ]
    rows = [
        (_mark(target.name, target.null_tests), *(_gain(target.robustness.columns[column]) for column in shown))
        for target in report.targets
        if target.null_tests is not None and target.robustness is not None and shown
    ]
    absent: dict[str, None] = {}
    for target in report.targets:
        for column, why in target.robustness.notes.items() if target.robustness else ():
            if column not in shown:
                absent[f"{' '.join(COLUMNS[column].split())}: {why}"] = None
    return table(
        "Robustness of the gain",
        ("target", *(COLUMNS[name] for name in shown)),
        rows,
        "Null gain, or the level contrast where said, under one other choice each; p after Holm within the column. "
        "Excess over-reaction: a cue variant's action on clean neutral clips, less the null's rate, where positive. "
        "Second turn scored: its credit in place of the first turn's on clips where it was measured, the null's too. "
        "All stacked: first turn, no legacy item, over every null."
        + (f" Not measured: {'; '.join(absent)}." if absent else "")
        + " Exploratory.",
    )


def _left_out(report: Report) -> Table:
    names = list(
        dict.fromkeys(
            name
            for target in report.targets
            if target.robustness is not None
            for name, found in target.robustness.left_out.items()
            if found is not None
        )
    )
    rows = [
        (target.name, *(_range(target.robustness.left_out[name]) for name in names))
        for target in report.targets
        if target.robustness is not None and names
    ]
    return table(
        "Gain with each group left out in turn",
        ("target", *(f"each {name}" for name in names)),
        rows,
        "Lowest to highest mean gain over the first null, and the groups left out then; the lowest lower 95 % bound of "
        "all. Sector: as annotated, else the item's domain; voice vendor: who rendered the clip. Items or clips of no "
        "group always stay. Exploratory.",
    )


def _range(found: LeftOut | None) -> str:
    if found is None:
        return ABSENT
    bound = "no interval" if found.lowest_lo is None else f"bound {number(found.lowest_lo, signed=True)}"
    return (
        f"{number(found.lowest, signed=True)} to {number(found.highest, signed=True)}\n"
        f"without {found.lowest_without} / {found.highest_without}\n{bound}, {found.groups} groups"
    )


def _acting(report: Report) -> Table:
    rows = [
        (
            name,
            mean(found.acts_on_audio),
            mean(found.acts_on_twin),
            {True: "LOOK: the gain may rest on the twin", False: "no", None: ABSENT}[found.twin_seldom_acts],
        )
        for name, found in _measured(report)
        if found.acts_on_twin is not None
    ]
    return table(
        "How often it acts at all",
        ("target", "on clips", "on text twins", "twin seldom acts"),
        rows,
        "Share of audio cells, and of text twins, with any tool call; mean [95 % interval] n. Twin seldom acts: the "
        "gain is above 0, the twin calls a tool on fewer than half of the items whose golds are all calls, and their "
        "clips are acted on more often (95 % interval above 0). Exploratory.",
    )


def _disagreements(report: Report) -> Table:
    found = report.disagreements
    rows = [_rule(rule) for rule in found.rules] if found is not None else []
    if found is not None:
        rows.append(("words-only null test", f"{len(found.above)} of {len(found.tested)}", ABSENT, ABSENT, ABSENT))
    return table(
        "Who acts on sound, by other rules",
        ("verdict read off", "credits", "differs on", "which", "rank ρ"),
        rows,
        "Contestants with a verdict of the null test (null gain above 0 after Holm). Differs: [95 % bootstrap range, "
        "items drawn for all targets together, the null test's verdicts and thresholds held fixed]; rules that are "
        "tests themselves have none; a range of one number says that no draw changed it, not that it is certain. ρ: "
        "Spearman's correlation of the rule's measure with the null gain [95 %]. Probe: cue-bearing clips, strict, an "
        "answer that names no option is wrong, or left out where said; pair-level: right on every variant of an item. "
        "Exploratory.",
    )


def _rule(rule: VerdictRule) -> tuple[str, ...]:
    name = rule.name if rule.threshold is None or "best" not in rule.name else f"{rule.name} {rule.threshold:.2f}"
    span = "" if rule.lo is None or rule.hi is None else f" [{rule.lo:g}, {rule.hi:g}]"
    rho = ABSENT if rule.rho is None else number(rule.rho)
    if rule.rho_lo is not None and rule.rho_hi is not None:
        rho += f" [{number(rule.rho_lo)}, {number(rule.rho_hi)}]"
    wrongly = [one for one in rule.disagree if one in rule.credited]
    missed = [one for one in rule.disagree if one not in rule.credited]
    which = "\n".join(
        f"{verb} {', '.join(names)}" for verb, names in (("credits", wrongly), ("misses", missed)) if names
    )
    return (
        f"{name}\n{rule.note}" if rule.note else name,
        f"{len(rule.credited)} of {rule.compared}",
        f"{len(rule.disagree)}{span}",
        which or ABSENT,
        rho,
    )


def _repeats(report: Report) -> Table:
    rows = [
        (
            f"{target.name}\n{found.rollouts} rollouts",
            str(k),
            mean(found.pass_all[k]),
            mean(found.pass_any[k]),
            mean(found.agreement) if k == max(found.pass_all) else ABSENT,
        )
        for target in report.targets
        if (found := target.repeats) is not None
        for k in found.pass_all
    ]
    return table(
        "Reliability of repeats",
        ("target", "k", "pass^k", "pass@k", "pairs that agree"),
        rows,
        "Strict pass on audio cells with at least k rollouts, without bias: pass^k, the chance that k rollouts all "
        "pass; pass@k, that at least one does. Pairs of rollouts of one cell agree when the first call (name and "
        "arguments) is the same, or both make none. Intervals draw items, and rollouts within cells. Exploratory.",
    )


def _flakes(report: Report) -> Table:
    flakes = [
        (target.name, f"{flake.item_id}/{flake.variant_id}", f"{flake.passed} of {flake.rollouts}")
        for target in report.targets
        if target.repeats is not None
        for flake in target.repeats.flakes
    ]
    more = f" {len(flakes) - _FLAKES_SHOWN} more are in --json." if len(flakes) > _FLAKES_SHOWN else ""
    return table(
        "Flakes",
        ("target", "clip", "passed"),
        flakes[:_FLAKES_SHOWN],
        f"Clips that pass on some rollouts and not on others.{more} Exploratory.",
    )
