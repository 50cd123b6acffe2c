"""The report's tables on hearing against deciding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rig.report.hearing_model import HearingReport, HearingSummary
from rig.report.layout import ABSENT, Table, mean, number, table
from rig.scoring.contrasts import CONTRASTS
from rig.scoring.hearing import Fate
from rig.stats.bootstrap import Estimate
from rig.stats.hearing import CORRECTIONS, FACTORS

_HEARD = "Heard: the target's own probe is right on that clip (strict; an answer that names no option is wrong)."
_CORRECTIONS = {"none": "none", "options": "1/k", "false_alarms": "false alarms"}
_DERIVED = "Some tool roles are derived from golds, not annotated. "
_TARGETS_SPLIT = 3
"""With more targets than this the splits are shown of the pooled rows alone; --json has all."""


def hearing_tables(hearing: HearingReport, roles_derived: bool) -> list[Table]:
    """All of them; one without rows has nothing to show. `roles_derived`: some roles are not annotated."""
    roles = _DERIVED if roles_derived else ""
    return [
        _credit(hearing, roles),
        _worth(hearing),
        _detection(hearing),
        _fates(hearing, roles),
        _parts(hearing, roles),
        _leading(hearing, roles),
    ]


def _rows(hearing: HearingReport) -> Iterable[tuple[str, HearingSummary]]:
    yield from ((name, found) for name, found in hearing.targets.items() if found is not None)
    yield from ((_pooled(name, found), found) for name, found in hearing.pooled.items())


def _pooled(name: str, found: HearingSummary) -> str:
    return f"{name} ({len(found.members)})"


def _credit(hearing: HearingReport, roles: str) -> Table:
    rows = [
        (
            name,
            mean(found.shares["heard"]),
            mean(found.credit["right_given_heard"]),
            mean(found.shares["strict_given_heard"]),
            mean(found.credit["right_given_missed"]),
            mean(found.shares["words_action_given_heard"]),
            str(found.without_probe),
        )
        for name, found in _rows(hearing)
    ]
    return table(
        "Hearing against deciding",
        (
            "target",
            "heard",
            "credit\nwhere heard",
            "strict pass\nwhere heard",
            "credit\nwhere missed",
            "words' action\nwhere heard",
            "no probe",
        ),
        rows,
        f"{_HEARD} Cue-bearing clips with a probe answer; credit = heard × credit where heard + missed × credit where "
        "missed. Words' action: on protective clips. No probe: clips without an answer that can be read, in no figure. "
        f"Pooled rows: {', '.join(hearing.pooled) or 'none (' + hearing.note + ')'}. {roles}Exploratory.",
    )


def _worth(hearing: HearingReport) -> Table:
    rows = [
        (
            name if correction == CORRECTIONS[0] else "",
            _CORRECTIONS[correction],
            mean(found.recognition[correction]),
            mean(found.perfect_hearing[correction], signed=True),
            mean(found.perfect_deciding[correction], signed=True),
            *(
                mean(found.shapley.by_correction[correction][factor] if found.shapley else None, signed=True)
                for factor in FACTORS
            ),
        )
        for name, found in _rows(hearing)
        for correction in CORRECTIONS
    ]
    columns: tuple[str, ...] = ("target", "guessing", "π", "perfect\nhearing", "perfect\ndeciding")
    if any(found.shapley for _, found in _rows(hearing)):
        columns = (*columns, *(f"gap: {factor.replace('_', ' ')}" for factor in FACTORS))
    return table(
        "What better hearing and better deciding would be worth",
        columns,
        [row[: len(columns)] for row in rows],
        "π = (P − g) / (1 − g), P the share heard; g: 0, 1/k of k options, or the false-alarm rate on clean clips "
        "spread over the cue options (own; a group's pooled). Perfect hearing: credit gained at π = 1 with the "
        "same policy; perfect deciding: at credit 1 where heard. Gap: credit to the leading group on shared clips, by "
        "Shapley; – where a factor is unknown because nothing, or everything, was heard. Exploratory.",
    )


def _detection(hearing: HearingReport) -> Table:
    names = ("d_prime", "criterion", "action_d_prime", "action_criterion")
    rows = [
        (name, *(mean(found.detection[one]) for one in names), mean(found.shares["false_alarm"]))
        for name, found in _rows(hearing)
    ]
    return table(
        "Detection",
        ("target", "d′", "c", "action d′", "action c", "false alarms"),
        rows,
        "Hit: a cue reported (action: a cue variant's action taken) on a cue clip; false alarm: on a clean sibling. "
        "Log-linear correction (half a case added to each count, one to each total). Exploratory.",
    )


def _fates(hearing: HearingReport, roles: str) -> Table:
    rows = [
        (name, *(_share(found.fates[fate]) for fate in Fate), str(found.cells))
        for name, found in sorted(_rows(hearing), key=lambda row: -_mean_of(row[1].fates[Fate.HEARD_NOT_ACTED]))
    ]
    return table(
        "What became of cues",
        ("target", *(fate.value.replace("_", " ") for fate in Fate), "n"),
        rows,
        f"{_HEARD} Shares of cue-bearing clips with a probe answer, first that fits; correct: strict pass. Heard, not "
        f"acted: no call, the words' action, another routine step, a question or a hand-over. {roles}Exploratory.",
    )


def _parts(hearing: HearingReport, roles: str) -> Table:
    pooled = {_pooled(name, found): found for name, found in hearing.pooled.items()}
    single = {name: found for name, found in hearing.targets.items() if found is not None}
    shown: Mapping[str, HearingSummary] = pooled if len(single) > _TARGETS_SPLIT else single | pooled
    rows = [
        (
            name,
            f"{contrast.replace('_', ' ')}:\n{group.replace('_', ' ')}",
            mean(part.heard),
            mean(part.recognition),
            mean(part.right_given_heard),
            mean(part.right_given_missed),
            mean(part.words_action_given_heard),
        )
        for name, found in shown.items()
        for contrast in CONTRASTS
        for group, part in found.parts[contrast].items()
    ]
    return table(
        "Hearing against deciding, by kind of clip",
        ("target", "clips", "heard", "π", "credit\nwhere heard", "credit\nwhere missed", "words' action\nwhere heard"),
        rows,
        f"{_HEARD} π by false alarms. Feelings: emotional delivery and sarcasm; facts: every other cue. Acute: panic, "
        "fear, gasping, grief, whispers, laughter; quiet: every other feeling. Rule: stated in the item's policy or "
        f"implicit. Sector: annotated, else the item's domain. {roles}Named after looking at data: exploratory.",
    )


def _leading(hearing: HearingReport, roles: str) -> Table:
    leading = hearing.leading
    rows = []
    if leading is not None:
        rows = [
            (name.replace("_", " "), number(one.in_sample), number(one.held_out), number(one.largest_move))
            for name, one in leading.figures.items()
        ]
    again = ABSENT if leading is None or leading.reselected is None else number(leading.reselected)
    return table(
        "The leading group, and what choosing it by its credit costs",
        ("figure", "in sample", "held out", "largest move"),
        rows,
        ""
        if leading is None
        else f"{', '.join(leading.members)}: highest cue-bearing credit of {leading.candidates} with a readable probe. "
        f"Held out: chosen on a random half of the items, measured on the other, both ways, mean of {leading.splits} "
        f"splits; {again} of the halves choose the same. {roles}Exploratory.",
    )


def _share(estimate: Estimate | None) -> str:
    return ABSENT if estimate is None else number(estimate.mean)


def _mean_of(estimate: Estimate | None) -> float:
    return 0.0 if estimate is None else estimate.mean
