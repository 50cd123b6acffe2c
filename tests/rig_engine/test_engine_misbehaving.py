"""Agents that break their own protocol on an item whose gold is no call: none of it may pass for "declined"."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from adapters.session import MAX_RECEIVED_FRAMES
from captures.capture import Ending

READY = [("expect", "session.setup"), ("send", {"type": "session.ready", "version": 1})]
COMMITTED = [*READY, ("expect", "turn.commit")]
END = ("send", {"type": "turn.end"})


@pytest.fixture(autouse=True)
def bank(tmp_path: Path, banks: Any) -> Path:
    one = banks.BOOKING["variants"][0]
    return banks.write_bank(tmp_path / "bank", items=[banks.BOOKING | {"variants": [one | {"gold": {"tool": None}}]}])


def measured(rig: Any, serve: Any, *script: Any) -> tuple[Any, Any]:
    config = rig.config(serve([*script]).ws_url, target={"adapter": "rig_socket"}, limits={"attempts": 1})
    done = rig.run(config)
    return done.captures[-1], done.report()["targets"]["agent"]["credit"]["neutral"]


def test_a_call_with_nan_is_a_wrong_call(rig: Any, serve: Any) -> None:
    bad = {"type": "tool.call", "call_id": "c", "name": "book_table", "arguments": {"party": math.nan}}
    capture, credit = measured(rig, serve, *COMMITTED, ("send", bad), END)
    assert capture.ending is Ending.CALLED
    assert (capture.calls[0].name, capture.calls[0].arguments) == ("book_table", None)
    assert "NaN" in capture.calls[0].arguments_json
    assert credit["mean"] == 0


def test_another_unreadable_message_and_no_call_is_no_measurement(rig: Any, serve: Any) -> None:
    capture, credit = measured(rig, serve, *COMMITTED, ("send", {"type": "reply.text", "text": math.nan}), END)
    assert (capture.ending, capture.error.code) == (Ending.INFRASTRUCTURE_ERROR, "unreadable")
    assert credit is None


def test_an_unreadable_message_and_then_nothing_is_no_measurement(rig: Any, serve: Any) -> None:
    script = [*COMMITTED, ("send", {"type": "reply.text", "text": math.nan}), ("silent",)]
    config = rig.config(serve(script).ws_url, target={"adapter": "rig_socket"}, limits={"attempts": 1, "turn_s": 0.5})
    done = rig.run(config)
    assert (done.captures[-1].ending, done.captures[-1].error.code) == (Ending.INFRASTRUCTURE_ERROR, "unreadable")
    assert done.report()["targets"]["agent"]["credit"]["neutral"] is None


def test_an_unreadable_message_beside_a_call_is_only_noted(rig: Any, serve: Any) -> None:
    call = {"type": "tool.call", "call_id": "c", "name": "book_table", "arguments": {"party": 4}}
    noise = ("send", {"type": "reply.text", "text": math.nan})
    capture, _ = measured(rig, serve, *COMMITTED, noise, ("send", call), END)
    assert capture.ending is Ending.CALLED
    assert any("unreadable" in warning for warning in capture.warnings)


def test_an_action_before_the_caller_spoke_is_an_action(rig: Any, serve: Any) -> None:
    call = {"type": "tool.call", "call_id": "c", "name": "book_table", "arguments": {"party": 4}}
    capture, credit = measured(rig, serve, *READY, ("send", call), END, ("silent",))
    assert (capture.ending, capture.calls[0].name) == (Ending.CALLED, "book_table")
    assert any("before the end of the caller's turn" in warning for warning in capture.warnings)
    assert credit["mean"] == 0


def test_a_flood_ends_the_attempt_and_is_not_kept(rig: Any, serve: Any) -> None:
    flood = [("send", {"type": "reply.text", "text": "x"})] * (MAX_RECEIVED_FRAMES + 500)
    capture, credit = measured(rig, serve, *COMMITTED, *flood, ("silent",))
    assert (capture.ending, capture.error.kind, capture.error.code) == (
        Ending.INFRASTRUCTURE_ERROR,
        "protocol",
        "flood",
    )
    assert len(capture.reply_text) <= MAX_RECEIVED_FRAMES
    assert credit is None
