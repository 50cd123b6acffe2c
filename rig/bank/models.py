"""What a bank is made of: items, annotations, clip entries, the bank that joins them. All are imported from here.

Reading files is `rig.bank.loader`, checks across several fields or files are `rig.bank.lint`, and what a gold is worth
is `rig.scoring`. Nothing here touches audio.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StringConstraints

from rig.bank.items import (
    Acceptable,
    BankModel,
    Followup,
    Gold,
    Identifier,
    Item,
    Param,
    Probe,
    Scene,
    Tool,
    Variant,
)
from rig.bank.words import CueKind, Grounding, HarmClass, Role, Severity

__all__ = [
    "DEFAULT_STANDING_ACTIONS",
    "Acceptable",
    "Annotation",
    "Bank",
    "BankInfo",
    "BlindBounds",
    "ClipEntry",
    "CueKind",
    "Followup",
    "Gold",
    "Grounding",
    "HarmClass",
    "Item",
    "Param",
    "Probe",
    "Problem",
    "Role",
    "Scene",
    "Severity",
    "Tool",
    "Variant",
]


class Annotation(BankModel):
    """What an item file lacks, from `annotations.yaml`. Absent fields are unknown, never a default."""

    sector: str | None = None
    family: str | None = None
    harm_class: HarmClass | None = None
    severity: Severity | None = None
    grounding: Grounding | None = None
    citation: str | None = None
    legacy: bool = False
    held: bool = False
    roles: Mapping[str, Role] = Field(default_factory=dict)
    """Tool name → role."""
    cue_kind: CueKind | Mapping[str, CueKind] | None = None
    """Override for all cue-bearing variants of the item, or by variant id."""


class ClipEntry(BaseModel):
    """One line of the audio manifest. More keys are welcome there and kept in `model_extra`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    item_id: Identifier
    variant_id: Identifier
    sha256: Annotated[str, StringConstraints(to_lower=True, pattern=r"^[0-9a-fA-F]{64}$")]
    """Of the file, which also bears it as its name."""
    engine: str = ""
    turn: Literal[1, 2] = 1
    """2 for the caller's reply in a followup, which is listed for each variant that has it as audio."""
    pcm_sha256: str | None = None
    speech_end_s: Annotated[FiniteFloat, Field(ge=0)] | None = None
    """End of the caller's speech, seconds from the start of the clip."""
    speech_end_method: str | None = None
    approximate: bool | str = False
    """True, or why, where the rendering only suggests the cue."""


DEFAULT_STANDING_ACTIONS = (
    Tool(
        name="ask_clarifying_question",
        description="Ask the caller one clarifying question before taking any other action.",
        params=(Param(name="question", type="string", description="The question to ask.", required=True),),
    ),
    Tool(name="escalate_to_human", description="Hand the call over to a human colleague."),
)


class BlindBounds(BankModel):
    """The most that a policy which hears nothing may earn, as a mean over variants (`rig.bank.blind`)."""

    action: Annotated[FiniteFloat, Field(gt=0, le=1)] = 0.4
    """Of choosing a tool."""
    probe: Annotated[FiniteFloat, Field(gt=0, le=1)] = 0.4
    """Of answering the probe."""


class BankInfo(BankModel):
    """The optional `bank.yaml`."""

    name: str = ""
    version: str = ""
    licence: str = ""
    origin: Literal["own", "imported"] = "imported"
    """`own` banks are held to stricter checks."""
    canary: str | None = None
    standing_actions: tuple[Tool, ...] = DEFAULT_STANDING_ACTIONS
    blind_bounds: BlindBounds = BlindBounds()
    most_audio_mb: Annotated[FiniteFloat, Field(gt=0)] | None = None
    """Megabytes (10^6) of rendered clips that the bank may hold; no limit where absent."""


@dataclass(frozen=True)
class Problem:
    """Something wrong in a bank: where (file and field) and what to do about it."""

    file: str
    field: str
    message: str
    level: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        where = f"{self.file}: {self.field}" if self.field else self.file
        return f"{self.level}: {where}: {self.message}"


@dataclass(frozen=True)
class Bank:
    """Items with everything that belongs to them. `items` is sorted by id; ids are unique."""

    root: Path
    info: BankInfo
    items: tuple[Item, ...]
    annotations: Mapping[str, Annotation] = field(default_factory=dict)
    clips: Mapping[tuple[str, str], ClipEntry] = field(default_factory=dict)
    """(item id, variant id) → entry of the chosen engine."""
    reply_clips: Mapping[tuple[str, str], ClipEntry] = field(default_factory=dict)
    """The same of replies in a second turn."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Item id → its file, relative to `root`."""
    warnings: tuple[Problem, ...] = ()
    """What the loader read past: unknown keys and the like."""
    unread: frozenset[str] = frozenset()
    """Files that hold errors, so that some or all of them is missing here; only `loader.read_bank` leaves any."""

    @property
    def name(self) -> str:
        """The bank's own name, else its folder's."""
        return self.info.name or self.root.name

    @property
    def version(self) -> str:
        """The bank's version, empty where it states none."""
        return self.info.version

    @property
    def standing_actions(self) -> tuple[Tool, ...]:
        """Actions that every menu offers."""
        return self.info.standing_actions

    @cached_property
    def _by_id(self) -> dict[str, Item]:
        return {item.id: item for item in self.items}

    def item(self, item_id: str) -> Item:
        """The item of that id; KeyError where there is none."""
        return self._by_id[item_id]

    def annotation(self, item: Item) -> Annotation | None:
        """The item's annotation, None where it has none."""
        return self.annotations.get(item.id)

    def cue_kind(self, item: Item, variant: Variant) -> CueKind | None:
        """The variant's kind of cue, as annotated or else as the file implies; None on a neutral variant."""
        annotation = self.annotation(item)
        override = annotation.cue_kind if annotation else None
        if isinstance(override, Mapping):
            override = override.get(variant.variant_id)
        return variant.cue_kind if variant.is_neutral or override is None else override

    def menu(self, item: Item) -> tuple[Tool, ...]:
        """The item's tools and the standing actions it lacks, in an order that depends on the item's id alone."""
        own = {tool.name for tool in item.tools}
        menu = [*item.tools, *(action for action in self.standing_actions if action.name not in own)]
        random.Random(f"menu:{item.id}").shuffle(menu)
        return tuple(menu)

    def probe_options(self, item: Item) -> tuple[str, ...]:
        """The probe's options in an order that depends on the item's id alone; empty without a probe."""
        options = list(item.perception_probe.options) if item.perception_probe else []
        random.Random(f"probe:{item.id}").shuffle(options)
        return tuple(options)

    def clip(self, item: Item, variant: Variant) -> ClipEntry | None:
        """The variant's entry in the audio manifest, None where it has none."""
        return self.clips.get((item.id, variant.variant_id))

    def reply_clip(self, item: Item, variant: Variant) -> ClipEntry | None:
        """The entry of the caller's reply in a second turn on this variant, None where it has none."""
        return self.reply_clips.get((item.id, variant.variant_id))

    def clip_path(self, clip: ClipEntry) -> Path | None:
        """The clip's file (FLAC before WAV), None where it is not on disk."""
        for suffix in (".flac", ".wav"):
            path = self.root / "audio" / f"{clip.sha256}{suffix}"
            if path.is_file():
                return path
        return None
