"""Builders of calls and golds."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from captures.capture import ObservedCall

MakeCall = Callable[..., ObservedCall]


@pytest.fixture
def call() -> MakeCall:
    """`call("tool", city="Oslo")`, or `call("tool", raw='{"a": ')` for arguments that cannot be read."""

    def make(name: str | None, /, *, raw: str | None = None, index: int = 0, **arguments: Any) -> ObservedCall:
        return ObservedCall(
            call_id=f"c{index}",
            name=name,
            arguments_json=json.dumps(arguments) if raw is None else raw,
            arguments=arguments if raw is None else None,
            output_index=index,
            complete=raw is None,
        )

    return make
