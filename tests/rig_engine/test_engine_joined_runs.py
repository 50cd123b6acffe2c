"""A folder that another config goes on with: roles are those of the config, tokens are no part of a cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def bank(tmp_path: Path, banks: Any) -> Path:
    return banks.write_bank(tmp_path / "bank")


def test_a_target_added_later_keeps_its_role(rig: Any, serve: Any, ga: Any) -> None:
    server = serve([*ga.COMMITTED, *ga.called()])
    config = rig.config(server.ws_url)
    rig.run(config)
    null = config["targets"][0] | {"name": "null", "role": "words_only"}
    done = rig.run(config | {"targets": [*config["targets"], null]})
    run_json = done.folder.run_json
    assert {name: target["role"] for name, target in run_json["targets"].items()} == {
        "agent": "contestant",
        "null": "words_only",
    }
    assert set(run_json["planned"]) == {"agent", "null"}
    assert len(run_json["resumed"]) == 1
    assert done.report()["null"] == "null"


def test_a_new_token_asks_nothing_again(rig: Any, serve: Any, ga: Any) -> None:
    server = serve([*ga.COMMITTED, *ga.called()])
    config = rig.config(server.ws_url + "?token=${MY_TOKEN}")
    first = rig.run(config, environ={"MY_TOKEN": "TESTKEY-not-real-7f3a9c"})
    second = rig.run(config, environ={"MY_TOKEN": "another-TESTKEY-not-real"})
    assert len(second.captures) == len(first.captures)
    assert second.result.already_finished == len(first.captures)


def test_another_host_is_another_cell(rig: Any, serve: Any, ga: Any) -> None:
    config = rig.config("${AGENT_URL}")
    urls = [serve([*ga.COMMITTED, *ga.called()]).ws_url for _ in range(2)]
    counts = [len(rig.run(config, environ={"AGENT_URL": url}).captures) for url in urls]
    assert counts[1] == 2 * counts[0]


def test_a_short_query_value_masks_nothing_that_the_agent_said(rig: Any, serve: Any, ga: Any) -> None:
    server = serve([*ga.COMMITTED, *ga.called(arguments={"day": "saturday"})])
    done = rig.run(rig.config(server.ws_url + "?day=saturday"))
    assert next(call.arguments for capture in done.captures for call in capture.calls) == {"day": "saturday"}
