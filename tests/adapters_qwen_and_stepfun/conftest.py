"""A client half joined with a server half, without a connection."""

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
MODELS = {
    "qwen_omni_realtime": "qwen3.5-omni-plus-realtime",
    "qwen_audio_realtime": "qwen-audio-3.0-realtime-plus",
    "stepfun_realtime": "stepaudio-2.5-realtime",
}
TOOLS = (
    ToolSpec("book_table", "Books a table.", {"type": "object", "properties": {"party": {"type": "integer"}}}),
    ToolSpec("cancel_order", "Cancels an order.", {"type": "object", "properties": {}}),
)


class Both:
    """Client and server of one dialect."""

    def __init__(self, name: str, model: str | None = None, base_url: str | None = None, **extra: Any) -> None:
        self.dialect = registry.dialect(name)
        self.model = model or MODELS[name]
        self.client: Any = self.dialect.client(TargetSettings(self.model, base_url, KEY, extra))
        self.server: Any = self.dialect.server()
        self.rate_hz: int = self.client.capabilities.input_rates_hz[0]
        self.sent: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self.intents: list[Intent] = []
        self.events: list[Event] = []

    def setup(self, mode: TurnMode = TurnMode.MANUAL, tools: tuple[ToolSpec, ...] = TOOLS, **parameters: Any) -> Setup:
        return Setup("Be brief.", tools, self.rate_hz, TurnControlSettings(mode, parameters))

    def open(self, mode: TurnMode = TurnMode.MANUAL, tools: tuple[ToolSpec, ...] = TOOLS, **parameters: Any) -> Both:
        self.to_client(self.server.greeting({"model": self.model}))
        self.to_server(self.client.open(self.setup(mode, tools, **parameters)))
        return self

    def speak(self, pcm: bytes) -> None:
        self.to_server(self.client.start_turn())
        self.to_server(self.client.encode_clip(pcm, self.rate_hz, 20).frames)
        self.to_server(self.client.commit_turn())

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

    def say(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """A message of another client; what the server answers."""
        step = self.server.receive(InFrame(orjson.dumps(message), False, 0))
        self.intents += step.intents
        return [orjson.loads(frame.payload) for frame in step.frames]

    def refused(self, session: dict[str, Any]) -> tuple[str, str]:
        """Code and place of the error that a `session.update` meets."""
        (answer,) = self.say({"type": "session.update", "session": session})
        assert answer["type"] == "error"
        return answer["error"]["code"], answer["error"].get("param", "")

    def hear(self, *messages: Any) -> list[Event]:
        """What the client makes of messages that no server of ours sent."""
        return [
            event for message in messages for event in self.client.receive(InFrame(orjson.dumps(message), False, 0))[0]
        ]

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def kinds(self) -> list[str]:
        """Types that the server sent, repetitions of one type once."""
        names = [message["type"] for message in self.received]
        return [name for place, name in enumerate(names) if place == 0 or names[place - 1] != name]


@pytest.fixture
def both() -> Callable[..., Both]:
    return Both


@pytest.fixture(params=sorted(MODELS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tools() -> tuple[ToolSpec, ...]:
    return TOOLS


@pytest.fixture
def key() -> str:
    return KEY
