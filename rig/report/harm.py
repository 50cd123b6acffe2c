"""Classified turns of all targets → what the report says of harm. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from captures.capture import Condition, Ending
from rig.bank.models import Bank, Grounding, Item, Variant
from rig.report.audit import sample_of
from rig.report.families import corrected
from rig.report.harm_model import Departures, HarmReport, NobodyRight, TargetHarm
from rig.report.model import Family, Tested
from rig.scoring.cells import ScoredCell
from rig.scoring.harm import HarmCell, Outcome, Response, Situation, audio_only
from rig.scoring.hearing import Heard
from rig.stats import harm
from rig.stats.bootstrap import Sample, difference, proportion

AGAINST_NULL, AGAINST_TWIN = "unsafe execution against the null", "unsafe execution against own twin"
UNSAFE = "unsafe_execution"


def harm_report(
    cells: Mapping[str, Sequence[HarmCell]],
    heard: Mapping[str, Heard],
    bank: Bank,
    contestants: Sequence[str],
    null: str | None,
    groups: Mapping[str, Sequence[str]],
) -> HarmReport:
    """`cells` and `heard` by target. `groups`: name → contestants to pool."""
    targets = {name: _target(own) for name, own in cells.items()}
    for name, own in cells.items():
        twin = [one for one in own if one.cell.condition is Condition.TEXT_TWIN]
        theirs = audio_only(cells[null]) if null is not None and null != name else []
        targets[name] = replace(
            targets[name],
            unsafe_against_null=_tested(harm.paired_rates(audio_only(own), theirs, UNSAFE), null or ""),
            unsafe_against_twin=_tested(harm.paired_rates(audio_only(own), twin, UNSAFE), "own text twin"),
        )
    families = []
    for field, name in (("unsafe_against_null", AGAINST_NULL), ("unsafe_against_twin", AGAINST_TWIN)):
        families += _correct(targets, contestants, field, name)
    return HarmReport(
        targets=targets,
        pooled={
            name: _target([one for member in members for one in cells[member]]) for name, members in groups.items()
        },
        families=tuple(families),
        nobody_right=tuple(_nobody_right({name: cells[name] for name in contestants}, heard, bank)),
        departures=tuple(_departures(cells, contestants, bank)),
        cells={name: tuple(own) for name, own in cells.items()},
        sample=sample_of([one for own in cells.values() for one in audio_only(own)], bank),
    )


def _target(cells: Sequence[HarmCell]) -> TargetHarm:
    clips = audio_only(cells)
    twins = [one for one in cells if one.cell.condition is Condition.TEXT_TWIN]
    counted = Counter((one.situation, one.outcome) for one in clips)
    contrasted = [one for one in clips if one.situation is not Situation.SERVICE]
    return TargetHarm(
        counts={kind: {outcome: counted[kind, outcome] for outcome in Outcome} for kind in Situation},
        rates={name: proportion(harm.rate(clips, name)) for name in harm.RATES},
        twin_rates={name: proportion(harm.rate(twins, name)) for name in (UNSAFE, "over_trigger")},
        responses={response: proportion(harm.response_share(clips, response)) for response in Response},
        co_execution=proportion(harm.co_execution(clips)),
        over_reaction=proportion(harm.over_reaction(clips)),
        balanced_credit=harm.balanced_credit(clips),
        risk=harm.risk_per_100(clips),
        risk_without_service=harm.risk_per_100(contrasted)["primary", "primary"],
        without_severity=sum(one.severity is None for one in clips),
        derived=sum(one.cell.roles_derived for one in clips),
    )


def _tested(samples: Iterable[Sample], against: str) -> Tested | None:
    estimate = difference(samples)
    return Tested(estimate, against) if estimate is not None else None


def _correct(targets: dict[str, TargetHarm], contestants: Sequence[str], field: str, name: str) -> list[Family]:
    """Puts Holm's corrections into `targets`; the family, if it has any member."""
    found, family = corrected({target: getattr(targets[target], field) for target in contestants}, name)
    for target, tested in found.items():
        change: dict[str, Any] = {field: tested}
        targets[target] = replace(targets[target], **change)
    return [family] if family else []


def _nobody_right(
    cells: Mapping[str, Sequence[HarmCell]], heard: Mapping[str, Heard], bank: Bank
) -> Iterable[NobodyRight]:
    """Clips that some contestant was measured on and none passes, in the bank's order."""
    by_clip: dict[tuple[str, str], dict[str, list[HarmCell]]] = {}
    for name, own in cells.items():
        for one in audio_only(own):
            by_clip.setdefault((one.cell.item_id, one.cell.variant_id), {}).setdefault(name, []).append(one)
    hearing: dict[tuple[str, str], list[bool]] = {}
    for name in cells:
        clips: dict[tuple[str, str], bool] = {}
        for heard_cell in heard[name].cue:
            key = (heard_cell.cell.item_id, heard_cell.cell.variant_id)
            clips[key] = clips.get(key, False) or heard_cell.heard
        for key, was_heard in clips.items():
            hearing.setdefault(key, []).append(was_heard)
    for key in sorted(by_clip):
        turns = [one for own in by_clip[key].values() for one in own]
        if any(one.cell.passed for one in turns):
            continue
        item = bank.item(key[0])
        variant = item.variant(key[1])
        # The usual response counts each contestant once: what it did first.
        did = Counter(done(own[0].cell) for own in by_clip[key].values())
        usual, count = did.most_common(1)[0]
        yield NobodyRight(
            *key,
            situation=turns[0].situation,
            cue=cue_of(bank, item, variant),
            gold=variant.gold.tool or "no call",
            contestants=len(by_clip[key]),
            usual=usual,
            usual_count=count,
            heard=sum(hearing.get(key, ())),
            probed=len(hearing.get(key, ())),
        )


def _departures(
    cells: Mapping[str, Sequence[HarmCell]], contestants: Sequence[str], bank: Bank
) -> Iterable[Departures]:
    """One entry per cited rule that any cue-bearing clip rests on; what rests on no rule is left out."""
    cited: dict[tuple[str, Grounding | None], set[str]] = {}
    for item in bank.items:
        annotation = bank.annotation(item)
        if annotation and annotation.citation and annotation.grounding is not Grounding.NONE:
            cited.setdefault((annotation.citation, annotation.grounding), set()).add(item.id)
    for (citation, grounding), items in sorted(cited.items()):
        by_target = {}
        clips: set[tuple[str, str]] = set()
        for name, own in cells.items():
            about = [one for one in audio_only(own) if one.cell.item_id in items and not one.cell.neutral]
            if about:
                by_target[name] = (sum(one.outcome is not Outcome.CORRECT for one in about), len(about))
                clips |= {(one.cell.item_id, one.cell.variant_id) for one in about}
        if not by_target:
            continue
        known = [(name, *by_target[name]) for name in contestants if name in by_target]
        yield Departures(
            citation=citation,
            grounding=grounding,
            items=tuple(sorted({item_id for item_id, _ in clips})),
            cells=len(clips),
            by_target=by_target,
            any_=tuple(name for name, departed, _ in known if departed),
            half=tuple(name for name, departed, n in known if 2 * departed >= n and departed),
        )


def done(cell: ScoredCell) -> str:
    """What a turn did, in words: the tools called in order."""
    assert cell.action is not None
    if cell.action.called:
        return " + ".join(name or "unnamed call" for name in cell.action.called)
    return "no answer" if cell.ending is Ending.NO_ANSWER else "no call"


def cue_of(bank: Bank, item: Item, variant: Variant) -> str:
    """What is to be heard, in words."""
    kind = bank.cue_kind(item, variant)
    return "neutral" if kind is None else f"{kind.replace('_', ' ')}: {variant.cue_class}"
