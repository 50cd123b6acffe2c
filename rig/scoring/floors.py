"""Degenerate agents, as captures: what policies that need no hearing (or no thought) would have done on any bank.

They go through the same scoring as any target, so that a measure which one of them meets shows nothing. Each picks a
tool by a rule; it is given the best arguments that the item knows for that tool, since a floor must not fail by
clumsiness. No audio is read: "loud" is any cue-bearing clip.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from captures.capture import Capture, Condition, Ending, ObservedCall
from rig.bank.models import Bank, Item, Param, Role, Tool, Variant
from rig.scoring.roles import item_roles

ADAPTER, ROLE = "floor", "floor"
_SEED = 20260915
_Choice = str | None
"""A tool's name; None for no call."""
_NO_STAND_IN = "the bank's standing actions have none of that kind"


@dataclass(frozen=True, slots=True)
class Floor:
    """One degenerate agent."""

    name: str
    what: str
    """What it does, in words."""
    choose: Callable[[Item, Variant | None], _Choice]
    """The tool that it calls; None in place of the variant stands for the text twin."""
    answer: Callable[[Item, Variant], str]
    """Its reply to the probe."""


def floors(bank: Bank) -> tuple[list[Floor], list[str]]:
    """The floors that exist on this bank, in a fixed order, and a line for each that does not."""
    often = [tool for tool, _ in Counter(_golds(bank)).most_common()]
    answers = [
        answer
        for answer, _ in Counter(
            answer
            for item in bank.items
            if item.perception_probe
            for answer in item.perception_probe.gold_by_variant.values()
        ).most_common()
    ]

    def most_frequent(item: Item, _: Variant | None) -> _Choice:
        menu = {tool.name for tool in bank.menu(item)}
        return next((tool for tool in often if tool is None or tool in menu), None)

    def draw(item: Item, variant: Variant | None) -> _Choice:
        place = variant.variant_id if variant else "text twin"
        return random.Random(f"floor:{_SEED}:{item.id}:{place}").choice([tool.name for tool in bank.menu(item)])

    def second_when_loud(item: Item, variant: Variant | None) -> _Choice:
        menu = bank.menu(item)
        return menu[1 if _loud(variant) and len(menu) > 1 else 0].name if menu else None

    found = [
        Floor(
            "always-first-tool",
            "the first tool of the menu as offered",
            lambda item, _: bank.menu(item)[0].name,
            lambda item, _: bank.probe_options(item)[0],
        )
    ]
    absent = []
    for name, part, what in (
        ("always-escalate", "escalat", "hands every call over"),
        ("always-clarify", "clarif", "asks a question on every call"),
    ):
        action = _standing(bank, part)
        if action is None:
            absent.append(f"{name}: {_NO_STAND_IN}")
        else:
            found.append(Floor(name, what, _always(action), _names_nothing))
    found += [
        Floor("never-acts", "calls no tool", _always(None), _names_nothing),
        Floor(
            "random",
            "any tool of the menu, with a fixed seed",
            draw,
            lambda item, variant: random.Random(f"floor:{_SEED}:probe:{item.id}:{variant.variant_id}").choice(
                bank.probe_options(item)
            ),
        ),
        Floor(
            "words-default-oracle",
            "what the words ask for, known without fail, whatever is heard",
            lambda item, _: _words_tool(bank, item),
            lambda item, _: _words_answer(item),
        ),
        Floor(
            "second-tool-when-loud",
            "the menu's second tool on any cue-bearing clip, else the first",
            second_when_loud,
            lambda item, variant: bank.probe_options(item)[1 if _loud(variant) else 0],
        ),
        Floor(
            "most-frequent-gold",
            "the tool that is right most often in this bank, of those on the menu",
            most_frequent,
            lambda item, _: next(one for one in answers if one in bank.probe_options(item)),
        ),
    ]
    return found, absent


def floor_captures(floor: Floor, bank: Bank, clips: Collection[tuple[str, str]] | None = None) -> list[Capture]:
    """All that `floor` does on `bank`, or on the (item, variant) pairs in `clips` and those items' text twins."""
    found = []
    for item in bank.items:
        variants = [one for one in item.variants if clips is None or (item.id, one.variant_id) in clips]
        if not variants or not bank.menu(item):
            continue
        found.append(_turn(floor, bank, item, None))
        found += [_turn(floor, bank, item, variant) for variant in variants]
        probe = item.perception_probe
        asked = [one for one in variants if probe is not None and one.variant_id in probe.gold_by_variant]
        found += [_capture(floor, item, variant, Condition.PROBE, (), floor.answer(item, variant)) for variant in asked]
    return found


def _turn(floor: Floor, bank: Bank, item: Item, variant: Variant | None) -> Capture:
    name = floor.choose(item, variant)
    condition = Condition.TEXT_TWIN if variant is None else Condition.AUDIO
    if name is None:
        return _capture(floor, item, variant, condition, ())
    tool = next(tool for tool in bank.menu(item) if tool.name == name)
    arguments = _arguments(item, tool)
    call = ObservedCall(
        call_id="floor",
        name=name,
        arguments_json=json.dumps(arguments),
        arguments=arguments,
        output_index=0,
        complete=True,
    )
    return _capture(floor, item, variant, condition, (call,))


def _capture(
    floor: Floor,
    item: Item,
    variant: Variant | None,
    condition: Condition,
    calls: tuple[ObservedCall, ...],
    text: str = "",
) -> Capture:
    variant_id = variant.variant_id if variant else None
    return Capture(
        identity=f"floor:{floor.name}:{item.id}:{variant_id}:{condition}",
        target=floor.name,
        item_id=item.id,
        variant_id=variant_id,
        condition=condition,
        finished=True,
        started_ns=0,
        adapter=ADAPTER,
        wire_version=0,
        parser_version=0,
        ending=Ending.CALLED if calls else Ending.DECLINED,
        calls=calls,
        reply_text=text,
    )


def _arguments(item: Item, tool: Tool) -> dict[str, Any]:
    """Those of the first gold with this tool (a neutral variant's before others), else something for each required."""
    ordered = sorted(item.variants, key=lambda variant: not variant.is_neutral)
    stated = [variant.gold.args for variant in ordered if variant.gold.tool == tool.name]
    stated += [one.args for variant in ordered for one in variant.gold.acceptable if one.tool == tool.name]
    if stated:
        return {name: admissible[0] for name, admissible in stated[0].items()}
    return {param.name: _placeholder(param) for param in tool.params if param.required}


def _placeholder(param: Param) -> Any:
    if param.enum:
        return param.enum[0]
    return {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}[param.type]


def _golds(bank: Bank) -> Iterator[_Choice]:
    for item in bank.items:
        if not item.is_control:
            yield from (variant.gold.tool for variant in item.variants)


def _words_variant(item: Item) -> Variant | None:
    return next((variant for variant in item.variants if variant.is_neutral), None)


def _words_tool(bank: Bank, item: Item) -> _Choice:
    """A neutral variant's gold, else one that proceeds, else the first."""
    neutral = _words_variant(item)
    if neutral is not None:
        return neutral.gold.tool
    roles = item_roles(bank, item)
    proceeding = [variant.gold.tool for variant in item.variants if roles.of(variant.gold) is Role.PROCEED]
    return proceeding[0] if proceeding else item.variants[0].gold.tool


def _words_answer(item: Item) -> str:
    neutral, probe = _words_variant(item), item.perception_probe
    assert probe is not None
    known = probe.gold_by_variant.get(neutral.variant_id) if neutral else None
    return known or probe.options[0]


def _standing(bank: Bank, part: str) -> str | None:
    return next((action.name for action in bank.standing_actions if part in action.name.casefold()), None)


def _always(name: _Choice) -> Callable[[Item, Variant | None], _Choice]:
    return lambda _item, _variant: name


def _loud(variant: Variant | None) -> bool:
    return variant is not None and not variant.is_neutral


def _names_nothing(_item: Item, _variant: Variant) -> str:
    return "no option"
