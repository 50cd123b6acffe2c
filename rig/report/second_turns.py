"""Second turns of one target, counted and scored by the golds of their items' followups. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from captures.capture import Capture, Condition, Ending
from rig.bank.models import Bank
from rig.report.model import SecondTurns
from rig.scoring.action import no_answer_score, score_action
from rig.scoring.cells import counted_calls
from rig.stats.bootstrap import Sample, proportion


def second_turns(captures: Sequence[Capture], bank: Bank) -> SecondTurns | None:
    """Of captures with at most one per cell; items held back and invariant controls are in the counts alone."""
    recorded = [capture for capture in captures if capture.second_turn is not None]
    if not recorded:
        return None
    return SecondTurns(
        recorded=len(recorded),
        answered=sum(_answered(capture) for capture in recorded),
        credit=proportion([sample for capture in recorded if (sample := _sample(capture, bank))]),
    )


def _answered(capture: Capture) -> bool:
    decisive = capture.second_turn.decisive if capture.second_turn else None
    return decisive is not None and decisive.ending.scored


def _sample(capture: Capture, bank: Bank) -> Sample | None:
    item = bank.item(capture.item_id)
    annotation = bank.annotation(item)
    decisive = capture.second_turn.decisive if capture.second_turn else None
    if decisive is None or not decisive.ending.scored or capture.condition is not Condition.AUDIO:
        return None
    if item.is_control or item.held or (annotation and annotation.held) or capture.variant_id is None:
        return None
    if decisive.ending is Ending.NO_ANSWER:
        score = no_answer_score()
    else:
        gold = item.second_gold(item.variant(capture.variant_id))
        score = score_action(counted_calls(decisive), gold, bank.menu(item))
    return Sample(score.credit, item.id, capture.repeat)
