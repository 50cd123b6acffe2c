"""Renders a whole bank: only what changed, with every failure named, and the manifest rewritten at the end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Set

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from rig.bank.models import Bank, Item, Variant
from rig.bank.rendering.clip import ClipRenderer, RenderedClip
from rig.bank.rendering.levels import RATE_HZ
from rig.bank.rendering.manifest import RenderedEntry, pcm_sha256, read_manifest, write_clip, write_manifest
from rig.bank.rendering.recipes import ItemRecipe, VariantRecipe, read_recipes
from rig.bank.rendering.voices import SynthesisError, engine_of
from rig.bank.rendering.words import Recogniser, read_lexicon

LARGEST_BANK_BYTES = 6_000_000
RENDERER_VERSION = 3
"""Raised whenever the renderer makes other samples, or judges them otherwise, from the same sources."""


def render_bank(bank: Bank, only: Set[str], *, force: bool, console: Console) -> list[str]:
    """Render the bank's clips into `audio/`; returns one line per clip that failed (it is not in the manifest).

    Raises ValueError for a wrong recipe file, a wrong lexicon or an unknown item.
    """
    recipes = read_recipes(bank.root / "recipes.yaml").items
    items = {item.id: item for item in bank.items}
    if unknown := sorted((set(only) | set(recipes)) - set(items)):
        raise ValueError(f"no item {', '.join(unknown)} in the bank: mend the option or recipes.yaml")
    folder = bank.root / "audio"
    folder.mkdir(exist_ok=True)
    lexicon_path = bank.root / "lexicon.txt"
    renderer = ClipRenderer(Recogniser(read_lexicon(lexicon_path) if lexicon_path.exists() else {}))
    kept = {(entry.item_id, entry.variant_id): entry for entry in read_manifest(folder)}
    wanted = [(item, variant) for item in bank.items for variant in item.variants]
    entries: list[RenderedEntry] = []
    failures: list[str] = []
    with Progress(console=console, transient=True) as progress:
        for item, variant in progress.track(wanted, description="rendering"):
            name, old = f"{item.id}/{variant.variant_id}", kept.get((item.id, variant.variant_id))
            if only and item.id not in only:
                entries += [old] if old else []
                continue
            try:
                if item.id not in recipes:
                    raise ValueError("recipes.yaml has no entry for this item: add its voice and seed")
                source = source_sha256(item, variant, recipes[item.id])
                if old and old.source_sha256 == source and not force and (folder / f"{old.sha256}.flac").exists():
                    entries.append(old)
                    continue
                clip = renderer.render(item, variant, recipes[item.id])
                if clip.failed:
                    raise ValueError("; ".join(clip.failed))
            except (ValueError, SynthesisError) as error:
                failures.append(f"{name}: {error}")
                console.print(f"[red]failed[/] {escape(failures[-1])}", highlight=False)
                continue
            entry = _entry(item, variant, recipes[item.id], clip, write_clip(folder, clip.pcm), source)
            entries.append(entry)
            console.print(
                f"rendered {name}: {entry.duration_s:.2f} s, word error rate {entry.wer:.2f}", highlight=False
            )
    for path in write_manifest(folder, entries):
        console.print(f"removed {path.name}", highlight=False)
    size = sum(path.stat().st_size for path in folder.glob("*.flac"))
    if size > LARGEST_BANK_BYTES:
        failures.append(f"audio/: {size / 1e6:.1f} MB of clips, at most {LARGEST_BANK_BYTES / 1e6:.0f} MB may ship")
        console.print(f"[red]failed[/] {failures[-1]}", highlight=False)
    seconds = sum(entry.duration_s for entry in entries)
    console.print(f"{len(entries)} of {len(wanted)} clips, {seconds:.0f} s, {size / 1e6:.2f} MB", highlight=False)
    return failures


def source_sha256(item: Item, variant: Variant, recipe: ItemRecipe) -> str:
    """Hash of all that a clip is made from: words, delivery, speaker, scene, recipe, versions."""
    extra = recipe.variants.get(variant.variant_id, VariantRecipe())
    source = {
        "transcript": item.transcript,
        "variant": variant.model_dump(mode="json", include={"emotion", "speaker", "channel", "scene"}),
        "recipe": recipe.model_dump(mode="json", exclude={"variants"}),
        "extra": extra.model_dump(mode="json"),
        "engine": engine_of(recipe.voice),
        "renderer": RENDERER_VERSION,
    }
    return hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()


def _entry(
    item: Item, variant: Variant, recipe: ItemRecipe, clip: RenderedClip, sha256: str, source: str
) -> RenderedEntry:
    return RenderedEntry(
        item_id=item.id,
        variant_id=variant.variant_id,
        sha256=sha256,
        engine=clip.engine,
        pcm_sha256=pcm_sha256(clip.pcm),
        rate_hz=RATE_HZ,
        duration_s=round(clip.pcm.size / RATE_HZ, 4),
        speech_end_s=round(clip.speech_end_s, 4),
        voice=recipe.voice,
        wer=round(clip.wer, 4),
        wer_delivered=None if clip.wer_delivered is None else round(clip.wer_delivered, 4),
        approximate="; ".join(clip.reasons) or False,
        gates=clip.gates,
        source_sha256=source,
    )
