"""One row a clip: what is to be heard in it, whether it is there, what was measured, what people ruled.

Reads the audio manifest and `rulings.yaml`; makes no clip and opens none.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rig.bank.models import Bank, ClipEntry, Item, Scene, Variant
from rig.bank.rendering.errors import RenderError
from rig.bank.rendering.gate import Gate
from rig.bank.rendering.manifest import RenderedEntry, read_manifest
from rig.bank.rendering.rulings import ClipKey, Ruling, read_rulings

State = Literal["passed", "ruled", "added", "withheld", "missing"]
"""`passed` its gates; shipped as `ruled` although a gate fails; `added` by hand, without gates; `withheld` by a ruling;
`missing`."""


@dataclass(frozen=True, slots=True)
class ClipRow:
    """One clip that the bank wants."""

    item: Item
    variant: Variant
    turn: int
    state: State
    words: str
    cue: str
    clip: ClipEntry | None
    path: Path | None
    gates: Mapping[str, Gate] = field(default_factory=dict)
    ruling: Ruling | None = None

    @property
    def name(self) -> str:
        """Item, variant and turn in one."""
        return f"{self.item.id}/{self.variant.variant_id}" + (" (turn 2)" if self.turn == 2 else "")

    @property
    def rendered(self) -> RenderedEntry | None:
        """All that rendering knows of the clip; None for one added by hand."""
        return self.clip if isinstance(self.clip, RenderedEntry) else None

    @property
    def approximate(self) -> str:
        """Why it only suggests its cue, empty where it does not."""
        reason = self.clip.approximate if self.clip else False
        return reason if isinstance(reason, str) else ("yes" if reason else "")


def clip_rows(bank: Bank, only: Set[str] = frozenset()) -> list[ClipRow]:
    """A row for every clip that the bank wants, in the order of its items. `only`: these items.

    Raises RenderError for a wrong manifest or ruling file, or an unknown item.
    """
    if unknown := sorted(set(only) - {item.id for item in bank.items}):
        raise RenderError(f"no item {', '.join(unknown)} in the bank")
    try:
        rulings = read_rulings(bank)
        manifest = read_manifest(bank.root / "audio")
    except ValueError as error:
        raise RenderError(str(error)) from error
    rendered = {entry.key: entry for entry in manifest.rendered}
    rows: list[ClipRow] = []
    for item in bank.items:
        if only and item.id not in only:
            continue
        for variant in item.variants:
            rows.append(_row(bank, item, variant, 1, rendered, rulings))
            if item.followup is not None:
                rows.append(_row(bank, item, variant, 2, rendered, rulings))
    return rows


def _row(
    bank: Bank,
    item: Item,
    variant: Variant,
    turn: int,
    rendered: Mapping[ClipKey, RenderedEntry],
    rulings: Mapping[ClipKey, Ruling],
) -> ClipRow:
    key = (item.id, variant.variant_id, turn)
    known = bank.clip(item, variant) if turn == 1 else bank.reply_clip(item, variant)
    clip: ClipEntry | None = rendered.get(key, known)
    path = bank.clip_path(clip) if clip else None
    entry = rendered.get(key)
    ruling = rulings.get(key)
    if ruling is not None and clip is not None and not ruling.applies_to(clip.pcm_sha256 or ""):
        ruling = None
    state: State
    if path is None:
        state = "withheld" if ruling and ruling.verdict == "withhold" else "missing"
    elif entry is None:
        state = "added"
    else:
        state = "ruled" if entry.failed else "passed"
    words = item.transcript if turn == 1 or item.followup is None else item.followup.reply
    gates = entry.gates if entry else {}
    return ClipRow(item, variant, turn, state, words, cue(variant, turn), clip, path, gates, ruling)


def cue(variant: Variant, turn: int = 1) -> str:
    """What is to be heard besides the words, in a few."""
    strength = "" if variant.intensity is None or variant.emotion == "neutral" else f" {variant.intensity:g}"
    parts = [f"{variant.emotion}{strength}"]
    if variant.speaker:
        parts.append(f"speaker {variant.speaker}")
    if variant.scene is not None and turn == 1:
        parts.append(_scene(variant.scene))
    if variant.channel:
        parts.append(f"over {variant.channel}")
    return ", ".join(parts)


def _scene(scene: Scene) -> str:
    told = f"{scene.kind} {(scene.asset or '').removeprefix('synth:')}".strip()
    if scene.text:
        told += f" “{scene.text}”"
    if scene.speaker or scene.emotion:
        told += f" ({', '.join(part for part in (scene.speaker, scene.emotion) if part)})"
    if scene.slot:
        told += f" at “{scene.slot}”"
    return told if scene.snr_db is None else f"{told}, {scene.snr_db:g} dB"


def as_json(row: ClipRow) -> dict[str, Any]:
    """The row for machines."""
    entry = row.rendered
    return {
        "item": row.item.id,
        "variant": row.variant.variant_id,
        "turn": row.turn,
        "state": row.state,
        "cue": row.cue,
        "words": row.words,
        "sha256": row.clip.sha256 if row.clip else None,
        "duration_s": entry.duration_s if entry else None,
        "speech_end_s": row.clip.speech_end_s if row.clip else None,
        "wer": entry.wer if entry else None,
        "wer_delivered": entry.wer_delivered if entry else None,
        "approximate": row.approximate or None,
        "gates": {
            name: {**gate.model_dump(mode="json", exclude_none=True), "passed": gate.passed}
            for name, gate in row.gates.items()
        },
        "ruling": row.ruling.model_dump(mode="json", exclude_none=True) if row.ruling else None,
    }
