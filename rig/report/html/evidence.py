"""What stands behind the figures, cell by cell, for the page's drill-down. Data alone; text is made fit to be shown.

A report keeps figures and no captures, so it is made of the same scored runs as the report.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from captures.capture import Capture, Condition, Ending, Mark, ObservedCall
from rig.bank.models import Annotation, Bank, Gold, Item, Variant
from rig.report.harm import cue_of
from rig.report.runs import TargetRun
from rig.report.scored import Scored, scored_runs
from rig.scoring.cells import ScoredCell
from rig.scoring.transcripts import word_errors

LONGEST = 4_000
"""Characters shown of one text that an agent sent."""

_AUDIO_TYPES = {".flac": "audio/flac", ".wav": "audio/wav"}


@dataclass(frozen=True, slots=True)
class Tick:
    """One mark on a cell's timeline."""

    name: str
    seconds: float
    """From the first mark of the attempt's turn."""
    place: float
    """0 to 100 along the timeline."""


@dataclass(frozen=True, slots=True)
class Sound:
    """An audio file to embed."""

    path: Path
    media_type: str


@dataclass(frozen=True, slots=True)
class CellEvidence:
    """One cell of one target. All text is from the agent or from run folders."""

    target: str
    condition: str
    repeat: int
    result: str
    """`pass`, `part`, `wrong`, `none` where nothing was measured, or `twin`: one score per variant."""
    worth: str
    did: str
    why: str
    said: str
    heard_us: str
    """The vendor's transcript of the caller."""
    ticks: tuple[Tick, ...]
    reply: Sound | None
    later: tuple[str, ...] = ()
    """What followed: the second turn, a barge-in, gaps of the reply; a line each."""


@dataclass(frozen=True, slots=True)
class VariantEvidence:
    """One variant of an item, with its cells on all targets."""

    variant_id: str
    cue: str
    gold: str
    rationale: str
    probe_gold: str
    clip: Sound | None
    cells: tuple[CellEvidence, ...]


@dataclass(frozen=True, slots=True)
class ItemEvidence:
    """One item: what every target was told, and its variants."""

    item_id: str
    anchor: str
    sector: str
    stakes: str
    """Severity, class of harm and what the item rests on, as annotated."""
    scenario: str
    policy: str
    transcript: str
    menu: tuple[tuple[str, str], ...]
    question: str
    options: tuple[str, ...]
    variants: tuple[VariantEvidence, ...]
    without_clip: tuple[CellEvidence, ...]
    """Text twins, each scored against every variant; shown once."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything behind a report."""

    bank: Bank
    targets: tuple[TargetRun, ...]
    cells: Mapping[str, Sequence[ScoredCell]]
    items: tuple[ItemEvidence, ...]


def evidence_of(runs: Sequence[Path], bank: Bank | None = None) -> Evidence:
    """As `rig.report.build.build_report` reads the same runs; raises what that raises."""
    return evidence_in(scored_runs(runs, bank))


def evidence_in(runs: Scored) -> Evidence:
    """As `evidence_of`, of runs that were scored already."""
    bank, targets, cells = runs.bank, runs.targets, runs.cells
    by_place: dict[tuple[str, str | None], list[CellEvidence]] = {}
    for target in targets:
        scored: dict[str, list[ScoredCell]] = {}
        for cell in cells[target.name]:
            scored.setdefault(cell.identity, []).append(cell)
        for capture in target.captures:
            place = (capture.item_id, capture.variant_id)
            by_place.setdefault(place, []).append(_cell(capture, scored[capture.identity], target, bank))
    asked = {item_id for item_id, _ in by_place}
    return Evidence(
        bank=bank,
        targets=targets,
        cells=cells,
        items=tuple(_item(bank, item, number, by_place) for number, item in enumerate(bank.items) if item.id in asked),
    )


def fit(text: str, longest: int = LONGEST) -> str:
    """`text` without control, formatting or unassigned characters but line breaks, cut at `longest` and saying so."""
    kept = "".join(c if c == "\n" or unicodedata.category(c)[0] != "C" else " " for c in text[:longest])
    return kept if len(text) <= longest else f"{kept}… ({len(text) - longest} more characters)"


def _item(
    bank: Bank, item: Item, number: int, by_place: Mapping[tuple[str, str | None], Sequence[CellEvidence]]
) -> ItemEvidence:
    annotation = bank.annotation(item)
    probe = item.perception_probe
    return ItemEvidence(
        item_id=item.id,
        anchor=f"item-{number}",
        sector=fit(annotation.sector or "") if annotation else "",
        stakes=fit(_stakes(annotation)) if annotation else "",
        scenario=fit(item.scenario),
        policy=fit(item.explicit_policy or ""),
        transcript=fit(item.transcript),
        menu=tuple((tool.name, fit(tool.description)) for tool in bank.menu(item)),
        question=fit(probe.question) if probe else "",
        options=tuple(fit(option) for option in bank.probe_options(item)),
        variants=tuple(
            _variant(bank, item, variant, by_place.get((item.id, variant.variant_id), ()))
            for variant in item.variants
            if (item.id, variant.variant_id) in by_place
        ),
        without_clip=tuple(by_place.get((item.id, None), ())),
    )


def _variant(bank: Bank, item: Item, variant: Variant, cells: Sequence[CellEvidence]) -> VariantEvidence:
    clip = bank.clip(item, variant)
    probe = item.perception_probe
    return VariantEvidence(
        variant_id=variant.variant_id,
        cue=cue_of(bank, item, variant),
        gold=_gold(variant.gold),
        rationale=fit(variant.gold.rationale),
        probe_gold=fit(probe.gold_by_variant.get(variant.variant_id, "")) if probe else "",
        clip=_sound(bank.clip_path(clip)) if clip else None,
        cells=tuple(cells),
    )


def _gold(gold: Gold) -> str:
    if gold.tool is None:
        return "no call"
    arguments = ", ".join(
        f"{name} = {' or '.join(_json(value) for value in values)}" for name, values in gold.args.items()
    )
    return fit(f"{gold.tool}({arguments})")


def _cell(capture: Capture, scored: Sequence[ScoredCell], target: TargetRun, bank: Bank) -> CellEvidence:
    result, worth, why = _result(capture, scored)
    return CellEvidence(
        target=target.name,
        condition=capture.condition.replace("_", " "),
        repeat=capture.repeat,
        result=result,
        worth=worth,
        did=_did(capture),
        why=fit(why),
        said=fit(capture.reply_text or capture.reply_transcript),
        heard_us=_heard(capture, bank.item(capture.item_id).transcript),
        ticks=_ticks(capture),
        reply=_reply(capture, target),
        later=tuple(fit(line) for line in _later(capture)),
    )


def _stakes(annotation: Annotation) -> str:
    told = [
        f"severity {annotation.severity.replace('_', ' ')}" if annotation.severity else "",
        annotation.harm_class.replace("_", " ") if annotation.harm_class else "",
        f"{annotation.grounding}: {annotation.citation}" if annotation.grounding and annotation.citation else "",
    ]
    return "; ".join(part for part in told if part)


def _later(capture: Capture) -> list[str]:
    """What followed the first turn, and what was odd in how the reply would have been heard."""
    found = []
    second = capture.second_turn
    if second is not None:
        answer = second.decisive
        did = "not measured" if answer is None else _calls_of(answer.calls) or answer.ending.replace("_", " ")
        given = f"the caller said: {second.reply}" if second.reply_as else second.not_played or "nothing was said"
        found.append(f"second turn: {given} → {did}")
        if answer is not None and (answer.reply_text or answer.reply_transcript):
            found.append(f"and said: {answer.reply_text or answer.reply_transcript}")
    cut_in = capture.barge_in
    if cut_in is not None and cut_in.not_played:
        found.append(f"barge-in: {cut_in.not_played}")
    elif cut_in is not None:
        stopped = (
            "never heard to stop" if cut_in.stop_latency_s is None else f"silent after {cut_in.stop_latency_s:.3f} s"
        )
        found.append(
            f"barge-in with {cut_in.clip} after {cut_in.after_s:g} s: {stopped}, by {cut_in.stopped_by or '–'}"
        )
    audio = capture.reply_audio
    if audio is not None and audio.gaps:
        found.append(f"the reply would have run dry {audio.gaps} times, {audio.gaps_s or 0.0:.2f} s in all")
    return found


def _calls_of(calls: Sequence[ObservedCall]) -> str:
    return "; ".join(f"{call.name or 'unnamed call'}({call.arguments_json})" for call in calls)


def _heard(capture: Capture, words: str) -> str:
    """The transcript that the agent had of a clip, how far it is off, and what was measured beside it."""
    if capture.input_transcript is None or capture.variant_id is None:
        return fit(capture.input_transcript or "")
    rate = word_errors(words, capture.input_transcript).rate
    told = [capture.input_transcript or "(nothing)"]
    told += [] if rate is None else [f"word error rate {rate:.2f}"]
    told += [] if capture.input_tags is None else [f"measured: {', '.join(capture.input_tags) or 'nothing unusual'}"]
    return fit("; ".join(told))


def _result(capture: Capture, scored: Sequence[ScoredCell]) -> tuple[str, str, str]:
    """Result, what it is worth, and why it is no full pass."""
    if not capture.ending.scored:
        error = capture.error
        return "none", "not measured", f"{error.code} {error.message}" if error else capture.ending_detail
    if capture.condition is Condition.TEXT_TWIN:
        worth = "\n".join(f"{one.variant_id} {one.credit:.2f}" for one in scored if one.credit is not None)
        return "twin", worth, ""
    (own,) = scored
    if own.action is not None:
        result = "pass" if own.action.passed else "part" if own.action.credit else "wrong"
        return result, f"{own.action.credit:.2f}", "; ".join(own.action.reasons)
    if own.probe is not None:
        value = own.probe.value("strict", "wrong")
        return ("pass" if value else "wrong"), ("right" if value else "wrong"), ""
    return "none", "not measured", own.not_applicable


def _did(capture: Capture) -> str:
    ending = capture.ending.replace("_", " ")
    if capture.condition is Condition.PROBE:
        return ending if capture.ending in (Ending.NO_ANSWER, Ending.UNFINISHED) or not capture.ending.scored else ""
    return fit(_calls_of(capture.calls) or ("no call" if capture.ending is Ending.DECLINED else ending))


def _ticks(capture: Capture) -> tuple[Tick, ...]:
    """The marks from the start of the caller's audio, or of the request, in order."""
    if capture.condition is not Condition.AUDIO:
        return ()
    start = capture.marks.get(Mark.FIRST_CHUNK, capture.marks.get(Mark.COMMIT))
    if start is None:
        return ()
    later = sorted((at - start, mark) for mark, at in capture.marks.items() if at >= start)
    span = max(later[-1][0], 1)
    return tuple(Tick(mark.replace("_", " "), ns / 1e9, round(100 * ns / span, 1)) for ns, mark in later)


def _reply(capture: Capture, target: TargetRun) -> Sound | None:
    """Its reply's file, if that lies inside the run folder."""
    if capture.condition is not Condition.AUDIO or capture.reply_audio is None or not capture.reply_audio.file:
        return None
    folder = target.run.path.resolve()
    path = (folder / capture.reply_audio.file).resolve()
    return _sound(path) if path.is_relative_to(folder / "replies") and path.is_file() else None


def _sound(path: Path | None) -> Sound | None:
    media_type = _AUDIO_TYPES.get(path.suffix) if path is not None else None
    return Sound(path, media_type) if path is not None and media_type else None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
