"""Second turns through the whole engine: a clarifying call, its result, the caller's scripted reply."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from captures.capture import Capture, Condition, Ending, LaterTurn, Mark, SecondTurn
from rig.config import Price, parse_config
from rig.engine.costs import cost_of
from rig.engine.prepare import prepare

ASK = "ask_clarifying_question"
RESULT = "The caller was asked for the time."
REPLY = "At half past seven."
ARGUMENTS = '{"party":4,"time":"19:30"}'


def _item(banks: Any) -> dict[str, Any]:
    item: dict[str, Any] = copy.deepcopy(banks.BOOKING)
    gold = item["variants"][0]["gold"]
    item["followup"] = {
        "trigger_tools": [ASK],
        "result": RESULT,
        "reply": REPLY,
        "gold_by_variant": {"noisy": {"tool": gold["tool"], "args": {"party": [4], "time": ["19:30"]}}},
    }
    return item


@pytest.fixture
def bank(tmp_path: Path, banks: Any) -> Path:
    """Only the variant `noisy` has a clip."""
    return banks.write_bank(tmp_path / "bank", {"noisy": banks.wav(banks.tone(0.3))}, (_item(banks),))


def _add_reply_clip(bank: Path, banks: Any) -> Any:
    samples = banks.tone(0.2, hz=700)
    clip = banks.wav(samples)
    sha256 = hashlib.sha256(clip).hexdigest()
    (bank / "audio" / f"{sha256}.wav").write_bytes(clip)
    manifest = bank / "audio" / "manifest.yaml"
    entries = yaml.safe_load(manifest.read_text())
    entries.append({"item_id": "booking", "variant_id": "noisy", "sha256": sha256, "engine": "test", "turn": 2})
    manifest.write_text(json.dumps(entries))
    return samples


def _call(ga: Any, name: str, arguments: str = "{}", call_id: str = "c1") -> list[Any]:
    item = f"it_{call_id}"
    events = ga.call_events(name, arguments, call_id, item)
    whole = ga.done(output=(ga.call_item(name, arguments, call_id, item),))
    return _as(f"resp_{call_id}", ga.sends([ga.created(), *events, whole]))


def _as(response_id: str, steps: list[Any]) -> list[Any]:
    """The same answer under another id."""
    return [(kind, json.loads(json.dumps(sent).replace('"resp_1"', f'"{response_id}"'))) for kind, sent in steps]


def _asks_then_books(ga: Any) -> list[Any]:
    given = ("expect", "conversation.item.create"), ("expect", "response.create")
    return [
        *ga.COMMITTED,
        *_call(ga, ASK),
        *given,
        *_as("resp_asks", ga.spoken([bytes(960)], "When would you like to come?")),
        *given,
        *_call(ga, "book_table", ARGUMENTS, "c2"),
    ]


def test_result_and_reply_are_given_and_the_answer_is_recorded_beside_the_first_turn(
    rig: Any, serve: Any, ga: Any, bank: Path
) -> None:
    server = serve(_asks_then_books(ga))
    done = rig.run(rig.config(server.ws_url))
    capture = done.only

    # the first turn, as without a second one
    assert (capture.ending, [call.name for call in capture.calls]) == (Ending.CALLED, [ASK])
    assert capture.reply_transcript == ""

    second = capture.second_turn
    assert (second.tool, second.call_id, second.reply_as, second.not_played) == (ASK, "c1", "text", "")
    assert second.after_result.reply_transcript == "When would you like to come?"
    assert second.after_result.calls == ()
    assert second.answer.ending is Ending.CALLED
    assert [(call.name, call.arguments) for call in second.answer.calls] == [
        ("book_table", {"party": 4, "time": "19:30"})
    ]
    assert second.decisive is second.answer
    marks = [
        capture.marks[Mark.ANSWER_END],
        second.after_result.marks[Mark.COMMIT],
        second.after_result.marks[Mark.ANSWER_END],
        second.answer.marks[Mark.COMMIT],
        second.answer.marks[Mark.ANSWER_END],
    ]
    assert marks == sorted(marks)

    # what the agent was given
    items = [message["item"] for _, message in server.connections[0].received if "item" in message]
    assert items[0] == {"type": "function_call_output", "call_id": "c1", "output": RESULT} | {
        key: value for key, value in items[0].items() if key in ("id", "status")
    }
    assert items[1]["content"][0]["text"] == REPLY


def test_the_report_scores_it_by_its_own_gold(rig: Any, serve: Any, ga: Any, bank: Path) -> None:
    server = serve(_asks_then_books(ga))
    target = rig.run(rig.config(server.ws_url)).report()["targets"]["agent"]
    # asking earns 1 on `noisy`; the booking that follows is right by the followup's gold
    assert target["credit"]["cue_bearing"]["mean"] == 1
    assert target["second_turn"]["recorded"] == 1
    assert target["second_turn"]["answered"] == 1
    assert target["second_turn"]["credit"]["mean"] == 1
    assert target["second_turn"]["credit"]["n"] == 1


def test_a_clip_of_the_reply_is_played_in_real_time(rig: Any, serve: Any, ga: Any, bank: Path, banks: Any) -> None:
    samples = _add_reply_clip(bank, banks)
    script = _asks_then_books(ga)
    script[-len(_call(ga, ASK)) - 2] = ("expect", "input_audio_buffer.commit")
    server = serve(script)
    second = rig.run(rig.config(server.ws_url)).only.second_turn
    assert second.reply_as == "audio"
    assert second.answer.ending is Ending.CALLED
    assert second.answer.pacing.chunks == 10
    assert server.connections[0].audio[-2 * len(samples) :] == samples.tobytes()
    assert second.answer.marks[Mark.CALLER_AUDIO_END] - second.answer.marks[Mark.FIRST_CHUNK] == 200_000_000


def test_an_agent_that_acts_on_the_result_alone_has_had_its_say(rig: Any, serve: Any, ga: Any, bank: Path) -> None:
    given = ("expect", "conversation.item.create"), ("expect", "response.create")
    server = serve([*ga.COMMITTED, *_call(ga, ASK), *given, *_call(ga, "cancel_order", "{}", "c2")])
    done = rig.run(rig.config(server.ws_url))
    second = done.only.second_turn
    assert (second.reply_as, second.answer) == (None, None)
    assert second.not_played == "the agent acted on the result alone"
    assert [call.name for call in second.decisive.calls] == ["cancel_order"]
    assert done.report()["targets"]["agent"]["second_turn"]["credit"]["mean"] == 0


def test_every_call_gets_a_result(rig: Any, serve: Any, ga: Any, bank: Path) -> None:
    calls = [*ga.call_events(ASK, "{}", "c1", "a"), *ga.call_events("cancel_order", "{}", "c2", "b")]
    for event in calls[5:]:
        event["output_index"] = 1
    whole = ga.done(output=(ga.call_item(ASK, "{}", "c1", "a"), ga.call_item("cancel_order", "{}", "c2", "b")))
    two = ("expect", "conversation.item.create"), ("expect", "conversation.item.create"), ("expect", "response.create")
    server = serve([*ga.COMMITTED, *ga.sends([ga.created(), *calls, whole]), *two, ("close", 1011, "gone")])
    second = rig.run(rig.config(server.ws_url)).only.second_turn
    given = [m["item"] for _, m in server.connections[0].received if "item" in m]
    assert [(item["call_id"], item["output"]) for item in given] == [("c1", RESULT), ("c2", "done")]
    assert second.after_result.ending is Ending.INFRASTRUCTURE_ERROR
    assert second.not_played == "the session failed before the reply"


def test_a_failure_in_the_second_turn_is_told_there_and_costs_the_cell_nothing(
    rig: Any, serve: Any, ga: Any, bank: Path
) -> None:
    server = serve([*ga.COMMITTED, *_call(ga, ASK), ("expect", "response.create"), ("close", 1011, "gone")])
    done = rig.run(rig.config(server.ws_url))
    capture = done.only
    assert (capture.ending, capture.finished, capture.error) == (Ending.CALLED, True, None)
    assert len(server.connections) == 1
    assert capture.second_turn.after_result.error.code == "close_1011"
    target = done.report()["targets"]["agent"]
    assert target["credit"]["cue_bearing"]["mean"] == 1
    assert target["second_turn"] == {"recorded": 1, "answered": 0, "credit": None}


@pytest.mark.parametrize("why", ["another first call", "switched off", "no followup"])
def test_there_is_none(rig: Any, serve: Any, ga: Any, tmp_path: Path, banks: Any, why: str) -> None:
    item = _item(banks)
    if why == "no followup":
        del item["followup"]
    banks.write_bank(tmp_path / "bank", {"noisy": banks.wav(banks.tone(0.3))}, (item,))
    first = "cancel_order" if why == "another first call" else ASK
    server = serve([*ga.COMMITTED, *_call(ga, first)])
    done = rig.run(rig.config(server.ws_url, second_turn=why != "switched off"))
    assert done.only.second_turn is None
    assert "conversation.item.create" not in server.connections[0].types
    assert done.report()["targets"]["agent"]["second_turn"] is None


def test_a_text_twin_has_it_too(rig: Any, serve: Any, ga: Any, bank: Path) -> None:
    script = _asks_then_books(ga)
    script[: len(ga.COMMITTED)] = [*ga.READY, ("expect", "conversation.item.create"), ("expect", "response.create")]
    server = serve(script)
    done = rig.run(rig.config(server.ws_url, conditions=["text_twin"]))
    assert done.only.condition is Condition.TEXT_TWIN
    assert done.only.second_turn.answer.calls[0].name == "book_table"
    # scored on audio cells only: one twin stands for several golds
    assert done.report()["targets"]["agent"]["second_turn"] == {"recorded": 1, "answered": 1, "credit": None}


class TestIdentity:
    """What could change the result names the cell."""

    def identity(self, rig: Any, **changes: Any) -> str:
        text = yaml.safe_dump(rig.config("ws://127.0.0.1:1/", **changes))
        (cell,) = prepare(parse_config(text, "config.yaml", rig.folder, {})).plan.cells
        return str(cell.identity)

    def test_words_and_clip_of_the_reply_are_part_of_it(self, rig: Any, bank: Path, banks: Any) -> None:
        as_text = self.identity(rig)
        off = self.identity(rig, second_turn=False)
        file = bank / "items" / "booking.yaml"
        item = yaml.safe_load(file.read_text())
        item["followup"]["reply"] = "At eight."
        file.write_text(json.dumps(item))
        other_words = self.identity(rig)
        _add_reply_clip(bank, banks)
        as_audio = self.identity(rig)
        assert len({as_text, off, other_words, as_audio}) == 4

    def test_golds_are_not(self, rig: Any, bank: Path) -> None:
        before = self.identity(rig)
        file = bank / "items" / "booking.yaml"
        item = yaml.safe_load(file.read_text())
        item["followup"]["gold_by_variant"] = {}
        file.write_text(json.dumps(item))
        assert self.identity(rig) == before


def test_a_reply_clip_that_is_gone_is_named_and_not_replaced_by_text(
    rig: Any, serve: Any, ga: Any, bank: Path, banks: Any
) -> None:
    _add_reply_clip(bank, banks)
    manifest = yaml.safe_load((bank / "audio" / "manifest.yaml").read_text())
    (bank / "audio" / f"{manifest[-1]['sha256']}.wav").unlink()
    server = serve([*ga.COMMITTED, *_call(ga, ASK)])
    done = rig.run(rig.config(server.ws_url))
    assert done.only.ending is Ending.CALLED
    assert "booking/noisy (turn 2)" in done.only.second_turn.not_played
    assert "booking/noisy (turn 2)" in done.prepared.input_errors[0]


class TestCost:
    """A second turn costs as much as any other."""

    def capture(self, usage: Any, later: Any) -> Capture:
        marks = {Mark.CONNECT_END: 0, Mark.SESSION_READY: 0, Mark.ANSWER_END: 30 * 10**9}
        second = SecondTurn(
            call_id="c1",
            tool=ASK,
            result=RESULT,
            reply=REPLY,
            after_result=LaterTurn(ending=Ending.DECLINED, usage=later, marks={Mark.ANSWER_END: 50 * 10**9}),
            answer=LaterTurn(ending=Ending.UNFINISHED, marks={Mark.FIRST_AUDIO: 90 * 10**9}),
        )
        return Capture(
            identity="x",
            target="t",
            item_id="booking",
            variant_id="noisy",
            condition=Condition.AUDIO,
            finished=True,
            started_ns=0,
            adapter="a",
            wire_version=1,
            parser_version=1,
            ending=Ending.CALLED,
            marks=marks,
            usage=usage,
            second_turn=second,
        )

    def test_minutes_run_to_its_last_mark(self) -> None:
        assert cost_of(self.capture(None, None), Price(per_session_minute=0.1)) == pytest.approx(0.15)

    def test_tokens_add_up(self) -> None:
        usage = {"input_tokens": 1_000_000, "output_tokens": 0}
        price = Price(input_text_per_million=4)
        assert cost_of(self.capture(usage, usage), price) == pytest.approx(8)
        assert cost_of(self.capture(usage, None), price) == pytest.approx(4)
        assert cost_of(self.capture(None, usage), price) is None
