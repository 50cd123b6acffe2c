"""Calls as servers tell them, through the whole engine (bug cases B01, B04, B20, B21)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from captures.capture import Ending, Mark

ARGUMENTS = '{"party":4,"time":"19:30"}'


@pytest.fixture(autouse=True)
def bank(tmp_path: Path, banks: Any) -> Path:
    return banks.write_bank(tmp_path / "bank")


class TestB01WhereTheCallIsTold:
    """In argument events, in the closing event, or in both: one call."""

    def events(self, ga: Any, told: str) -> list[dict[str, Any]]:
        in_events = ga.call_events("book_table", ARGUMENTS) if told != "closing event" else []
        closing = (
            ga.done(output=(ga.call_item("book_table", ARGUMENTS),))
            if told != "argument events"
            else ga.done(output=None)
        )
        return [ga.created(), *in_events, closing]

    @pytest.mark.parametrize("told", ["argument events", "closing event", "both"])
    def test_one_call(self, rig: Any, serve: Any, ga: Any, told: str) -> None:
        server = serve([*ga.COMMITTED, *ga.sends(self.events(ga, told))])
        done = rig.run(rig.config(server.ws_url))
        capture = done.only
        assert (capture.ending, capture.finished) == (Ending.CALLED, True)
        (call,) = capture.calls
        assert (call.name, call.arguments, call.call_id) == ("book_table", {"party": 4, "time": "19:30"}, "c1")
        assert done.report()["targets"]["agent"]["credit"]["neutral"]["mean"] == 1
        assert done.result.complete

    def test_its_time_is_the_first_event_that_completed_it(self, rig: Any, serve: Any, ga: Any) -> None:
        steps = ga.sends(self.events(ga, "both"))
        # created, added, delta, delta | arguments done | item done, response done
        server = serve([*ga.COMMITTED, *steps[:4], ("wait", 0.1), steps[4], ("wait", 0.2), *steps[5:]])
        capture = rig.run(rig.config(server.ws_url)).only
        stamps = server.connections[0].sent_ns[1:]  # without session.updated
        complete_ns = capture.marks[Mark.FIRST_CALL_COMPLETE]
        assert complete_ns == capture.calls[0].complete_ns
        assert stamps[4] <= complete_ns < stamps[5]
        assert capture.marks[Mark.FIRST_CALL_NAMED] < stamps[4]
        assert capture.marks[Mark.ANSWER_END] >= stamps[6]


class TestB04AFailedResponse:
    """A response that ends as failed is no decision of the agent's."""

    FAILED: Any = (
        "failed",
        (),
        {
            "type": "failed",
            "error": {"type": "requests", "code": "rate_limit_exceeded", "message": "Rate limit reached for m."},
        },
    )

    def items(self, banks: Any) -> tuple[dict[str, Any], ...]:
        """One item that expects `cancel_order`, and one that expects no call at all."""
        one = {"variant_id": "clear", "emotion": "neutral"}
        cancel = banks.BOOKING | {"id": "cancel", "variants": [one | {"gold": {"tool": "cancel_order"}}]}
        none = banks.BOOKING | {"id": "none", "variants": [one | {"gold": {"tool": None}}]}
        return tuple({k: v for k, v in item.items() if k != "perception_probe"} for item in (cancel, none))

    def test_every_try_is_kept_and_none_counted(self, rig: Any, serve: Any, ga: Any, banks: Any) -> None:
        banks.write_bank(rig.folder / "b04", items=self.items(banks))
        server = serve([*ga.COMMITTED, ("send", ga.created()), ("send", ga.done(*self.FAILED))])
        config = rig.config(server.ws_url, bank="b04", limits={"attempts": 4, "backoff_s": 0.05})
        done = rig.run(config)
        assert [(c.item_id, c.attempt, c.ending, c.finished) for c in done.captures] == [
            (item, number, Ending.INFRASTRUCTURE_ERROR, False) for item in ("cancel", "none") for number in (1, 2, 3, 4)
        ]
        assert {(c.error.kind, c.error.code) for c in done.captures} == {("rate_limit", "rate_limit_exceeded")}
        assert all("Rate limit reached" in message for message in done.watch.messages)
        first, second, third = done.watch.waits_s[:3]
        assert first < second < third <= 0.2
        found = done.report()["targets"]["agent"]
        assert found["credit"]["neutral"] is None
        assert found["endings"]["infrastructure_error"] == 2
        assert (found["attempts"], found["retried"]) == (8, 2)
        assert not done.result.complete
        assert done.result.outcomes["agent"].unfinished == 2

    def test_a_later_try_that_is_answered_counts(self, rig: Any, serve: Any, ga: Any) -> None:
        failed = [*ga.COMMITTED, ("send", ga.created()), ("send", ga.done(*self.FAILED))]
        server = serve(failed, failed, [*ga.COMMITTED, *ga.called()])
        done = rig.run(rig.config(server.ws_url))
        assert [(c.attempt, c.finished) for c in done.captures] == [(1, False), (2, False), (3, True)]
        assert done.report()["targets"]["agent"]["credit"]["neutral"]["mean"] == 1

    def test_the_wait_is_never_shorter_than_asked_for(self, rig: Any, serve: Any, ga: Any) -> None:
        details = {"error": {"code": "rate_limit_exceeded", "message": "Rate limit. Please try again in 300ms."}}
        failed = [*ga.COMMITTED, ("send", ga.created()), ("send", ga.done("failed", (), details))]
        server = serve(failed, [*ga.COMMITTED, *ga.called()])
        done = rig.run(rig.config(server.ws_url, limits={"backoff_s": 0}))
        assert done.watch.waits_s == [0.3]
        assert done.captures[0].error.retry_after_s == 0.3

    @pytest.mark.parametrize(
        ("status", "details", "name"),
        [
            ("cancelled", {"type": "cancelled", "reason": "turn_detected"}, "cancelled"),
            ("incomplete", {"type": "incomplete", "reason": "max_output_tokens"}, "max_output_tokens"),
        ],
    )
    def test_other_endings_keep_their_names(
        self, rig: Any, serve: Any, ga: Any, status: str, details: Any, name: str
    ) -> None:
        server = serve([*ga.COMMITTED, ("send", ga.created()), ("send", ga.done(status, (), details))])
        capture = rig.run(rig.config(server.ws_url)).only
        assert (capture.ending, capture.finished) == (Ending.UNFINISHED, True)
        assert name in capture.ending_detail


def _item(banks: Any, tool: dict[str, Any], gold: dict[str, Any]) -> dict[str, Any]:
    variants = [{"variant_id": "clear", "emotion": "neutral", "gold": gold}]
    return {
        **{key: value for key, value in banks.BOOKING.items() if key != "perception_probe"},
        "tools": [tool],
        "variants": variants,
    }


class TestB20WholeNumbersForDecimals:
    """The gold is the bank's, the call is the wire's: JSON texts, not Python values."""

    TOOL: ClassVar[Any] = {
        "name": "average",
        "description": "Averages.",
        "params": [
            {"name": "numbers", "type": "array of number", "required": True},
            {"name": "digits", "type": "integer", "required": True},
        ],
    }

    @pytest.mark.parametrize(
        ("arguments", "right", "digits"),
        [
            ('{"numbers": [12, 15, 18], "digits": 2}', True, 2),
            ('{"numbers": [12.0, 15.5, 18.0], "digits": 2}', False, 2),
            ('{"numbers": [12, "15", 18], "digits": 2}', False, 2),
            ('{"numbers": [12, 15, 18], "digits": 2.5}', False, 2),
            ('{"numbers": [12, 15, 18], "digits": true}', False, 1),
            ('{"numbers": [15, 12, 18], "digits": 2}', False, 2),
        ],
    )
    def test_credit(self, rig: Any, serve: Any, ga: Any, banks: Any, arguments: str, right: bool, digits: int) -> None:
        gold = {"tool": "average", "args": {"numbers": [[12.0, 15.0, 18.0]], "digits": [digits]}}
        banks.write_bank(rig.folder / "b20", items=(_item(banks, self.TOOL, gold),))
        events = [ga.created(), *ga.call_events("average", arguments), ga.done(output=None)]
        server = serve([*ga.COMMITTED, *ga.sends(events)])
        done = rig.run(rig.config(server.ws_url, bank="b20"))
        assert done.only.calls[0].arguments_json == arguments
        assert done.report()["targets"]["agent"]["credit"]["neutral"]["mean"] == (1 if right else 0)


class TestB21MadeUpArguments:
    """What the tool does not take is wrong, and null counts as left out."""

    TOOL: ClassVar[Any] = {
        "name": "weather",
        "description": "The weather.",
        "params": [{"name": "city", "type": "string", "required": True}, {"name": "unit", "type": "string"}],
    }

    @pytest.mark.parametrize(
        ("arguments", "right"),
        [
            ({"city": "Oslo"}, True),
            ({"city": "Oslo", "unit": "celsius"}, True),
            ({"city": "Oslo", "unit": "fahrenheit"}, False),
            ({"city": "Oslo", "days": 3}, False),
            ({"unit": "celsius"}, False),
            ({"city": "Oslo", "unit": None}, True),
        ],
    )
    def test_credit(self, rig: Any, serve: Any, ga: Any, banks: Any, arguments: Any, right: bool) -> None:
        gold = {"tool": "weather", "args": {"city": ["Oslo"]}, "optional_args": {"unit": ["celsius"]}}
        banks.write_bank(rig.folder / "b21", items=(_item(banks, self.TOOL, gold),))
        events = [ga.created(), *ga.call_events("weather", json.dumps(arguments)), ga.done(output=None)]
        server = serve([*ga.COMMITTED, *ga.sends(events)])
        done = rig.run(rig.config(server.ws_url, bank="b21"))
        assert done.report()["targets"]["agent"]["credit"]["neutral"]["mean"] == (1 if right else 0)
