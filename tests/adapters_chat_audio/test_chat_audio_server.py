"""File mode's server half, and both halves against each other."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.chat_audio import wav
from adapters.chat_audio.client import ChatAudioClient
from adapters.chat_audio.server import ChatAudioServer
from adapters.dialect import Setup, TargetSettings, ToolSpec
from adapters.server import AnswerWanted, AudioGiven, Reply, ReplyCall, ServerStep, SetupGiven, ToolResultGiven
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Event,
    Failed,
    FailureKind,
    Refused,
    Served,
    TextDelta,
    ToolCall,
    TranscriptDelta,
    Usage,
)
from captures.frames import InFrame

SETUP = Setup("Help.", (ToolSpec("refund", "Gives money back.", {"type": "object", "properties": {}}),), 24000)
PCM = bytes(range(200))


class Pair:
    """The client half and, for each request, a fresh server half."""

    def __init__(self, **extra: Any) -> None:
        self.client = ChatAudioClient(TargetSettings("m", "http://127.0.0.1:1/v1", None, extra))
        self.client.open(SETUP)
        self.server = ChatAudioServer()

    def post(self, frames: Any) -> ServerStep:
        (frame,) = frames
        self.server = ChatAudioServer()
        return self.server.receive(InFrame(frame.payload, False, 0))

    def speak(self) -> ServerStep:
        self.client.hold(self.client.encode_clip(PCM, 24000, 20).frames[0])
        return self.post(self.client.commit_turn())

    def answer(self, reply: Reply) -> list[Event]:
        (frame,) = self.server.answer(reply)
        events = self.client.receive(InFrame(frame.payload, False, 0))[0]
        return [event for event in events if not isinstance(event, Served)]


def test_a_spoken_turn_both_ways() -> None:
    pair = Pair()
    assert pair.speak().intents == [SetupGiven(SETUP), AudioGiven(PCM, 24000), AnswerWanted(None)]
    events = pair.answer(Reply((), "Good day.", PCM, 24000, None, {"total_tokens": 9}))
    assert [event for event in events if not isinstance(event, AudioDelta)] == [
        TranscriptDelta("Good day."),
        Usage({"total_tokens": 9}),
        AnswerEnded(AnswerEnd.COMPLETED, "stop"),
    ]
    assert [(event.pcm, event.rate_hz) for event in events if isinstance(event, AudioDelta)] == [(PCM, 24000)]


def test_no_speech_when_none_was_asked_for() -> None:
    pair = Pair(modalities=["text"])
    pair.speak()
    assert pair.answer(Reply((), "Good day.", PCM))[0] == TextDelta("Good day.")


def test_a_tool_turn_and_its_result() -> None:
    pair = Pair()
    assert pair.post(pair.client.text("Back!")).intents == [SetupGiven(SETUP), AnswerWanted("Back!")]
    events = pair.answer(Reply((ReplyCall("refund", {"amount": 5}), ReplyCall("note", {})), "On it."))
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert [(call.name, call.arguments, call.output_index) for call in calls] == [
        ("refund", {"amount": 5}, 0),
        ("note", {}, 1),
    ]
    assert pair.client.tool_result(calls[0].call_id, "paid") == ()
    assert pair.post(pair.client.tool_result(calls[1].call_id, "noted")).intents == [
        SetupGiven(SETUP),
        ToolResultGiven(calls[0].call_id, "paid"),
        ToolResultGiven(calls[1].call_id, "noted"),
        AnswerWanted("Back!"),
    ]


def test_a_failure_of_the_vendor() -> None:
    pair = Pair()
    (frame,) = pair.server.failure("server_error", "try later")
    assert pair.client.receive(InFrame(frame.payload, False, 0))[0] == [
        Failed(FailureKind.TRANSIENT, "server_error", "try later")
    ]


def body(**changes: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **changes}


def spoken(data: bytes, audio_format: str = "wav") -> list[dict[str, Any]]:
    audio = {"data": base64.b64encode(data).decode(), "format": audio_format}
    return [{"role": "user", "content": [{"type": "input_audio", "input_audio": audio}]}]


@pytest.mark.parametrize(
    ("request_body", "param"),
    [
        ([], ""),
        (body(model=None), "model"),
        (body(stream=True), "stream"),
        (body(messages=[]), "messages"),
        (body(messages=[{"role": "system", "content": "x"}]), "messages"),
        (body(messages=spoken(b"abc", "mp3")), "messages[0].input_audio.format"),
        (body(messages=spoken(b"abc")), "messages[0].input_audio.data"),
        (body(tools=[{"type": "function", "function": {}}]), "tools[0].function.name"),
        (body(tools=["refund"]), "tools[0].function.name"),
    ],
)
def test_bad_requests_are_refused_with_the_field(request_body: object, param: str) -> None:
    step = ChatAudioServer().receive(InFrame(json.dumps(request_body).encode(), False, 0))
    assert not step.intents
    assert step.close == (400, "invalid_request_error")
    (event,) = Pair().client.receive(InFrame(step.frames[0].payload, False, 0))[0]
    assert isinstance(event, Refused)
    assert event.where == param


def test_requests_of_other_clients_are_understood() -> None:
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "Help."}]},
        *spoken(wav.encode(PCM, 16000)),
    ]
    messages[1]["content"].insert(0, {"type": "text", "text": "Listen:"})  # type: ignore[attr-defined]
    step = ChatAudioServer().receive(InFrame(json.dumps(body(messages=messages, n=1)).encode(), False, 0))
    assert step.intents == [SetupGiven(Setup("Help.", (), 16000)), AudioGiven(PCM, 16000), AnswerWanted(None)]


@given(payload=st.binary(max_size=80))
@settings(max_examples=50)
def test_any_bytes_are_refused_as_the_vendor_would(payload: bytes) -> None:
    step = ChatAudioServer().receive(InFrame(payload, False, 0))
    assert step.close == (400, "invalid_request_error")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "input_audio", "function", "name", "data"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(fields=st.dictionaries(st.sampled_from(["messages", "tools", "modalities", "model", "stream"]), VALUES))
@settings(max_examples=100)
def test_any_fields_are_taken_or_refused(fields: dict[str, Any]) -> None:
    step = ChatAudioServer().receive(InFrame(json.dumps(body(**fields)).encode(), False, 0))
    assert bool(step.intents) is not bool(step.close)


@given(
    text=st.text(max_size=20),
    calls=st.lists(
        st.tuples(st.text(min_size=1, max_size=6), st.dictionaries(st.text(max_size=4), st.integers(-9, 9)))
    ),
    samples=st.integers(0, 500),
)
@settings(max_examples=40)
def test_any_reply_comes_through(text: str, calls: list[tuple[str, dict[str, int]]], samples: int) -> None:
    pair = Pair()
    pair.speak()
    reply = Reply(tuple(ReplyCall(name, arguments) for name, arguments in calls), text, bytes(2 * samples))
    events = pair.answer(reply)
    assert sum(len(event.pcm) for event in events if isinstance(event, AudioDelta)) == 2 * samples
    assert "".join(event.text for event in events if isinstance(event, TextDelta | TranscriptDelta)) == text
    assert [(event.name, event.arguments) for event in events if isinstance(event, ToolCall)] == calls
