"""Bank × targets → cells, each with an identity. Pure but for the clips it is handed.

A cell's identity is a hash of all that could change its result: a run resumes exactly the identities that have no
finished capture, and results are never mixed with those of another clip, prompt, menu or setting.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from adapters.dialect import Capabilities, Setup, ToolSpec, TurnControlSettings
from captures.capture import Condition
from rig.bank.models import Bank, Item, Variant
from rig.config import BargeInConfig, Config, TargetConfig, TurnControlConfig
from rig.engine.barge_in import PlannedBargeIn
from rig.engine.clips import ClipKey, PreparedClip
from rig.engine.second_turn import PlannedReply, planned_reply
from rig.engine.stored import StoredTranscript
from rig.prompts.templates import PROMPT_VERSION, instructions, probe_instructions

_IDENTITY_VERSION = 1


@dataclass(frozen=True, slots=True)
class Target:
    """A target with what its dialect declares."""

    config: TargetConfig
    turn_control: TurnControlSettings
    capabilities: Capabilities
    wire_version: int
    parser_version: int
    shown: Mapping[str, Any]
    """Address and settings with their secrets masked: a new token is not a new target."""

    @property
    def name(self) -> str:
        """The target's name in the config."""
        return self.config.name

    @property
    def input_rate_hz(self) -> int:
        """The rate that clips are sent at."""
        return self.capabilities.input_rates_hz[0]


@dataclass(frozen=True, slots=True)
class Cell:
    """One thing to measure: item × variant × condition × repeat on one target."""

    target: str
    item_id: str
    variant_id: str | None
    """None on a text twin."""
    condition: Condition
    repeat: int
    identity: str
    setup: Setup
    text: str | None
    """The caller's words on a text twin or a replay, else None."""
    clip: PreparedClip | None
    input_error: str | None = None
    """Why the clip cannot be played; such a cell never reaches a connection."""
    planned_reply: PlannedReply | None = None
    """The second turn, should the first call start it."""
    barge_in: PlannedBargeIn | None = None
    stored: StoredTranscript | None = None
    """The clip as it was heard before, of which `text` is what this target is told."""

    @property
    def audio_s(self) -> float:
        """Seconds of caller audio."""
        return self.clip.duration_s if self.clip else 0.0


@dataclass(frozen=True, slots=True)
class NotPlanned:
    """Cells that a target cannot run, and why; never shown as a result."""

    target: str
    condition: Condition
    cells: int
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """All cells of a run, in the order in which each target runs them."""

    cells: tuple[Cell, ...]
    not_planned: tuple[NotPlanned, ...]

    def of(self, target: str) -> list[Cell]:
        """The cells of one target, in order."""
        return [cell for cell in self.cells if cell.target == target]


def chosen_items(bank: Bank, patterns: Sequence[str]) -> list[Item]:
    """Items whose id matches any pattern, in the bank's order.

    Raises:
        ValueError: a pattern matches nothing.
    """
    ids = [item.id for item in bank.items]
    for pattern in patterns:
        if not fnmatch.filter(ids, pattern):
            raise ValueError(f"items: {pattern!r} matches no item of bank {bank.name!r} ({len(ids)} items)")
    return [item for item in bank.items if any(fnmatch.fnmatchcase(item.id, pattern) for pattern in patterns)]


def plan(
    config: Config,
    bank: Bank,
    targets: Sequence[Target],
    clips: Mapping[ClipKey, PreparedClip],
    input_errors: Mapping[ClipKey, str],
) -> Plan:
    """Every cell of the run. Variants in neither `clips` nor `input_errors` are left out and counted.

    Cells of one item stay together and targets run them in the same order, so that what agents share (a
    recogniser's memory of a clip) is shared, and an interrupted run has whole items.
    """
    cells: list[Cell] = []
    known_clips = clips.keys() | input_errors.keys()
    left_out: dict[tuple[str, Condition, str], int] = {}
    for item in chosen_items(bank, config.items):
        for target in targets:
            for condition, variant in _wanted(config, item):
                reason = _reason_against(target, condition, item, variant, known_clips)
                if reason:
                    what = (target.name, condition, reason)
                    left_out[what] = left_out.get(what, 0) + config.repeats
                    continue
                setup = setup_of(bank, item, condition, target)
                key = (item.id, variant.variant_id, 1) if variant else None
                clip = clips.get(key) if key else None
                reply = None
                if config.second_turn and condition is not Condition.PROBE and target.capabilities.second_turn:
                    reply_key = (item.id, variant.variant_id if variant else "", 2)
                    text_twin = target.capabilities.text_twin
                    reply = planned_reply(item, clips.get(reply_key), input_errors.get(reply_key), text_twin)
                barge_in = None
                if config.barge_in and clip and condition is Condition.AUDIO and target.capabilities.streams_audio:
                    cutting = clip if config.barge_in.clip == "self" else clips[barge_in_key(config.barge_in)]
                    barge_in = PlannedBargeIn(config.barge_in.clip, cutting, config.barge_in.after_s)
                base = _identity_of(config, item, condition, target, setup, clip, reply, barge_in)
                for repeat in range(config.repeats):
                    cells.append(
                        Cell(
                            target=target.name,
                            item_id=item.id,
                            variant_id=variant.variant_id if variant else None,
                            condition=condition,
                            repeat=repeat,
                            identity=hashlib.sha256(f"{base}:{repeat}".encode()).hexdigest()[:32],
                            setup=setup,
                            text=item.transcript if condition is Condition.TEXT_TWIN else None,
                            clip=clip,
                            input_error=input_errors.get(key) if key else None,
                            planned_reply=reply,
                            barge_in=barge_in,
                        )
                    )
    return Plan(
        cells=tuple(cells),
        not_planned=tuple(NotPlanned(t, c, n, reason) for (t, c, reason), n in sorted(left_out.items())),
    )


def barge_in_key(config: BargeInConfig) -> ClipKey:
    """The clip that `item/variant` names."""
    item_id, _, variant_id = config.clip.partition("/")
    return item_id, variant_id, 1


def _wanted(config: Config, item: Item) -> Iterator[tuple[Condition, Variant | None]]:
    if Condition.TEXT_TWIN in config.conditions:
        yield Condition.TEXT_TWIN, None
    for variant in item.variants:
        if Condition.AUDIO in config.conditions:
            yield Condition.AUDIO, variant
        if Condition.PROBE in config.conditions and item.perception_probe is not None:
            yield Condition.PROBE, variant


def _reason_against(
    target: Target,
    condition: Condition,
    item: Item,
    variant: Variant | None,
    known_clips: Set[ClipKey],
) -> str | None:
    if condition is Condition.TEXT_TWIN and not target.capabilities.text_twin:
        return "the adapter has no text turn"
    if condition is Condition.PROBE and not target.capabilities.takes_setup:
        return "the agent takes no instructions of ours"
    if condition is Condition.PROBE and not target.capabilities.probe:
        return "it works from a transcript: there is nothing that it could hear"
    if variant is not None and (item.id, variant.variant_id, 1) not in known_clips:
        return "the bank has no clip"
    return None


def setup_of(bank: Bank, item: Item, condition: Condition, target: Target) -> Setup:
    """What the session starts with: the same words for every dialect."""
    if condition is Condition.PROBE:
        assert item.perception_probe is not None
        text = probe_instructions(item.scenario, item.perception_probe.question, bank.probe_options(item))
        tools: tuple[ToolSpec, ...] = ()
    else:
        text = instructions(item.scenario, item.explicit_policy)
        tools = tuple(ToolSpec(tool.name, tool.description, tool.json_schema()) for tool in bank.menu(item))
    return Setup(text, tools, target.input_rate_hz, target.turn_control)


def _identity_of(
    config: Config,
    item: Item,
    condition: Condition,
    target: Target,
    setup: Setup,
    clip: PreparedClip | None,
    reply: PlannedReply | None,
    barge_in: PlannedBargeIn | None,
) -> str:
    """Hash over everything but the repeat. An embedded agent's address, new in every run, is not in it."""
    own = target.config
    parts: dict[str, Any] = {
        "identity_version": _IDENTITY_VERSION,
        "prompt_version": PROMPT_VERSION,
        "item": item.id,
        "condition": condition,
        "transcript": item.transcript if condition is Condition.TEXT_TWIN else None,
        "pcm": [clip.pcm_sha256, clip.source_rate_hz] if clip else None,
        "instructions": setup.instructions,
        "tools": [[tool.name, tool.description, tool.parameters] for tool in setup.tools],
        "target": own.name,
        "adapter": own.adapter,
        "wire_version": target.wire_version,
        "model": own.model,
        "base_url": target.shown["base_url"],
        "agent": [own.embedded_agent, *own.faults] if own.faults else own.embedded_agent,
        "settings": target.shown["settings"],
        "input_rate_hz": setup.input_rate_hz,
        "turn_control": [target.turn_control.mode, dict(target.turn_control.parameters)],
        "pace": config.pace,
        "chunk_ms": config.chunk_ms,
    }
    if reply is not None:
        parts["second_turn"] = reply.identity()
    if barge_in is not None:
        parts["barge_in"] = barge_in.identity()
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def turn_control_of(config: Config, target: TargetConfig) -> TurnControlSettings:
    """The target's turn control, else the run's."""
    chosen: TurnControlConfig = target.turn_control or config.turn_control
    return TurnControlSettings(chosen.mode, chosen.parameters)
