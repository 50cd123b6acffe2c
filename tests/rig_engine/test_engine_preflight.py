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


def test_a_used_up_key_is_followed_by_the_next_of_the_pool(rig: Any, serve: Any, ga: Any) -> None:
    quota = '{"error": {"code": "insufficient_quota", "message": "used up"}}'
    server = serve([("refuse", 429, quota)], [*ga.COMMITTED, *ga.called()])
    config = rig.config(server.ws_url, target={"api_key_envs": ["FIRST_KEY", "SECOND_KEY"]})
    keys = {"FIRST_KEY": "first-TESTKEY-not-real", "SECOND_KEY": "second-TESTKEY-not-real"}
    done = rig.run(config, environ=keys)
    assert [c.ending for c in done.captures] == [Ending.INFRASTRUCTURE_ERROR, Ending.CALLED]
    assert done.captures[0].error.kind == "quota"
    sent = [connection.headers["Authorization"] for connection in server.connections]
    assert sent == [f"Bearer {key}" for key in keys.values()]
    assert done.result.complete


def test_a_used_up_last_key_stops_the_target(rig: Any, serve: Any) -> None:
    server = serve([("refuse", 429, '{"error": {"code": "insufficient_quota", "message": "used up"}}')])
    done = rig.run(
        rig.config(server.ws_url, target={"api_key_env": "ONLY_KEY"}), environ={"ONLY_KEY": "TESTKEY-not-real"}
    )
    assert done.result.outcomes["agent"].stopped.kind == "quota"
    assert len(server.connections) == 1
