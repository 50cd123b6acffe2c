"""Captures against a bank: endings, twins, probes, roles, and captures that the bank does not know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from captures.capture import Capture, Condition, Ending, ObservedCall
from rig.bank.models import Annotation, Bank, BankInfo, CueKind, Item
from rig.scoring.cells import BankMismatchError, ScoredCell, score_captures
from rig.scoring.roles import co_executed, item_roles, words_default

MakeCall = Callable[..., ObservedCall]

ITEM = Item.model_validate(
    {
        "id": "door-01",
        "policy_mode": "implicit",
        "domain": "security",
        "transcript": "All fine here.",
        "scenario": "You guard a door.",
        "tools": [
            {"name": "close_log", "description": "Close the log."},
            {"name": "send_patrol", "description": "Send a patrol."},
        ],
        "variants": [
            {"variant_id": "calm", "gold": {"tool": "close_log"}},
            {"variant_id": "whisper", "emotion": "whispered", "gold": {"tool": "send_patrol"}},
        ],
        "perception_probe": {
            "question": "How does the caller speak?",
            "options": ["calmly", "in a whisper"],
            "gold_by_variant": {"calm": "calmly", "whisper": "in a whisper"},
        },
    }
)


def bank_of(item: Item = ITEM, annotation: Annotation | None = None) -> Bank:
    return Bank(Path("doors"), BankInfo(), (item,), {item.id: annotation} if annotation else {})


def capture(condition: Condition, variant: str | None = None, ending: Ending = Ending.CALLED, **fields: Any) -> Capture:
    base: dict[str, Any] = {
        "identity": f"{condition}-{variant}",
        "target": "agent",
        "item_id": "door-01",
        "variant_id": variant,
        "condition": condition,
        "finished": True,
        "started_ns": 0,
        "adapter": "rig_socket",
        "wire_version": 1,
        "parser_version": 1,
        "ending": ending,
    }
    return Capture(**(base | fields))


def one(captured: Capture, bank: Bank | None = None, role: str = "contestant") -> ScoredCell:
    (cell,) = score_captures([captured], bank or bank_of(), {"agent": role})
    return cell


def test_an_audio_cell_knows_what_it_is(call: MakeCall) -> None:
    cell = one(capture(Condition.AUDIO, "whisper", calls=(call("send_patrol"),)))
    assert (cell.credit, cell.passed, cell.neutral, cell.cue_kind) == (1.0, True, False, CueKind.EMOTIONAL_DELIVERY)
    assert (cell.axis, cell.headline, cell.roles_derived) == ("delivery", True, True)


def test_a_text_twin_is_scored_against_each_variants_gold(call: MakeCall) -> None:
    cells = score_captures([capture(Condition.TEXT_TWIN, calls=(call("close_log"),))], bank_of(), {})
    assert [(cell.variant_id, cell.credit) for cell in cells] == [("calm", 1.0), ("whisper", 0.0)]


def test_no_answer_is_wrong_even_where_no_call_is_right() -> None:
    silent = Item.model_validate(ITEM.model_dump() | {"variants": [{"variant_id": "calm", "gold": {"tool": None}}]})
    assert one(capture(Condition.AUDIO, "calm", Ending.DECLINED), bank_of(silent)).credit == 1.0
    cell = one(capture(Condition.AUDIO, "calm", Ending.NO_ANSWER), bank_of(silent))
    assert cell.action is not None
    assert (cell.credit, cell.action.reasons) == (0.0, ("no answer within the turn limit",))


@pytest.mark.parametrize("ending", [Ending.INFRASTRUCTURE_ERROR, Ending.CONFIGURATION_ERROR, Ending.INPUT_ERROR])
def test_errors_are_never_scored(ending: Ending, call: MakeCall) -> None:
    cell = one(capture(Condition.AUDIO, "calm", ending, calls=(call("close_log"),)))
    assert (cell.scored, cell.credit, cell.passed) == (False, None, None)
    assert not one(capture(Condition.PROBE, "calm", ending, reply_text="calmly")).scored


def test_an_unfinished_answer_is_scored_by_what_was_complete(call: MakeCall) -> None:
    whole, cut = call("close_log"), call("close_log", raw='{"a', index=1)
    assert one(capture(Condition.AUDIO, "calm", Ending.UNFINISHED, calls=(whole, cut))).credit == 1.0
    assert one(capture(Condition.AUDIO, "calm", Ending.UNFINISHED, calls=(cut,))).credit == 0.0
    assert one(capture(Condition.AUDIO, "calm", Ending.CALLED, calls=(whole, cut))).credit == 0.0


def test_probes() -> None:
    heard = one(capture(Condition.PROBE, "whisper", Ending.DECLINED, reply_transcript="In a whisper."))
    assert heard.probe is not None
    assert (heard.probe.value("strict", "missing"), heard.probe.source) == (1.0, "reply_transcript")
    silent = one(capture(Condition.PROBE, "whisper", Ending.NO_ANSWER))
    assert silent.probe is not None
    assert (silent.probe.value("lenient", "wrong"), silent.probe.value("lenient", "missing")) == (0.0, None)
    blank = one(capture(Condition.PROBE, "whisper", Ending.DECLINED))
    assert (blank.probe, blank.not_applicable) == (None, "no answer that can be read as text")
    deaf = one(capture(Condition.PROBE, "whisper", Ending.DECLINED, reply_text="calmly"), role="words_only")
    assert (deaf.probe, deaf.not_applicable) == (None, "words only: it cannot hear")


def test_doing_both_in_one_turn_is_flagged(call: MakeCall) -> None:
    both = (call("close_log"), call("send_patrol", index=1))
    assert one(capture(Condition.AUDIO, "whisper", calls=both)).co_executed
    assert not one(capture(Condition.AUDIO, "calm", calls=both)).co_executed
    assert not one(capture(Condition.AUDIO, "whisper", calls=both[1:])).co_executed
    annotated = bank_of(annotation=Annotation.model_validate({"roles": {"close_log": "defer"}}))
    cell = one(capture(Condition.AUDIO, "whisper", calls=both), annotated)
    assert (cell.co_executed, cell.roles_derived) == (False, False)


def test_the_words_default_is_the_proceeding_siblings_gold() -> None:
    roles = item_roles(bank_of(), ITEM)
    calm, whisper = ITEM.variants
    assert words_default(ITEM, whisper, roles) == calm.gold
    assert words_default(ITEM, calm, roles) is None
    assert not co_executed(("close_log", "escalate_to_human"), ITEM, whisper, roles)


def test_held_items_and_controls_are_out_of_headlines(call: MakeCall) -> None:
    captured = capture(Condition.AUDIO, "calm", calls=(call("close_log"),))
    control = ITEM.model_copy(update={"design": "invariant_control"})
    assert not one(captured, bank_of(control)).headline
    assert not one(captured, bank_of(annotation=Annotation(held=True))).headline


def test_captures_that_the_bank_does_not_know_are_named() -> None:
    strangers = [
        capture(Condition.AUDIO, "calm", item_id="window-07"),
        capture(Condition.AUDIO, "shout"),
        capture(Condition.AUDIO, None),
    ]
    with pytest.raises(BankMismatchError, match=r"door-01/\(no variant\), door-01/shout, window-07"):
        score_captures(strangers, bank_of(), {})
