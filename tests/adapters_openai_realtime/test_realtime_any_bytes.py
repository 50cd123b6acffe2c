"""Whatever arrives, both halves answer with events or error frames, never with an exception."""

from __future__ import annotations

from typing import Any, get_args

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.dialect import Setup, TargetSettings, ToolSpec
from adapters.openai_realtime import DIALECT
from adapters.server import Intent, Reply, ReplyCall
from captures.events import Event
from captures.frames import InFrame

SETUP = Setup("i", (ToolSpec("f", "d", {"type": "object"}),), 24_000)


def _recorded() -> list[dict[str, Any]]:
    """Every message of one spoken turn with a call, and of errors, in both directions."""
    client, server = DIALECT.client(TargetSettings("m")), DIALECT.server()
    messages = [*server.greeting({"model": "m"})]
    sent = [*client.open(SETUP), *client.encode_clip(bytes(9600), 24_000, 100).frames, *client.commit_turn()]
    sent += [*client.text("t"), *client.tool_result("c", "o"), *client.cancel()]
    for frame in sent:
        messages += server.receive(InFrame(frame.payload, False, 0)).frames
    messages += server.answer(Reply((ReplyCall("f", {"a": 1}),), "a b", bytes(9600)))
    messages += server.failure("insufficient_quota", "m")
    return [orjson.loads(frame.payload) for frame in [*messages, *sent]]


RECORDED = _recorded()
TYPES = sorted({message["type"] for message in RECORDED} | set(DIALECT.client(TargetSettings("m"))._handlers))  # type: ignore[attr-defined]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = sorted({key for message in RECORDED for key in message} | {"name", "call_id", "arguments", "output", "status"})
MADE_UP = st.builds(
    lambda kind, fields: fields | {"type": kind}, st.sampled_from(TYPES), st.dictionaries(st.sampled_from(KEYS), JSON)
)


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A recorded message with one value, at any depth, replaced or removed."""
    message = orjson.loads(orjson.dumps(draw(st.sampled_from(RECORDED))))
    place: Any = message
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return message
        key = draw(st.sampled_from(keys))
        if isinstance(place[key], dict | list) and draw(st.booleans()):
            place = place[key]
            continue
        if isinstance(place, dict) and draw(st.booleans()):
            del place[key]
        else:
            place[key] = draw(JSON)
        return message


def _encoded(value: Any) -> bytes:
    import json

    return json.dumps(value).encode()


PAYLOADS = st.lists(
    st.binary(max_size=40) | st.one_of(mutated(), MADE_UP, JSON, st.sampled_from(RECORDED)).map(_encoded), max_size=12
)


@settings(max_examples=200, deadline=None)
@given(payloads=PAYLOADS, ready=st.booleans(), asked=st.booleans())
def test_client_reads_anything(payloads: list[bytes], ready: bool, asked: bool) -> None:
    client = DIALECT.client(TargetSettings("m"))
    client.open(SETUP)
    if ready:
        client.receive(InFrame(b'{"type":"session.updated","session":{}}', False, 0))
    if asked:
        client.commit_turn()
    for payload in payloads:
        events, owed = client.receive(InFrame(payload, False, 0))
        assert all(isinstance(event, get_args(Event)) for event in events)
        assert all(orjson.loads(frame.payload)["type"] == "response.create" for frame in owed)


@settings(max_examples=200, deadline=None)
@given(payloads=PAYLOADS)
def test_server_reads_anything(payloads: list[bytes]) -> None:
    server = DIALECT.server()
    server.greeting({})
    for payload in payloads:
        step = server.receive(InFrame(payload, False, 0))
        assert all("event_id" in orjson.loads(frame.payload) for frame in step.frames)
        assert all(isinstance(intent, get_args(Intent)) for intent in step.intents)
    frames = [orjson.loads(frame.payload) for frame in server.answer(Reply((ReplyCall("f", {}),), "x", bytes(960)))]
    assert frames[-1]["type"] == "response.done"


@settings(max_examples=100, deadline=None)
@given(
    calls=st.lists(
        st.builds(ReplyCall, st.text(min_size=1), st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53))),
        max_size=4,
    ),
    text=st.text(),
    samples=st.integers(0, 6000),
)
def test_a_reply_arrives_as_it_was_given(calls: list[ReplyCall], text: str, samples: int) -> None:
    from captures.events import AnswerEnded, AudioDelta, ToolCall, TranscriptDelta, Unrecognised, Warned

    reply = Reply(tuple(calls), text, b"\x01\x02" * samples)
    client = DIALECT.client(TargetSettings("m"))
    client.open(SETUP)
    client.commit_turn()
    events: list[Any] = []
    for frame in DIALECT.server().answer(reply):
        events += client.receive(InFrame(frame.payload, False, 0))[0]
    heard = [(call.name, call.arguments) for call in events if isinstance(call, ToolCall)]
    assert heard == [(call.name, call.arguments) for call in calls]
    assert "".join(event.text for event in events if isinstance(event, TranscriptDelta)) == text
    assert b"".join(event.pcm for event in events if isinstance(event, AudioDelta)) == reply.pcm
    assert isinstance(events[-1], AnswerEnded)
    assert not [event for event in events if isinstance(event, Unrecognised | Warned)]
