"""What the server half takes, refuses and answers."""

from __future__ import annotations

import base64
import json
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.dialect import Setup, TargetSettings, ToolSpec
from adapters.gemini_live import DIALECT
from adapters.server import (
    AnswerCancelled,
    AnswerWanted,
    AudioGiven,
    Intent,
    Reply,
    ReplyCall,
    SetupGiven,
    ToolResultGiven,
)
from captures import events as ev
from captures.frames import InFrame

PCM = b"\x01\x02\xff\x7f" * 80
MANUAL = {"realtimeInputConfig": {"automaticActivityDetection": {"disabled": True}}}
START, END = {"realtimeInput": {"activityStart": {}}}, {"realtimeInput": {"activityEnd": {}}}


class Server:
    """A server half, by messages."""

    def __init__(self, model: str = "gemini-2.5-flash-x", **setup: Any) -> None:
        self.half = DIALECT.server()
        self.opened = self.say({"setup": {"model": model} | setup})

    def say(self, *messages: Any) -> Any:
        for message in messages:
            step = self.half.receive(InFrame(orjson.dumps(message), False, 0))
        return step

    def answer(self, reply: Reply) -> list[Any]:
        return [orjson.loads(frame.payload) for frame in self.half.answer(reply)]


def audio(pcm: bytes = PCM, rate: int = 16_000) -> dict[str, Any]:
    data = base64.urlsafe_b64encode(pcm).decode()
    return {"realtime_input": {"audio": {"data": data, "mime_type": f"audio/pcm;rate={rate}"}}}


def test_a_manual_turn_is_what_lies_between_its_marks() -> None:
    server = Server(**MANUAL)
    assert server.opened.intents == [SetupGiven(Setup("", (), 16_000))]
    assert server.say(audio()).intents == ()
    assert server.say(START, audio()).intents == [AudioGiven(PCM, 16_000)]
    assert server.say(END).intents == [AnswerWanted()]
    assert server.say(END).intents == ()


def test_speech_into_an_answer_cuts_it() -> None:
    server = Server(**MANUAL)
    server.say(START, audio(), END)
    frames = iter(server.half.answer(Reply(text="One two", pcm=bytes(9_600))))
    next(frames)
    step = server.say(START)
    assert [orjson.loads(frame.payload) for frame in step.frames] == [
        {"serverContent": {"interrupted": True}},
        {"serverContent": {"turnComplete": True}},
    ]
    assert step.intents == [AnswerCancelled()]
    assert list(frames) == []


def test_blocking_calls_wait_and_others_do_not() -> None:
    tools = [{"function_declarations": [{"name": "f"}]}]
    call = Reply((ReplyCall("f", {}),))
    waiting = Server(tools=tools, **MANUAL)
    waiting.say(START, END)
    assert [next(iter(message)) for message in waiting.answer(call)] == ["toolCall"]
    result = {"toolResponse": {"functionResponses": [{"id": "function-call-1", "name": "f", "response": {"a": 1}}]}}
    assert waiting.say(result).intents == [ToolResultGiven("function-call-1", '{"a":1}'), AnswerWanted()]
    going_on = Server("gemini-3.8-live", tools=tools, **MANUAL)
    going_on.say(START, END)
    assert going_on.answer(call)[-1]["serverContent"] == {"turnComplete": True, "interactionStatus": "IN_PROGRESS"}
    silent = {"id": "function-call-1", "response": {}, "scheduling": "SILENT"}
    assert going_on.say({"toolResponse": {"functionResponses": [silent]}}).intents == [
        ToolResultGiven("function-call-1", "{}")
    ]


@pytest.mark.parametrize(
    ("model", "answered"), [("gemini-2.5-x", True), ("gemini-3.1-flash", False), ("gemini-3.8-live", True)]
)
def test_which_models_answer_client_content(model: str, answered: bool) -> None:
    turn = {"role": "user", "parts": [{"text": "Hello"}]}
    intents = Server(model).say({"client_content": {"turns": [turn], "turnComplete": True}}).intents
    assert intents == ([AnswerWanted("Hello")] if answered else ())


def test_tools_and_instructions_change_on_3_8_alone() -> None:
    update = {"contextUpdate": {"systemInstruction": {"parts": [{"text": "New"}]}, "tools": {"tools": []}}}
    tools = [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object"}}]}]
    server = Server("gemini-3.8-live", tools=tools)
    assert server.opened.intents[0].setup.tools == (ToolSpec("f", "", {"type": "object", "properties": {}}),)
    (given_setup,) = server.say(update).intents
    assert (given_setup.setup.instructions, given_setup.setup.tools) == ("New", ())
    assert Server("gemini-3.1-x").say(update).close[0] == 1007


@pytest.mark.parametrize(
    ("setup", "reason"),
    [
        ({"model": "gemini-3.8-live", "generationConfig": {"thinkingConfig": {}}}, "thinking_config"),
        ({"model": "gemini-3.8-live-extended-thinking"}, "thinking_level"),
        ({"model": "gemini-3.1-x", "generation_config": {"enable_affective_dialog": False}}, "enableAffectiveDialog"),
        ({"model": "gemini-3.8-live", "proactivity": {"proactiveAudio": False}}, "proactive_audio"),
        ({"model": "m", "voice": "x"}, 'Unknown name "voice"'),
        ({}, "model"),
        ({"model": "m", "tools": [{"functionDeclarations": [{"name": ""}]}]}, "name"),
    ],
)
def test_setups_that_the_vendor_closes_for(setup: Any, reason: str) -> None:
    step = DIALECT.server().receive(InFrame(orjson.dumps({"setup": setup}), False, 0))
    assert step.close[0] == 1007
    assert reason in step.close[1]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "OBJECT", "additionalProperties": False},
        {"type": ["string", "null"]},
        {"type": "STRING", "enum": [1]},
        {"type": "ARRAY"},
        {"type": "OBJECT", "properties": {"a": {"type": "ARRAY", "items": {"uniqueItems": True}}}},
    ],
)
def test_schemas_that_the_vendor_closes_for(schema: Any) -> None:
    tools = [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]
    assert Server(tools=tools).opened.close[0] == 1007


@pytest.mark.parametrize(
    "messages",
    [
        [{"realtimeInput": {"mediaChunks": []}}],
        [{"realtimeInput": {"audio": {"data": "*", "mimeType": "audio/pcm"}}}],
        [{"realtimeInput": {"audio": {"data": "AAAA", "mimeType": "audio/ogg"}}}],
        [{"realtimeInput": {}}],
        [{"setup": {"model": "m"}}],
        [{"realtimeInput": {"text": "a"}, "clientContent": {}}],
        [{"toolResponse": {"functionResponses": [{"name": "f"}]}}],
        [{"surprise": {}}],
        [START],
    ],
)
def test_messages_that_the_vendor_closes_for(messages: list[Any]) -> None:
    assert Server().say(*messages).close[0] == 1007


def test_nothing_comes_before_the_setup() -> None:
    half = DIALECT.server()
    assert half.greeting({}) == ()
    assert half.receive(InFrame(orjson.dumps({"realtimeInput": {"text": "a"}}), False, 0)).close[0] == 1007


def through_client(half: Any, fault: str, reply: Reply) -> list[Any]:
    """What a client that has asked makes of a reply put on the wire with a fault."""
    client = DIALECT.client(TargetSettings("gemini-2.5-x"))
    frames = [*client.open(Setup("", (), 16_000)), *client.start_turn(), *client.commit_turn()]
    for frame in frames:
        half.receive(InFrame(frame.payload, False, 0))
    wrong = half.answer_faults[fault](half.answer(reply))
    return [event for frame in wrong for event in client.receive(InFrame(frame.payload, True, 0))[0]]


@pytest.mark.parametrize(
    ("fault", "arguments"),
    [("spurious-interrupted", [{"a": 1}, {}]), ("cut-arguments", [None, None]), ("interleaved-calls", [{"a": 1}, {}])],
)
def test_answers_with_faults_are_read(fault: str, arguments: list[Any]) -> None:
    reply = Reply((ReplyCall("f", {"a": 1}), ReplyCall("g", {})))
    events = through_client(DIALECT.server(), fault, reply)
    calls = [event for event in events if isinstance(event, ev.ToolCall)]
    assert [(call.name, call.arguments) for call in calls] == list(zip(["f", "g"], arguments, strict=True))
    assert [event for event in events if isinstance(event, ev.AnswerEnded)] == [ev.AnswerEnded(ev.AnswerEnd.COMPLETED)]
    assert not any(isinstance(event, ev.Interrupted) for event in events)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    *("setup", "model", "generationConfig", "thinkingConfig", "responseModalities", "systemInstruction", "parts"),
    *("tools", "functionDeclarations", "name", "parameters", "properties", "anyOf", "items", "type", "enum"),
    *("realtimeInputConfig", "automaticActivityDetection", "audio", "data", "mimeType", "activityStart", "text"),
    *("turns", "turnComplete", "functionResponses", "id", "response", "audioStreamEnd", "system_instruction"),
)
NESTED = st.recursive(
    JSON,
    lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=4) | st.lists(inner, max_size=2),
    max_leaves=10,
)
TOP = ("setup", "realtimeInput", "realtime_input", "clientContent", "toolResponse", "contextUpdate")
MESSAGES = st.dictionaries(st.sampled_from(TOP), NESTED, max_size=2).map(lambda message: json.dumps(message).encode())


@settings(max_examples=200, deadline=None)
@given(payloads=st.lists(st.binary(max_size=40) | MESSAGES, max_size=8), ready=st.booleans())
def test_server_reads_anything(payloads: list[bytes], ready: bool) -> None:
    server = Server().half if ready else DIALECT.server()
    for payload in payloads:
        step = server.receive(InFrame(payload, False, 0))
        assert all(isinstance(intent, get_args(Intent)) for intent in step.intents)
        assert step.close is None or (step.close[0] == 1007 and len(step.close[1].encode()) <= 400)
    assert list(server.answer(Reply(text="x")))


@settings(max_examples=60, deadline=None)
@given(
    calls=st.lists(
        st.builds(ReplyCall, st.text(min_size=1), st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53))),
        max_size=4,
    ),
    text=st.text(),
    samples=st.integers(0, 6000),
)
def test_a_reply_arrives_as_it_was_given(calls: list[ReplyCall], text: str, samples: int) -> None:
    client, server = DIALECT.client(TargetSettings("gemini-2.5-x")), DIALECT.server()
    for frame in [*client.open(Setup("", (), 16_000)), *client.start_turn(), *client.commit_turn()]:
        for back in server.receive(InFrame(frame.payload, False, 0)).frames:
            client.receive(InFrame(back.payload, True, 0))
    reply = Reply(tuple(calls), text, b"\x01\x02" * samples)
    events: list[Any] = []
    for back in server.answer(reply):
        events += client.receive(InFrame(back.payload, True, 0))[0]
    assert [(call.name, call.arguments) for call in events if isinstance(call, ev.ToolCall)] == [
        (call.name, call.arguments) for call in calls
    ]
    assert "".join(event.text for event in events if isinstance(event, ev.TranscriptDelta)) == text
    assert b"".join(event.pcm for event in events if isinstance(event, ev.AudioDelta)) == reply.pcm
    assert events[-1] == ev.AnswerEnded(ev.AnswerEnd.COMPLETED)
    assert not [event for event in events if isinstance(event, ev.Unrecognised | ev.Warned)]
