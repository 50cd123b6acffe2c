"""A run's stored transcripts × other text models → cells: what `rig replay-cascade` runs. Needs no clip.

A replayed cell keeps item, variant and condition, so the new run reports and compares like any other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from adapters.cascade.client import told
from captures.capture import Capture, Condition
from rig.bank.loader import load_bank
from rig.bank.models import Bank, Item
from rig.config import ConfigError, ResolvedConfig
from rig.engine.plan import Cell, NotPlanned, Plan, Target, chosen_items, setup_of
from rig.engine.prepare import Prepared, bank_location, checked_targets, prices_of
from rig.engine.stored import StoredTranscript
from rig.prompts.templates import PROMPT_VERSION
from rig.report.runs import ReportError, TargetRun, load_run, targets_of
from rig.scoring.digest import bank_digest

_CASCADE = "cascade"
_IDENTITY_VERSION = 1
_Clip = tuple[str, str, int]
"""Item, variant, repeat."""


def chosen_targets(resolved: ResolvedConfig, names: Collection[str]) -> ResolvedConfig:
    """The config with the named targets alone; without names with all its cascades.

    Raises:
        ConfigError: no such target, or one that is no cascade.
    """
    targets = [one for one in resolved.config.targets if one.name in names or (not names and one.adapter == _CASCADE)]
    known = {one.name for one in resolved.config.targets}
    problems = [
        f"targets: no target {name!r}; there are: {', '.join(sorted(known))}" for name in names if name not in known
    ]
    problems += [
        f"targets ({one.name}): adapter {one.adapter} takes no transcripts; give it adapter: cascade"
        for one in targets
        if one.adapter != _CASCADE
    ]
    if not targets and not problems:
        problems = ["targets: none is a cascade (adapter: cascade)"]
    if problems:
        raise ConfigError("config", problems)
    kept = {one.name for one in targets}
    public = dict(resolved.public)
    entries = public.get("targets")
    if isinstance(entries, list):
        public["targets"] = [one for one in entries if isinstance(one, Mapping) and one.get("name") in kept]
    for named in ("pairs", "steps"):
        public.pop(named, None)
    config = resolved.config.model_copy(update={"targets": tuple(targets), "pairs": (), "steps": ()})
    return replace(resolved, config=config, public=public)


def prepare_replay(resolved: ResolvedConfig, run: Path, source: str | None) -> Prepared:
    """The plan of a replay. `source`: the run's target whose transcripts are told; default: the only one that has any.

    Raises:
        ReportError: no such target, or no transcript.
        ConfigError: settings that a dialect refuses, another bank than the run's, items that do not exist.
        BankError, RunFolderError: bank or run cannot be read.
    """
    loaded = load_run(run)
    stored = _stored(_source(targets_of([loaded])[0], source, run))
    bank = load_bank(bank_location(resolved), resolved.config.engine)
    targets, problems = checked_targets(resolved)
    if loaded.section("bank").get("digest") not in (None, bank_digest(bank)):
        problems.append(f"bank: is not the one that {run} was made with, or has changed since")
    try:
        items = chosen_items(bank, resolved.config.items)
    except ValueError as error:
        problems.append(str(error))
    if problems:
        raise ConfigError("config", problems)
    cells: list[Cell] = []
    left_out: dict[tuple[str, Condition, str], int] = {}
    for item in items:
        for target in targets:
            for cell, condition, reason in _planned(resolved, bank, item, target, stored):
                if cell is not None:
                    cells.append(cell)
                else:
                    left_out[target.name, condition, reason] = left_out.get((target.name, condition, reason), 0) + 1
    return Prepared(
        resolved=resolved,
        bank=bank,
        targets=tuple(targets),
        plan=Plan(tuple(cells), tuple(NotPlanned(t, c, n, why) for (t, c, why), n in sorted(left_out.items()))),
        prices=prices_of(resolved),
        input_errors=(),
    )


def replayed_cell(prepared: Prepared, capture: Capture) -> Cell | None:
    """The cell of a replay that `capture` was made for, planned again from the transcript in it; None for any other."""
    item = next((one for one in prepared.bank.items if one.id == capture.item_id), None)
    target = next((one for one in prepared.targets if one.config.name == capture.target), None)
    if item is None or target is None or target.config.adapter != _CASCADE:
        return None
    words, source = capture.input_transcript, capture.echoed.get("transcript_of")
    stored = None
    if isinstance(source, str) and words is not None:
        stored = StoredTranscript(words, capture.input_tags, source)
    rung = str(target.config.settings.get("rung", "words"))
    if stored is None or (rung == "tags" and stored.tags is None):
        text = item.transcript
    else:
        text = told(rung, stored.words, stored.tags)
    where = (capture.variant_id, capture.condition, capture.repeat)
    cell = _cell(prepared.bank, item, target, *where, text, stored)
    return cell if cell.identity == capture.identity else None


def _source(targets: Collection[TargetRun], name: str | None, run: Path) -> TargetRun:
    known = ", ".join(one.name for one in targets) or "none"
    if name is not None:
        found = [one for one in targets if one.name == name]
        if not found:
            raise ReportError(f"{run}: no target {name!r}; there are: {known}")
    else:
        found = [one for one in targets if one.settings.get("adapter") == _CASCADE and _stored(one)]
    if len(found) != 1:
        several = f"several cascades have transcripts ({', '.join(one.name for one in found)})"
        none = f"no cascade has transcripts (targets: {known})"
        raise ReportError(f"{run}: {several if found else none}: name one with --source")
    if not _stored(found[0]):
        raise ReportError(f"{run}: {found[0].name} left no transcript of any clip")
    return found[0]


def _stored(source: TargetRun) -> dict[_Clip, dict[Condition, StoredTranscript]]:
    """Clip → condition → its transcript there; a clip that was asked twice was heard twice."""
    found: dict[_Clip, dict[Condition, StoredTranscript]] = {}
    for one in source.captures:
        if one.ending.scored and one.variant_id is not None and one.input_transcript is not None:
            transcript = _transcript(one, one.input_transcript)
            found.setdefault((one.item_id, one.variant_id, one.repeat), {})[one.condition] = transcript
    return found


def _transcript(one: Capture, words: str) -> StoredTranscript:
    return StoredTranscript(words, one.input_tags, one.identity)


def _planned(
    resolved: ResolvedConfig,
    bank: Bank,
    item: Item,
    target: Target,
    stored: Mapping[_Clip, Mapping[Condition, StoredTranscript]],
) -> Iterator[tuple[Cell | None, Condition, str]]:
    """Cells of one item on one target; in place of a cell the condition and why there is none."""
    conditions = resolved.config.conditions
    clips = sorted(clip for clip in stored if clip[0] == item.id)
    repeats = sorted({repeat for _, _, repeat in clips})
    rung = str(target.config.settings.get("rung", "words"))
    if Condition.TEXT_TWIN in conditions:
        for repeat in repeats:
            yield (
                _cell(bank, item, target, None, Condition.TEXT_TWIN, repeat, item.transcript, None),
                (Condition.TEXT_TWIN),
                "",
            )
    for clip in clips:
        for condition in (Condition.AUDIO, Condition.PROBE):
            if condition not in conditions or (condition is Condition.PROBE and item.perception_probe is None):
                continue
            by_condition = stored[clip]
            transcript = by_condition.get(condition) or next(iter(by_condition.values()))
            reason = ""
            if condition is Condition.PROBE and not target.capabilities.probe:
                reason = "it works from a transcript: there is nothing that it could hear"
            elif rung == "tags" and transcript.tags is None:
                reason = "no tags were measured in the run that is replayed"
            if reason:
                yield None, condition, reason
            else:
                text = told(rung, transcript.words, transcript.tags)
                yield _cell(bank, item, target, clip[1], condition, clip[2], text, transcript), condition, ""


def _cell(
    bank: Bank,
    item: Item,
    target: Target,
    variant_id: str | None,
    condition: Condition,
    repeat: int,
    text: str,
    stored: StoredTranscript | None,
) -> Cell:
    setup = setup_of(bank, item, condition, target)
    own = target.config
    parts = {
        "identity_version": _IDENTITY_VERSION,
        "replayed": stored.source if stored else None,
        "prompt_version": PROMPT_VERSION,
        "item": item.id,
        "variant": variant_id,
        "condition": condition,
        "repeat": repeat,
        "text": text,
        "instructions": setup.instructions,
        "tools": [[tool.name, tool.description, tool.parameters] for tool in setup.tools],
        "target": own.name,
        "adapter": own.adapter,
        "wire_version": target.wire_version,
        "model": own.model,
        "base_url": target.shown["base_url"],
        "agent": [own.embedded_agent, *own.faults],
        "settings": target.shown["settings"],
    }
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    return Cell(
        target=target.name,
        item_id=item.id,
        variant_id=variant_id,
        condition=condition,
        repeat=repeat,
        identity=digest[:32],
        setup=setup,
        text=text,
        clip=None,
        stored=stored,
    )
