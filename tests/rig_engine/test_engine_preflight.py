"""Preflight: a target that cannot work stops before its first cell, and costs one session at most per try."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from captures.capture import Ending


@pytest.fixture(autouse=True)
def bank(tmp_path: Path, banks: Any) -> Path:
    return banks.write_bank(tmp_path / "bank")


def test_a_refused_key_stops_the_target_after_one_connection(rig: Any, serve: Any, ga: Any) -> None:
    server = serve([("refuse", 401, "")])
    done = rig.run(rig.config(server.ws_url, preflight=True, concurrency=8))
    assert [(c.ending, c.finished) for c in done.captures] == [(Ending.CONFIGURATION_ERROR, False)]
    outcome = done.result.outcomes["agent"]
    assert outcome.stopped is not None
    assert outcome.stopped.code == "http_401"
    assert outcome.finished == 0
    assert not done.result.complete


def test_a_working_target_leaves_no_trace_of_its_preflight(rig: Any, serve: Any, ga: Any) -> None:
    server = serve([*ga.COMMITTED, *ga.called("book_table", {"party": 4})])
    done = rig.run(rig.config(server.ws_url, preflight=True))
    assert all(c.finished for c in done.captures)
    assert len(server.connections) == len(done.captures) + 1


def test_nothing_listening_is_tried_again_and_then_stops_the_target(rig: Any) -> None:
    done = rig.run(rig.config("ws://127.0.0.1:1/v1/realtime", preflight=True, limits={"attempts": 2}))
    assert [c.ending for c in done.captures] == [Ending.INFRASTRUCTURE_ERROR] * 2
    assert done.result.outcomes["agent"].stopped is not None
