"""Members of the family, and a client half joined with a server half."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson
import pytest

from adapters import registry
from adapters.dialect import Setup, TargetSettings, ToolSpec, TurnControlSettings, TurnMode
from adapters.server import Intent
from captures.events import Event
from captures.frames import InFrame, OutFrame

KEY = "planted-key-0123456789"
TOOLS = (
    ToolSpec("book_table", "Books a table.", {"type": "object", "properties": {"party": {"type": "integer"}}}),
    ToolSpec("cancel_order", "Cancels an order.", {"type": "object", "properties": {}}),
)
MODELS = {
    "openai_realtime": "gpt-realtime-2.1",
    "openai_realtime_beta": "look-alike-1",
    "azure_realtime": "my-deployment",
    "azure_realtime_preview": "my-deployment",
    "xai_realtime": "grok-voice-latest",
    "vercel_gateway/openai": "openai/gpt-realtime-2.1",
    "vercel_gateway/xai": "xai/grok-voice-latest",
}


class Member:
    """One member as client and server, without a connection."""

    def __init__(self, label: str, base_url: str | None = None, **extra: Any) -> None:
        self.dialect = registry.dialect(label.partition("/")[0])
        if label.startswith("azure"):
            base_url = base_url or "https://res.openai.azure.com"
        self.client: Any = self.dialect.client(TargetSettings(MODELS[label], base_url, KEY, extra))
        self.server = self.dialect.server()
        self.query = {"model": MODELS[label], "ai-model-id": MODELS[label]}
        self.sent: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self.intents: list[Intent] = []
        self.events: list[Event] = []

    def open(self, mode: TurnMode = TurnMode.MANUAL, rate_hz: int = 24_000, **parameters: Any) -> Member:
        setup = Setup("Be brief.", TOOLS, rate_hz, TurnControlSettings(mode, parameters))
        self.to_client(self.server.greeting(self.query))
        self.to_server(self.client.open(setup))
        return self

    def to_client(self, frames: Iterable[OutFrame]) -> None:
        for frame in frames:
            self.received.append(orjson.loads(frame.payload))
            events, owed = self.client.receive(InFrame(frame.payload, frame.binary, 0))
            self.events += events
            self.to_server(owed)

    def to_server(self, frames: Iterable[OutFrame]) -> None:
        for frame in frames:
            self.sent.append(orjson.loads(frame.payload))
            step = self.server.receive(InFrame(frame.payload, frame.binary, 0))
            self.intents += step.intents
            self.to_client(step.frames)

    def speak(self, pcm: bytes, rate_hz: int = 24_000) -> None:
        self.to_server(self.client.start_turn())
        self.to_server(self.client.encode_clip(pcm, rate_hz, 20).frames)
        self.to_server(self.client.commit_turn())

    def hear(self, *messages: Any) -> list[Event]:
        return [
            event for message in messages for event in self.client.receive(InFrame(orjson.dumps(message), False, 0))[0]
        ]

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def member() -> Callable[..., Member]:
    return Member


@pytest.fixture(params=sorted(MODELS))
def label(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tools() -> tuple[ToolSpec, ...]:
    return TOOLS


@pytest.fixture
def key() -> str:
    return KEY
