"""Groupings that hearing and deciding are shown by: feelings or facts, acute or quiet, stated or implicit rule, sector.

Each places a cue-bearing variant in one group or in none. Which deliveries are acute is data (`states.yaml`).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from rig.bank.models import Bank, CueKind, Item, Variant
from rig.bank.yaml_file import read_yaml

FEELINGS = frozenset({CueKind.EMOTIONAL_DELIVERY, CueKind.SARCASM})
"""Cues that leave the request intact and change what the caller's state asks for; every other cue changes facts."""

CONTRASTS = ("cue_kind", "feelings_facts", "acute_quiet", "rule", "sector")


def groups(bank: Bank, item: Item, variant: Variant) -> dict[str, str]:
    """Contrast → the group of a cue-bearing variant; a contrast that does not apply to it is absent.

    The sector is the annotated one, else the item's domain.
    """
    kind = bank.cue_kind(item, variant)
    if kind is None:
        return {}
    annotation = bank.annotation(item)
    feeling = kind in FEELINGS
    found = {
        "cue_kind": kind.value,
        "feelings_facts": "feelings" if feeling else "facts",
        "rule": "stated" if item.policy_mode == "explicit" else "implicit",
        "sector": (annotation.sector if annotation and annotation.sector else item.domain),
    }
    if feeling:
        found["acute_quiet"] = "acute" if variant.emotion.casefold() in acute_deliveries() else "quiet"
    return found


@cache
def acute_deliveries() -> frozenset[str]:
    """The deliveries that count as acute alarm."""
    data = read_yaml(Path(str(files("rig.scoring").joinpath("states.yaml"))), 64 * 1024)
    assert isinstance(data, dict)
    return frozenset(str(word).casefold() for word in data["acute"])
