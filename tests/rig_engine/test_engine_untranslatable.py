"""Case B10, end: a tool that a dialect cannot put on its wire stops its target before any item runs, and that alone."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from captures.capture import Ending


@pytest.mark.parametrize("preflight", [True, False])
def test_a_tool_that_cannot_be_translated_is_named_before_any_connection(
    rig: Any, banks: Any, tmp_path: Path, preflight: bool
) -> None:
    second = copy.deepcopy(banks.BOOKING) | {"id": "second"}
    filters = {"name": "filters", "type": "array", "items": {"type": "string", "not": {"const": "all"}}}
    second["tools"][1]["params"] = [filters]
    banks.write_bank(tmp_path / "bank", items=[banks.BOOKING, second])
    target = {"adapter": "gemini_live", "model": "gemini-3.8-live"}
    done = rig.run(rig.config("ws://127.0.0.1:1/", preflight=preflight, concurrency=4, target=target))
    assert [(capture.item_id, capture.ending) for capture in done.captures] == [("second", Ending.CONFIGURATION_ERROR)]
    error = done.captures[0].error
    assert error.message.startswith("tool cancel_order: parameters.properties.filters.items.not: ")
    assert done.captures[0].marks == {}
    assert done.result.outcomes["agent"].stopped == error
    assert not done.result.complete
