"""What policies that hear and think nothing would earn on a bank: a bank that pays them well measures no hearing.

Each picks a tool (or an option of the probe) by its place, its length or its frequency. It is paid by the tool's name
alone, so that no policy fails for want of arguments: 1 for the gold's tool, else the credit of an acceptable one.
Invariant controls are left out, as they are of every headline. Pure; the lint compares with the bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from rig.bank.items import Gold, Item, Variant
from rig.bank.models import Bank

FEWEST_ITEMS = 10
"""With fewer items a policy may do well by chance: shown, never judged."""

_Pick = Callable[[Item, Variant], str | None]


@dataclass(frozen=True, slots=True)
class BlindPolicy:
    """One policy's mean over the variants of a bank."""

    name: str
    mean: float
    bound: float
    judged: bool
    """False in a bank of fewer than `FEWEST_ITEMS` items."""

    @property
    def exceeds(self) -> bool:
        """True where the policy earns more than a bank may pay it."""
        return self.judged and self.mean > self.bound


def blind_policies(bank: Bank) -> list[BlindPolicy]:
    """Every policy with what it earns and its bound (`bank.yaml`, `blind_bounds`), in a fixed order.

    Empty for a bank without an item to judge by.
    """
    items = [item for item in bank.items if not item.is_control]
    asked = [item for item in items if item.perception_probe is not None]
    judged = len(items) >= FEWEST_ITEMS
    bounds = bank.info.blind_bounds
    found: list[BlindPolicy] = []
    for name, pick in _tool_policies(bank, items) if items else ():
        credits = [selection_credit(variant.gold, pick(item, variant)) for item in items for variant in item.variants]
        found.append(BlindPolicy(name, fmean(credits), bounds.action, judged))
    for name, pick in _probe_policies(bank, asked) if asked else ():
        hits = [
            float(pick(item, variant) == item.perception_probe.gold_by_variant.get(variant.variant_id))
            for item in asked
            if item.perception_probe is not None
            for variant in item.variants
        ]
        found.append(BlindPolicy(name, fmean(hits), bounds.probe, judged))
    return found


def selection_credit(gold: Gold, tool: str | None) -> float:
    """What calling `tool` (None: nothing) is worth by its name alone."""
    if tool == gold.tool:
        return 1.0
    return max((one.credit for one in gold.acceptable if one.tool == tool), default=0.0)


def _tool_policies(bank: Bank, items: Sequence[Item]) -> list[tuple[str, _Pick]]:
    def place(k: int) -> _Pick:
        return lambda item, _: _at([tool.name for tool in bank.menu(item)], k)

    def named(name: str | None) -> _Pick:
        return lambda _item, _variant: name

    def by_length(item: Item, longest: bool) -> str | None:
        menu = sorted(bank.menu(item), key=lambda tool: len(tool.description), reverse=longest)
        return menu[0].name if menu else None

    def frequent(item: Item, _: Variant) -> str | None:
        menu = {tool.name for tool in bank.menu(item)}
        golds = Counter(v.gold.tool for other in items if other is not item for v in other.variants)
        return next((tool for tool, _ in golds.most_common() if tool is None or tool in menu), None)

    places = max(len(bank.menu(item)) for item in items)
    return [
        *((f"always tool {k + 1}", place(k)) for k in range(places)),
        *((f"always {action.name}", named(action.name)) for action in bank.standing_actions),
        ("never a tool", named(None)),
        ("the longest description", lambda item, _: by_length(item, True)),
        ("the shortest description", lambda item, _: by_length(item, False)),
        ("tool 2 when not neutral, else 1", lambda item, v: place(0 if v.is_neutral else 1)(item, v)),
        ("the most frequent gold of other items", frequent),
    ]


def _probe_policies(bank: Bank, items: Sequence[Item]) -> list[tuple[str, _Pick]]:
    def place(k: int) -> _Pick:
        return lambda item, _: _at(bank.probe_options(item), k)

    def frequent(item: Item, _: Variant) -> str | None:
        options = bank.probe_options(item)
        answers = Counter(
            answer
            for other in items
            if other is not item and other.perception_probe is not None
            for answer in other.perception_probe.gold_by_variant.values()
        )
        return next((answer for answer, _ in answers.most_common() if answer in options), None)

    return [
        ("probe: the first option", place(0)),
        ("probe: the last option", place(-1)),
        ("probe: the longest option", lambda item, _: max(bank.probe_options(item), key=len)),
        ("probe: option 2 when not neutral, else 1", lambda item, v: place(0 if v.is_neutral else 1)(item, v)),
        ("probe: the most frequent answer of other items", frequent),
    ]


def _at(names: Sequence[str], k: int) -> str | None:
    return names[k] if k < len(names) else None
