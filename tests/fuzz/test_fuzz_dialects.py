"""Every dialect's two halves against anything: bytes, JSON of any shape, and their own messages bent field by field."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters import registry
from adapters.dialect import (
    Hosted,
    SettingsError,
    Setup,
    TargetSettings,
    Timed,
    ToolSpec,
    TurnControlSettings,
    TurnMode,
)
from adapters.server import Reply, ReplyCall
from captures.events import Event
from captures.frames import ClosedBy, InFrame, OutFrame
from rig.agents.emulator import ROUTES
from transports.transport import TransportError

PHONE = {"tool_calls": {"webhook": {}}, "tools": ["pay"]}
SETTINGS: dict[str, dict[str, Any]] = {
    "openai_live": {"delegate_model": "d"},
    "template_socket": {"template": "plain_json"},
    "nova_sonic": {"stream": "websocket"},
    "cascade": {"transcriber": {"model": "w"}},
    "twilio_media": PHONE,
    "device": {**PHONE, "output": "a", "input": "b"},
}
MODELS = {
    "gemini_live": "gemini-2.5-flash-native-audio-preview-12-2025",
    "vercel_gateway": "openai/gpt-realtime",
    "nova_sonic": "amazon.nova-2-sonic-v1:0",
}
TOOL = ToolSpec("pay", "Pays a bill.", {"type": "object", "properties": {"amount": {"type": "number"}}})
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
NAMES = [name for name in registry.names() if not isinstance(registry.dialect(name), Hosted)]
SERVED = [name for name in NAMES if name in ROUTES]
TIMES = int(os.environ.get("RIG_FUZZ_TIMES", "1"))
"""By hand: so many times the examples, other ones every time."""
FAST = settings(max_examples=60 * TIMES, deadline=None, derandomize=TIMES == 1, suppress_health_check=list(HealthCheck))

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def client_of(name: str) -> Any:
    base = (
        {"base_url": "ws://127.0.0.1:1/" if ROUTES[name].websocket else "http://127.0.0.1:1/v1"}
        if name in ROUTES
        else {}
    )
    extra = SETTINGS.get(name, {})
    return registry.dialect(name).client(
        TargetSettings(MODELS.get(name, "m"), api_key="key-key-key", extra=extra, **base)
    )


def setup_of(client: Any) -> Setup:
    modes = client.capabilities.turn_modes
    mode = TurnMode.MANUAL if TurnMode.MANUAL in modes else TurnMode.SERVER_VAD
    return Setup("Be brief.", (TOOL,), client.capabilities.input_rates_hz[0], TurnControlSettings(mode))


def opened(name: str) -> tuple[Any, list[OutFrame]]:
    """A client that has asked for a session and said something, and what it sent."""
    client = client_of(name)
    frames = list(client.open(setup_of(client)))
    if isinstance(client, Timed):
        client.opened(0)
    rate_hz = client.capabilities.input_rates_hz[0]
    clip = client.encode_clip(b"\1\0" * (rate_hz // 25), rate_hz, 20)
    frames += client.start_turn()
    for frame in clip.frames:
        if frame.held:
            client.hold(frame)
        else:
            frames.append(frame)
    if not client.capabilities.continuous_audio:
        frames += client.commit_turn()
    return client, frames


def own_messages(name: str) -> list[bytes]:
    """What an emulated vendor says in a turn with a call and speech."""
    if name not in ROUTES:
        return [b'{"event": "rig.device_status", "ran_dry": 1}']
    server = registry.dialect(name).server()
    said = [*server.greeting({})]
    _, frames = opened(name)
    for frame in frames:
        said += server.receive(InFrame(frame.payload, frame.binary, 1)).frames
    said += server.answer(
        Reply((ReplyCall("pay", {"amount": 4}),), "Paid.", b"\1\0" * 4800, 24_000, "pay it", {"n": 1})
    )
    said += server.failure("busy", "Too much to do.")
    return [frame.payload for frame in said if frame.payload[:1] == b"{"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def bent(message: Any, path: tuple[Any, ...], value: Any, drop: bool) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(message)
    at = changed
    for key in path[:-1]:
        at = at[key]
    if drop and isinstance(at, dict):
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return changed


def fed(client: Any, payload: bytes, binary: bool, t_ns: int = 10) -> list[Event]:
    events, owed = client.receive(InFrame(payload, binary, t_ns))
    assert all(isinstance(event, Event) for event in events)
    assert all(isinstance(frame, OutFrame) for frame in owed)
    return list(events)


@pytest.mark.parametrize("name", NAMES)
def test_any_bytes_are_events(name: str) -> None:
    @FAST
    @given(st.lists(st.tuples(st.binary(max_size=80), st.booleans()), max_size=5))
    def check(frames: list[tuple[bytes, bool]]) -> None:
        client, _ = opened(name)
        for payload, binary in frames:
            fed(client, payload, binary)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_any_json_is_events(name: str) -> None:
    @FAST
    @given(st.lists(JSON, max_size=4))
    def check(messages: list[Any]) -> None:
        client, _ = opened(name)
        for message in messages:
            fed(client, orjson.dumps(message), False)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_its_own_messages_bent_anywhere_are_events(name: str) -> None:
    messages = own_messages(name)
    parsed = [json.loads(payload) for payload in messages]
    spots = [(number, path) for number, message in enumerate(parsed) for path in places(message)]

    @settings(FAST, max_examples=150 * TIMES)
    @given(st.lists(st.tuples(st.sampled_from(spots), JSON, st.booleans()), min_size=1, max_size=3), st.booleans())
    def check(changes: list[tuple[tuple[int, tuple[Any, ...]], Any, bool]], doubled: bool) -> None:
        client, _ = opened(name)
        told = dict(enumerate(parsed))
        for (number, path), value, drop in changes:
            if path in set(places(told[number])):
                told[number] = bent(told[number], path, value, drop)
        for number in sorted(told):
            for _ in range(1 + doubled):
                fed(client, orjson.dumps(told[number]), False, 10 + number)
        client.closed(ClosedBy(99, 1006, "gone", by_peer=True))
        client.connect_failed(TransportError("x", code="http_500", status=500, body=json.dumps(parsed[0])))

    check()


@pytest.mark.parametrize("name", NAMES)
def test_any_order_of_verbs_and_messages_goes_on(name: str) -> None:
    messages = own_messages(name)
    verbs: list[Callable[[Any], object]] = [
        lambda client: client.start_turn(),
        lambda client: client.tool_result("call-1", "{}"),
        lambda client: client.cancel(),
        lambda client: client.truncate(120),
        lambda client: client.close(),
        lambda client: client.commit_turn(),
    ]

    @FAST
    @given(st.lists(st.sampled_from(messages) | st.sampled_from(verbs), max_size=25))
    def check(steps: list[Any]) -> None:
        client, _ = opened(name)
        for number, step in enumerate(steps):
            if isinstance(step, bytes):
                fed(client, step, False, 10 + number)
            else:
                step(client)

    check()


@pytest.mark.parametrize("name", SERVED)
def test_an_emulator_takes_anything_from_a_client(name: str) -> None:
    _, frames = opened(name)
    whole = [frame.payload for frame in frames if not frame.binary]
    parsed = [json.loads(payload) for payload in whole]
    spots = [(number, path) for number, message in enumerate(parsed) for path in places(message)] or [(0, ())]

    @settings(FAST, max_examples=80 * TIMES)
    @given(
        st.sampled_from(spots),
        JSON,
        st.booleans(),
        st.lists(st.tuples(st.binary(max_size=60), st.booleans()), max_size=3),
    )
    def check(spot: tuple[int, tuple[Any, ...]], value: Any, drop: bool, more: list[tuple[bytes, bool]]) -> None:
        server = registry.dialect(name).server()
        server.greeting({})
        for number, message in enumerate(parsed):
            told = bent(message, spot[1], value, drop) if number == spot[0] else message
            server.receive(InFrame(orjson.dumps(told), False, 1))
        for payload, binary in more:
            server.receive(InFrame(payload, binary, 2))
        server.receive(InFrame(orjson.dumps(value), False, 3))

    check()


@pytest.mark.parametrize("name", NAMES)
def test_any_settings_are_taken_or_named(name: str) -> None:
    known = [*SETTINGS.get(name, {}), "voice", "headers", "rate_hz", "input_rate_hz", "tools", "takes_setup"]

    @FAST
    @given(st.dictionaries(st.sampled_from(known) | TEXT, JSON, max_size=3), st.none() | TEXT)
    def check(extra: dict[str, Any], address: str | None) -> None:
        settings_of = TargetSettings("m", address, "key-key-key", {**SETTINGS.get(name, {}), **extra})
        said = ""
        try:
            registry.dialect(name).client(settings_of)
        except SettingsError as error:
            said = str(error)
        assert "\n" not in said
        assert "key-key-key" not in said

    check()
