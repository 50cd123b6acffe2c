"""What the second turn of one capture is worth, by its item's followup. Pure; statistics are elsewhere."""

from __future__ import annotations

from captures.capture import Capture, Condition, Ending
from rig.bank.models import Bank
from rig.scoring.action import no_answer_score, score_action
from rig.scoring.cells import counted_calls


def second_credit(capture: Capture, bank: Bank) -> float | None:
    """Credit by the second turn's gold; None where none was measured, off audio, on controls and on held items."""
    item = bank.item(capture.item_id)
    annotation = bank.annotation(item)
    decisive = capture.second_turn.decisive if capture.second_turn else None
    if decisive is None or not decisive.ending.scored or capture.condition is not Condition.AUDIO:
        return None
    if item.is_control or item.held or (annotation and annotation.held) or capture.variant_id is None:
        return None
    if decisive.ending is Ending.NO_ANSWER:
        return no_answer_score().credit
    gold = item.second_gold(item.variant(capture.variant_id))
    return score_action(counted_calls(decisive), gold, bank.menu(item)).credit
