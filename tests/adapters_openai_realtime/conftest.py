"""Builders shared by the tests of this dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pytest

from adapters.dialect import Setup, TargetSettings, ToolSpec, TurnControlSettings, TurnMode
from adapters.openai_family.client import RealtimeClient
from adapters.openai_family.server import RealtimeServer
from adapters.openai_realtime import DIALECT
from adapters.server import Intent
from captures.events import Event
from captures.frames import InFrame, OutFrame

TOOLS = (
    ToolSpec("book_table", "Books a table.", {"type": "object", "properties": {"party": {"type": "integer"}}}),
    ToolSpec("cancel_order", "Cancels an order.", {"type": "object", "properties": {}}),
)


def in_frame(message: Any) -> InFrame:
    payload = message if isinstance(message, bytes) else orjson.dumps(message)
    return InFrame(payload, binary=False, t_ns=0)


class Wire:
    """A client half past its set-up, and what it made of the server's messages."""

    def __init__(self, mode: TurnMode = TurnMode.MANUAL, tools: Sequence[ToolSpec] = TOOLS, **extra: Any) -> None:
        self.client = DIALECT.client(TargetSettings("gpt-realtime-2.1", api_key="TESTKEY", extra=extra))
        assert isinstance(self.client, RealtimeClient)
        self.setup = Setup("Be brief.", tuple(tools), 24_000, TurnControlSettings(mode))
        self.opened = [orjson.loads(frame.payload) for frame in self.client.open(self.setup)]

    def ready(self) -> Wire:
        session = self.opened[0]["session"]
        self.hear({"type": "session.updated", "session": session | {"id": "sess_1", "model": "gpt-realtime-2.1"}})
        return self

    def asked(self) -> Wire:
        """Ready, and an answer is asked for."""
        self.ready().client.start_turn()
        self.client.commit_turn()
        return self

    def hear(self, *messages: Any) -> list[Event]:
        return [event for message in messages for event in self.client.receive(in_frame(message))[0]]


class Pair:
    """A client half and a server half joined without a connection."""

    def __init__(self, **extra: Any) -> None:
        self.client = DIALECT.client(TargetSettings("gpt-realtime-2.1", extra=extra))
        self.server = DIALECT.server()
        assert isinstance(self.server, RealtimeServer)
        self.intents: list[Intent] = []
        self.events: list[Event] = []

    def to_client(self, frames: Sequence[OutFrame]) -> None:
        for frame in frames:
            events, owed = self.client.receive(InFrame(frame.payload, frame.binary, 0))
            self.events += events
            self.to_server(owed)

    def to_server(self, frames: Sequence[OutFrame]) -> None:
        for frame in frames:
            step = self.server.receive(InFrame(frame.payload, frame.binary, 0))
            self.intents += step.intents
            self.to_client(step.frames)


@pytest.fixture
def wire() -> Callable[..., Wire]:
    return Wire


@pytest.fixture
def pair() -> Callable[..., Pair]:
    return Pair


@pytest.fixture
def tools() -> tuple[ToolSpec, ...]:
    return TOOLS
