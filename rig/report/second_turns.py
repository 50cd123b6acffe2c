"""Second turns of one target, counted and scored by the golds of their items' followups. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from captures.capture import Capture
from rig.bank.models import Bank
from rig.report.model import SecondTurns
from rig.scoring.second_turn import second_credit
from rig.stats.bootstrap import Sample, proportion


def second_turns(captures: Sequence[Capture], bank: Bank) -> SecondTurns | None:
    """Of captures with at most one per cell; items held back and invariant controls are in the counts alone."""
    recorded = [capture for capture in captures if capture.second_turn is not None]
    if not recorded:
        return None
    return SecondTurns(
        recorded=len(recorded),
        answered=sum(_answered(capture) for capture in recorded),
        credit=proportion(
            Sample(credit, capture.item_id, capture.repeat)
            for capture in recorded
            if (credit := second_credit(capture, bank)) is not None
        ),
    )


def _answered(capture: Capture) -> bool:
    decisive = capture.second_turn.decisive if capture.second_turn else None
    return decisive is not None and decisive.ending.scored
