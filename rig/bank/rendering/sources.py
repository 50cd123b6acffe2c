"""What a clip is made from, as one hash: another value means that it must be rendered again."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version

from rig.bank.models import Item, Variant
from rig.bank.rendering.deliveries import delivery_of
from rig.bank.rendering.recipes import ItemRecipe, VariantRecipe

RENDERER_VERSION = 6
"""Raised whenever the renderer makes other samples, or judges them otherwise, from the same sources."""


def source_sha256(item: Item, variant: Variant, turn: int, recipe: ItemRecipe, engine: str) -> str:
    """Hash of words, delivery with its figures, speaker, scene, channel, recipe, and versions of engine and vocoder.

    `engine` is the synthesiser's name and version. Raises ValueError for an unknown emotion or speaker.
    """
    extra = recipe.variants.get(variant.variant_id, VariantRecipe())
    scene = variant.scene if turn == 1 else None
    deliveries = [delivery_of(extra.delivery or variant.emotion, variant.intensity, variant.speaker)]
    if scene is not None:
        deliveries.append(delivery_of(scene.emotion or "neutral", scene.intensity, scene.speaker))
    reply = item.followup.reply if item.followup else None
    source = {
        "words": item.transcript if turn == 1 else reply,
        "deliveries": [delivery.model_dump(mode="json") for delivery in deliveries],
        "scene": scene.model_dump(mode="json") if scene else None,
        "channel": variant.channel,
        "recipe": recipe.model_dump(mode="json", exclude={"variants"}),
        "extra": extra.model_dump(mode="json"),
        "engine": engine,
        "vocoder": version("pyworld-prebuilt"),
        "codecs": version("av") if variant.channel else None,
        "renderer": RENDERER_VERSION,
    }
    return hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()
