"""What every member does alike: client half and server half joined."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import registry
from adapters.dialect import Setup, TargetSettings, TurnMode
from adapters.server import AnswerCancelled, AnswerWanted, AudioGiven, Reply, ReplyCall, SetupGiven, ToolResultGiven
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Failed,
    FailureKind,
    Refused,
    SessionReady,
    SpeechStopped,
    ToolCall,
    TranscriptDelta,
    TurnCommitted,
    Unrecognised,
    Usage,
    Warned,
)
from captures.frames import ClosedBy, InFrame
from transports.transport import TransportError

Make = Callable[..., Any]
SPEECH = bytes(range(256)) * 60
LOUD = (b"\x00\x20" * 12 + b"\x00\xe0" * 12) * 400


def test_a_spoken_turn_with_words_and_a_call(member: Make, label: str, tools: Any) -> None:
    both = member(label).open()
    assert isinstance(both.intents[0], SetupGiven)
    assert both.intents[0].setup == Setup("Be brief.", tools, 24_000)
    (ready,) = both.of(SessionReady)
    assert ready.session_id == "sess_000001"
    assert ready.echoed["tools"] == ["book_table", "cancel_order"]
    both.speak(SPEECH)
    assert both.intents[1:] == [AudioGiven(SPEECH, 24_000), AnswerWanted()]
    assert len(both.of(TurnCommitted)) == 1
    both.to_client(both.server.answer(Reply((ReplyCall("book_table", {"party": 4}),), "One moment.", SPEECH)))
    (call,) = both.of(ToolCall)
    assert (call.name, call.arguments) == ("book_table", {"party": 4})
    assert "".join(event.text for event in both.of(TranscriptDelta)) == "One moment."
    assert b"".join(event.pcm for event in both.of(AudioDelta)) == SPEECH
    assert both.of(Usage)[0].counts["output_tokens"] > 0
    assert both.events[-1] == AnswerEnded(AnswerEnd.COMPLETED)
    assert not both.of(Unrecognised) + both.of(Warned) + both.of(Failed) + both.of(Refused)

    both.intents.clear()
    both.to_server(both.client.tool_result(call.call_id, "done"))
    assert both.intents == [ToolResultGiven(call.call_id, "done"), AnswerWanted()]
    both.to_client(both.server.answer(Reply(text="Booked.")))
    assert "".join(event.text for event in both.of(TranscriptDelta)).endswith("Booked.")
    assert both.events[-1] == AnswerEnded(AnswerEnd.COMPLETED)


def test_the_text_twin_and_a_cancelled_answer(member: Make, label: str) -> None:
    both = member(label).open()
    both.to_server(both.client.text("Cancel it."))
    assert both.intents[-1] == AnswerWanted("Cancel it.")
    stream = iter(both.server.answer(Reply(text="a b c d e f g", pcm=SPEECH * 10)))
    both.to_client([next(stream) for _ in range(14)])
    both.to_server(both.client.truncate(10))
    both.to_server(both.client.cancel())
    assert both.intents[-1] == AnswerCancelled()
    assert both.events[-1] == AnswerEnded(AnswerEnd.CANCELLED, "client_cancelled")
    both.to_server(both.client.cancel())
    assert isinstance(both.events[-1], Warned)


def test_server_vad_ends_the_turn_and_is_never_committed(member: Make, label: str) -> None:
    both = member(label).open(TurnMode.SERVER_VAD, threshold=0.4, silence_duration_ms=200)
    assert both.intents[0].setup.turn_control.mode is TurnMode.SERVER_VAD
    assert both.intents[0].setup.turn_control.parameters["silence_duration_ms"] == 200
    both.speak(LOUD)
    for _ in range(10):
        both.to_server([both.client.encode_silence(24_000, 20)])
    assert both.of(SpeechStopped) == [SpeechStopped(600)]
    assert both.intents[-1] == AnswerWanted()
    assert not [message for message in both.sent if "commit" in message["type"]]
    both.to_client(both.server.answer(Reply(text="Yes.")))
    assert both.events[-1] == AnswerEnded(AnswerEnd.COMPLETED)
    assert not both.of(Warned)


def test_a_failed_answer_names_its_cause(member: Make, label: str) -> None:
    both = member(label).open()
    both.speak(SPEECH)
    both.to_client(both.server.failure("insufficient_quota", "You exceeded your current quota."))
    assert both.events[-1] == Failed(FailureKind.QUOTA, "insufficient_quota", "You exceeded your current quota.")


def test_a_key_that_the_peer_echoes_is_shown_nowhere(member: Make, label: str, key: str) -> None:
    both = member(label, headers={"X-Extra": "planted-header-value"})
    secrets = (key, "planted-header-value")
    endpoint = both.client.endpoint()
    assert key in str(endpoint.headers)
    shown = [repr(endpoint), endpoint.label]
    for secret in secrets:
        for wrong in (
            {"type": "error", "error": {"code": secret, "message": f"bad {secret}", "param": secret}},
            {"type": secret},
            {secret: 1},
            {"type": "session.updated", "session": {"model": secret, "voice": [secret], secret: 1}},
        ):
            shown += [repr(event) for event in member_again(member, label).hear(wrong)]
        error = TransportError("no", code="http_400", status=400, body=f'{{"error":{{"message":"{secret}"}}}}')
        shown.append(repr(both.client.connect_failed(error)))
        shown.append(repr(both.client.closed(ClosedBy(0, 1008, f"key {secret}", True))))
    assert not [text for text in shown if any(secret in text for secret in secrets)]


def member_again(member: Make, label: str) -> Any:
    both = member(label, headers={"X-Extra": "planted-header-value"})
    both.client.open(Setup("", (), 24_000))
    return both


@pytest.mark.parametrize(
    ("status", "expected"), [(401, Refused), (403, Refused), (404, Refused), (400, Refused), (500, Failed)]
)
def test_refused_handshakes(member: Make, label: str, status: int, expected: type) -> None:
    event = member(label).client.connect_failed(TransportError("no", code=f"http_{status}", status=status))
    assert isinstance(event, expected)


def test_a_used_up_quota_is_told_from_a_rate_limit(member: Make, label: str) -> None:
    client = member(label).client
    spent = TransportError("no", code="http_429", status=429, body='{"error":{"message":"Quota exceeded"}}')
    assert client.connect_failed(spent).kind is FailureKind.QUOTA
    busy = TransportError("no", code="http_429", status=429, body="", retry_after_s=2.0)
    assert client.connect_failed(busy) == Failed(FailureKind.RATE_LIMIT, "http_429", "no", 2.0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FAMILY = {
    "openai_realtime_beta": "m",
    "azure_realtime": "m",
    "azure_realtime_preview": "m",
    "xai_realtime": "m",
    "vercel_gateway": "xai/m",
}


def _recorded(name: str) -> list[dict[str, Any]]:
    dialect = registry.dialect(name)
    client = dialect.client(TargetSettings(FAMILY[name], "ws://127.0.0.1:1"))
    server = dialect.server()
    messages = [*server.greeting({"ai-model-id": FAMILY[name]})]
    sent = [*client.open(Setup("i", (), 24_000)), *client.encode_clip(bytes(9600), 24_000, 100).frames]
    sent += [*client.commit_turn(), *client.text("t"), *client.tool_result("c", "o"), *client.cancel()]
    for frame in sent:
        messages += server.receive(InFrame(frame.payload, False, 0)).frames
    messages += server.answer(Reply((ReplyCall("f", {"a": 1}),), "a b", bytes(960), input_transcript="x y"))
    return [orjson.loads(frame.payload) for frame in [*messages, *sent]]


RECORDED = {name: _recorded(name) for name in FAMILY}


@st.composite
def mutated(draw: st.DrawFn, name: str) -> Any:
    """A recorded message with one value, at any depth, replaced or removed."""
    message = orjson.loads(orjson.dumps(draw(st.sampled_from(RECORDED[name]))))
    place: Any = message
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return message
        chosen = draw(st.sampled_from(keys))
        if isinstance(place[chosen], dict | list) and draw(st.booleans()):
            place = place[chosen]
            continue
        if isinstance(place, dict) and draw(st.booleans()):
            del place[chosen]
        else:
            place[chosen] = draw(JSON)
        return message


@pytest.mark.parametrize("name", sorted(FAMILY))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_both_halves_read_anything(name: str, data: st.DataObject) -> None:
    dialect = registry.dialect(name)
    client = dialect.client(TargetSettings(FAMILY[name], "ws://127.0.0.1:1", "planted-key"))
    client.open(Setup("i", (), 24_000))
    server = dialect.server()
    server.greeting({"ai-model-id": FAMILY[name]})
    messages = data.draw(st.lists(mutated(name) | JSON | st.sampled_from(RECORDED[name]), max_size=8))
    payloads = [json.dumps(message).encode() for message in messages] + [data.draw(st.binary(max_size=30))]
    for payload in payloads:
        client.receive(InFrame(payload, False, 0))
        for frame in server.receive(InFrame(payload, False, 0)).frames:
            assert "type" in orjson.loads(frame.payload)
    list(server.answer(Reply((ReplyCall("f", {}),), "x", bytes(960), input_transcript="x")))
