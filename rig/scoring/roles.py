"""What calling a tool means for the caller's protection, and what follows: protective variants, the words' default,
co-execution. Annotated where the bank says so, else derived from the golds. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rig.bank.models import Bank, Gold, Item, Role, Variant


@dataclass(frozen=True, slots=True)
class ItemRoles:
    """Tool name → role for one item; None as a name stands for making no call."""

    roles: Mapping[str | None, Role]
    derived: bool
    """True where the bank annotates none: every table made from these says so."""

    def of(self, gold: Gold) -> Role | None:
        """The role of a gold's tool."""
        return self.roles.get(gold.tool)


def item_roles(bank: Bank, item: Item) -> ItemRoles:
    """The item's roles. Derived: a neutral variant's gold proceeds, a cue-bearing sibling's differing gold protects,
    standing actions defer (also where an annotation leaves them out). Whether making no call proceeds or protects
    is always derived.
    """
    standing: dict[str | None, Role] = {action.name: Role.DEFER for action in bank.standing_actions}
    derived = dict(standing)
    neutral = {variant.gold.tool for variant in item.variants if variant.is_neutral}
    derived |= dict.fromkeys(neutral, Role.PROCEED)
    if neutral:
        cued = {variant.gold.tool for variant in item.variants if not variant.is_neutral}
        derived |= dict.fromkeys(cued - neutral, Role.PROTECT)
    annotation = bank.annotation(item)
    if annotation is None or not annotation.roles:
        return ItemRoles(derived, derived=True)
    annotated = standing | dict(annotation.roles.items())
    if None in derived:
        annotated[None] = derived[None]
    return ItemRoles(annotated, derived=False)


def words_default(item: Item, variant: Variant, roles: ItemRoles) -> Gold | None:
    """The proceeding sibling's gold of a protective variant (a neutral sibling's first); None on any other variant."""
    if roles.of(variant.gold) is not Role.PROTECT:
        return None
    siblings = [one for one in item.variants if one is not variant and roles.of(one.gold) is Role.PROCEED]
    siblings.sort(key=lambda sibling: not sibling.is_neutral)
    return siblings[0].gold if siblings else None


def co_executed(called: Sequence[str | None], item: Item, variant: Variant, roles: ItemRoles) -> bool:
    """True when one turn holds a protective call and the words' default: the agent did both."""
    default = words_default(item, variant, roles)
    if default is None or default.tool is None or default.tool not in called:
        return False
    return any(name is not None and roles.roles.get(name) is Role.PROTECT for name in called)
