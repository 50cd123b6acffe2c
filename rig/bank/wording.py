"""Checks of an item's wording: nothing may turn on the speaker's gender, and what is spoken is written as words.

Wording alone; what the fields mean together is `rig.bank.lint`. English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rig.bank.items import Item

_GENDER = re.compile(
    r"\b(?:gender|male|female|m[ae]n|wom[ae]n|boys?|girls?|lad(?:y|ies)|gentlem[ae]n|masculine|feminine|sir|madam"
    r"|(?P<pronoun>s?he|his|hers?|him))\b",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d[\d,.:/-]*")


def gendered(item: Item) -> Iterator[tuple[str, str, bool]]:
    """(field, words, whether all are pronouns, which may mean somebody else) where an agent is told or asked of gender.

    No action may depend on the speaker's.
    """
    for field, text in _told(item):
        seen = {found.group().casefold(): found["pronoun"] is not None for found in _GENDER.finditer(text)}
        if seen:
            yield field, ", ".join(seen), all(seen.values())


def digits_in_speech(item: Item) -> Iterator[tuple[str, str]]:
    """(field, digits) where spoken words hold digits: synthesisers and recognisers read them each in their own way."""
    spoken = [("transcript", item.transcript)]
    spoken += [
        (f"variants[{index}].scene.text", variant.scene.text)
        for index, variant in enumerate(item.variants)
        if variant.scene is not None and variant.scene.text is not None
    ]
    if item.followup is not None:
        spoken.append(("followup.reply", item.followup.reply))
    for field, text in spoken:
        for found in _DIGITS.finditer(text):
            yield field, found.group()


def _told(item: Item) -> Iterator[tuple[str, str]]:
    yield "scenario", item.scenario
    yield "explicit_policy", item.explicit_policy or ""
    for index, tool in enumerate(item.tools):
        yield f"tools[{index}].name", tool.name.replace("_", " ")
        yield f"tools[{index}].description", tool.description
        for position, param in enumerate(tool.params):
            yield f"tools[{index}].params[{position}].description", param.description
    if item.perception_probe is not None:
        yield "perception_probe.question", item.perception_probe.question
        for index, option in enumerate(item.perception_probe.options):
            yield f"perception_probe.options[{index}]", option
