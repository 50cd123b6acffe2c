"""Heard cells of all targets → what the report says of hearing against deciding. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rig.report.hearing_model import (
    HearingPart,
    HearingReport,
    HearingSummary,
    LeadingGroup,
    Shapley,
)
from rig.scoring.contrasts import CONTRASTS
from rig.scoring.harm import HarmCell, audio_only
from rig.scoring.hearing import Heard, HeardCell
from rig.stats import hearing as stats
from rig.stats.bootstrap import Sample
from rig.stats.harm import rate
from rig.stats.hearing import CORRECTIONS
from rig.stats.joint import Joint
from rig.stats.leading import SPLITS, cross_fitted, leaders

ALL, LEADING = "all contestants", "leading group"
DEFAULT_LEADING = 4


def groups_of(heard: Mapping[str, Heard], contestants: Sequence[str], k: int) -> tuple[dict[str, tuple[str, ...]], str]:
    """Groups to pool, name → contestants with a readable probe, and why there is no leading group."""
    readable = [name for name in contestants if heard[name].cue]
    if len(readable) < 2:
        return {}, "one contestant or none has a probe that can be read: nothing to pool"
    found = {ALL: tuple(readable)}
    if len(readable) <= k:
        return found, f"a leading group of {k} needs more than {k} contestants with a readable probe"
    return found | {LEADING: leaders({name: _credit(heard[name]) for name in readable}, k)}, ""


def hearing_report(
    heard: Mapping[str, Heard],
    harm: Mapping[str, Sequence[HarmCell]],
    groups: Mapping[str, Sequence[str]],
    note: str,
) -> HearingReport:
    """`heard` and `harm` by target; `groups` and `note` from `groups_of`."""
    targets = {name: _summary({name: own}) if own.cue else None for name, own in heard.items()}
    pooled = {group: _summary({name: heard[name] for name in members}) for group, members in groups.items()}
    reference = tuple(groups.get(LEADING, ()))
    if reference:
        for name, summary in targets.items():
            if summary is not None:
                targets[name] = replace(summary, shapley=_shapley((name,), reference, heard))
        pooled[ALL] = replace(pooled[ALL], shapley=_shapley(tuple(groups[ALL]), reference, heard))
    leading = _leading(heard, harm, groups[ALL], reference) if reference else None
    return HearingReport(targets=targets, pooled=pooled, leading=leading, note=note)


def _summary(members: Mapping[str, Heard]) -> HearingSummary:
    own = list(members.values())
    drawn = Joint(stats.rows_of(own))
    named = sorted({(contrast, group) for one in own for cell in one.cue for contrast, group in cell.groups.items()})
    return HearingSummary(
        members=tuple(members),
        cells=sum(len(one.cue) for one in own),
        without_probe=sum(one.without_probe for one in own),
        shares=stats.shares(own),
        credit=stats.credit_parts(own),
        recognition={one: stats.recognition(drawn, one) for one in CORRECTIONS},
        policy_when_heard={one: stats.policy_when_heard(drawn, one) for one in CORRECTIONS},
        perfect_hearing={one: stats.perfect_hearing(drawn, one) for one in CORRECTIONS},
        perfect_deciding={one: stats.perfect_deciding(drawn, one) for one in CORRECTIONS},
        detection=stats.detection(drawn),
        fates=stats.fates(own),
        parts={
            contrast: {
                group: _part([stats.part(one, contrast, group) for one in own])
                for known, group in named
                if known == contrast
            }
            for contrast in CONTRASTS
        },
    )


def _part(own: Sequence[Heard]) -> HearingPart:
    return HearingPart(
        heard=stats.heard_share(own),
        words_action_given_heard=stats.words_action_given_heard(own),
        recognition=stats.recognition(Joint(stats.rows_of(own), stats.RECOGNITION_COLUMNS), "false_alarms"),
        **stats.credit_parts(own),
    )


def _shapley(own: tuple[str, ...], reference: tuple[str, ...], heard: Mapping[str, Heard]) -> Shapley | None:
    """None where both are the same or share no clip."""
    if set(own) == set(reference):
        return None
    clips = _clips(own, heard) & _clips(reference, heard)
    if not clips:
        return None
    rows = [
        *stats.rows_of((stats.shared(heard[name], clips) for name in own), "own_"),
        *stats.rows_of((stats.shared(heard[name], clips) for name in reference), "ref_"),
    ]
    drawn = Joint(rows)
    return Shapley(reference, len(clips), {one: stats.shapley(drawn, one) for one in CORRECTIONS})


def _clips(names: Sequence[str], heard: Mapping[str, Heard]) -> set[tuple[str, str]]:
    """Clips that any of them was measured on."""
    return {(one.cell.item_id, one.cell.variant_id) for name in names for one in heard[name].cue}


def _leading(
    heard: Mapping[str, Heard], harm: Mapping[str, Sequence[HarmCell]], candidates: Sequence[str], group: Sequence[str]
) -> LeadingGroup:
    credit = {name: _credit(heard[name]) for name in candidates}
    figures: dict[str, dict[str, list[Sample]]] = {
        "credit": credit,
        "heard": {name: [_sample_of(one, one.heard) for one in heard[name].cue] for name in candidates},
        "right_given_heard": {
            name: [_sample_of(one, one.cell.credit) for one in heard[name].cue if one.heard] for name in candidates
        },
        "unsafe_execution": {name: rate(audio_only(harm[name]), "unsafe_execution") for name in candidates},
        "over_trigger": {name: rate(audio_only(harm[name]), "over_trigger") for name in candidates},
    }
    reselected, found = cross_fitted(credit, figures, len(group))
    return LeadingGroup(
        members=tuple(group),
        candidates=len(candidates),
        splits=SPLITS,
        reselected=reselected,
        figures=found,
    )


def _credit(heard: Heard) -> list[Sample]:
    return [_sample_of(one, one.cell.credit) for one in heard.cue]


def _sample_of(one: HeardCell, value: float | None) -> Sample:
    return Sample(float(value or 0), one.cell.item_id, one.cell.repeat)
