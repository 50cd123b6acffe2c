"""The recipe file: which voice and seed speak each item. What a variant sounds like stands in the item file itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from rig.bank.loader import MAX_ITEM_BYTES
from rig.bank.rendering.deliveries import EmotionName
from rig.bank.rendering.voices import VOICES
from rig.bank.yaml_file import YamlFileError, read_yaml


def _known_voice(name: str) -> str:
    if name not in VOICES:
        raise ValueError(f"unknown voice {name!r}; known: {', '.join(sorted(VOICES))}")
    return name


VoiceName = Annotated[str, AfterValidator(_known_voice)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class VariantRecipe(_Strict):
    """What one variant needs beyond its item's recipe."""

    delivery: EmotionName | None = None
    """Instead of the variant's own emotion, at the same intensity."""
    second_voice: VoiceName | None = None
    """Who speaks the scene's text; by default a synthesiser other than the caller's."""
    approximate: str | None = None
    """Why this clip only suggests its cue, where the delivery does not say so already."""


class ItemRecipe(_Strict):
    """Voice and seed of one item, the same for all its variants."""

    voice: VoiceName
    seed: Annotated[int, Field(ge=0)]
    spoken: str | None = None
    """What the synthesiser is given where it would read the transcript otherwise than a caller says it; same words."""
    spoken_reply: str | None = None
    """The same for the caller's reply in a followup."""
    variants: Mapping[str, VariantRecipe] = Field(default_factory=dict)


class Recipes(_Strict):
    """`recipes.yaml`."""

    version: Literal[1]
    items: Mapping[str, ItemRecipe]


def read_recipes(path: Path) -> Recipes:
    """The recipe file; raises ValueError with one line for each thing wrong in it."""
    try:
        return Recipes.model_validate(read_yaml(path, MAX_ITEM_BYTES))
    except YamlFileError as error:
        raise ValueError(f"{path}: {error}") from error
    except ValidationError as error:
        lines = [f"{path}: {'.'.join(map(str, part['loc']))}: {part['msg']}" for part in error.errors()]
        raise ValueError("\n".join(lines)) from error
