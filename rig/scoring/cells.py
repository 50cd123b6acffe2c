"""Captures + bank → scored cells. Pure: reads neither files nor the network.

A text twin is asked once per item and scored against each variant's gold, so it yields a cell per variant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from captures.capture import Capture, Condition, Ending, LaterTurn, ObservedCall
from rig.bank.models import Bank, CueKind, Item, Variant
from rig.scoring.action import ActionScore, no_answer_score, score_action
from rig.scoring.probe import ProbeReading, read_probe
from rig.scoring.roles import ItemRoles, co_executed, item_roles

WORDS_ONLY = "words_only"


class BankMismatchError(ValueError):
    """Captures of items, variants or probes that the bank does not have; the text names them."""


@dataclass(frozen=True, slots=True)
class ScoredCell:
    """One cell of one target with what it earned. `action` and `probe` are None where nothing was measured."""

    target: str
    item_id: str
    variant_id: str
    condition: Condition
    repeat: int
    identity: str
    """Of the capture; the cells of one text twin share it."""
    ending: Ending
    neutral: bool
    """Nothing but the words is to be heard; else the cell is cue-bearing."""
    axis: Literal["scene", "speaker", "delivery"]
    cue_kind: CueKind | None
    control: bool
    """Invariant control: out of every headline."""
    held: bool
    """Held back: out of every headline."""
    action: ActionScore | None = None
    co_executed: bool = False
    roles_derived: bool = False
    probe: ProbeReading | None = None
    not_applicable: str = ""
    """Why what was measured has no score: a probe without a reading, an action that could not be seen."""

    @property
    def scored(self) -> bool:
        """True where something about the agent was measured and could be read."""
        return self.action is not None or self.probe is not None

    @property
    def headline(self) -> bool:
        """True where the cell may enter headline measures."""
        return not self.control and not self.held

    @property
    def credit(self) -> float | None:
        """Credit of the action, None where none was scored."""
        return self.action.credit if self.action else None

    @property
    def passed(self) -> bool | None:
        """Strict pass, None where no action was scored."""
        return self.action.passed if self.action else None


def score_captures(captures: Iterable[Capture], bank: Bank, roles: Mapping[str, str]) -> list[ScoredCell]:
    """Score captures, at most one per cell, against `bank`. `roles`: target name → its role.

    A probe put to a words-only target is not applicable: it cannot hear.

    Raises:
        BankMismatchError: captures name items or variants that the bank lacks.
    """
    captures = list(captures)
    _check(captures, bank)
    items: dict[str, ItemRoles] = {}
    cells: list[ScoredCell] = []
    for capture in captures:
        item = bank.item(capture.item_id)
        if item.id not in items:
            items[item.id] = item_roles(bank, item)
        cells += _cells(capture, bank, item, items[item.id], words_only=roles.get(capture.target) == WORDS_ONLY)
    return cells


def _check(captures: Iterable[Capture], bank: Bank) -> None:
    ids = {item.id for item in bank.items}
    known = {(item.id, variant.variant_id) for item in bank.items for variant in item.variants}
    unknown: set[str] = set()
    for capture in captures:
        if capture.item_id not in ids:
            unknown.add(capture.item_id)
        elif capture.condition is not Condition.TEXT_TWIN and (capture.item_id, capture.variant_id) not in known:
            unknown.add(f"{capture.item_id}/{capture.variant_id or '(no variant)'}")
        elif capture.condition is Condition.PROBE and not _probe_gold(bank.item(capture.item_id), capture.variant_id):
            unknown.add(f"{capture.item_id}/{capture.variant_id} (its probe)")
    if unknown:
        names = sorted(unknown)
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        raise BankMismatchError(
            f"bank {bank.name} lacks {', '.join(names[:10])}{more}: name the bank that the run was made with"
        )


def _cells(capture: Capture, bank: Bank, item: Item, roles: ItemRoles, words_only: bool) -> Iterator[ScoredCell]:
    if capture.condition is Condition.TEXT_TWIN:
        for variant in item.variants:
            yield _action_cell(capture, bank, item, variant, roles)
        return
    assert capture.variant_id is not None
    variant = item.variant(capture.variant_id)
    if capture.condition is Condition.AUDIO:
        yield _action_cell(capture, bank, item, variant, roles)
    else:
        yield _probe_cell(capture, bank, item, variant, roles, words_only)


def _action_cell(capture: Capture, bank: Bank, item: Item, variant: Variant, roles: ItemRoles) -> ScoredCell:
    action, reason = None, ""
    if not capture.tools_seen:
        reason = "its tool calls cannot be seen" if capture.ending.scored else ""
    elif capture.ending is Ending.NO_ANSWER:
        action = no_answer_score()
    elif capture.ending.scored:
        action = score_action(counted_calls(capture), variant.gold, bank.menu(item))
    both = action is not None and co_executed(action.called, item, variant, roles)
    return _cell(capture, bank, item, variant, roles, action=action, both=both, not_applicable=reason)


def counted_calls(capture: Capture | LaterTurn) -> tuple[ObservedCall, ...]:
    """The calls that count. An answer that was cut short is scored by what was complete; a call that was cut off
    before any was complete remains a wrong call.
    """
    if capture.ending is not Ending.UNFINISHED:
        return capture.calls
    return tuple(call for call in capture.calls if call.complete) or capture.calls


def _probe_cell(
    capture: Capture, bank: Bank, item: Item, variant: Variant, roles: ItemRoles, words_only: bool
) -> ScoredCell:
    gold = _probe_gold(item, variant.variant_id)
    assert gold is not None
    assert item.perception_probe is not None
    reading, reason = None, ""
    if words_only:
        reason = "words only: it cannot hear"
    elif capture.ending is Ending.NO_ANSWER:
        reading = ProbeReading(gold, None, None, "silence")
    elif capture.ending.scored:
        reading = read_probe(capture.reply_text, capture.reply_transcript, item.perception_probe.options, gold)
        reason = "" if reading else "no answer that can be read as text"
    return _cell(capture, bank, item, variant, roles, probe=reading, not_applicable=reason)


def _cell(
    capture: Capture,
    bank: Bank,
    item: Item,
    variant: Variant,
    roles: ItemRoles,
    *,
    action: ActionScore | None = None,
    both: bool = False,
    probe: ProbeReading | None = None,
    not_applicable: str = "",
) -> ScoredCell:
    annotation = bank.annotation(item)
    return ScoredCell(
        target=capture.target,
        item_id=item.id,
        variant_id=variant.variant_id,
        condition=capture.condition,
        repeat=capture.repeat,
        identity=capture.identity,
        ending=capture.ending,
        neutral=variant.is_neutral,
        axis=variant.axis,
        cue_kind=bank.cue_kind(item, variant),
        control=item.is_control,
        held=bool(item.held) or bool(annotation and annotation.held),
        action=action,
        co_executed=both,
        roles_derived=roles.derived,
        probe=probe,
        not_applicable=not_applicable,
    )


def _probe_gold(item: Item, variant_id: str | None) -> str | None:
    if item.perception_probe is None or variant_id is None:
        return None
    return item.perception_probe.gold_by_variant.get(variant_id)
