"""The rig socket's server half, and both halves against each other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.dialect import Setup, TargetSettings, ToolSpec, TurnControlSettings, TurnMode
from adapters.rig_socket.client import RigSocketClient
from adapters.rig_socket.server import RigSocketServer
from adapters.server import (
    AnswerCancelled,
    AnswerWanted,
    AudioGiven,
    Reply,
    ReplyCall,
    ServerStep,
    SetupGiven,
    ToolResultGiven,
)
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Event,
    Failed,
    FailureKind,
    InputTranscript,
    Refused,
    SessionReady,
    TextDelta,
    ToolCall,
    ToolCallStarted,
    TranscriptDelta,
    Usage,
)
from captures.frames import InFrame, OutFrame

SETUP = Setup(
    "Answer the caller.",
    (ToolSpec("refund", "Gives money back.", {"type": "object", "properties": {"amount": {"type": "number"}}}),),
    16000,
    TurnControlSettings(TurnMode.MANUAL, {"note": 1}),
)


class Pair:
    """Both halves, joined without a socket."""

    def __init__(self) -> None:
        self.client = RigSocketClient(TargetSettings("", "ws://127.0.0.1:1"))
        self.server = RigSocketServer()

    def to_server(self, frames: Any) -> list[ServerStep]:
        return [self.server.receive(InFrame(frame.payload, frame.binary, 0)) for frame in frames]

    def to_client(self, frames: Any) -> list[Event]:
        return [event for frame in frames for event in self.client.receive(InFrame(frame.payload, frame.binary, 0))[0]]

    def opened(self) -> Pair:
        (step,) = self.to_server(self.client.open(SETUP))
        assert step.intents == [SetupGiven(SETUP)]
        assert self.to_client(step.frames) == [SessionReady(None, {"agent": "rig emulator", "output_rate_hz": 24000})]
        return self


def intents(steps: list[ServerStep]) -> list[object]:
    assert all(not step.frames and step.close is None for step in steps)
    return [intent for step in steps for intent in step.intents]


def test_a_spoken_turn_both_ways() -> None:
    pair = Pair().opened()
    clip = pair.client.encode_clip(bytes(range(100)) * 10, 16000, 20)
    turn = [*pair.client.start_turn(), *clip.frames, *pair.client.commit_turn()]
    assert intents(pair.to_server(turn)) == [
        AudioGiven(clip.frames[0].payload, 16000),
        AudioGiven(clip.frames[1].payload, 16000),
        AnswerWanted(),
    ]
    pcm = bytes(range(250)) * 30
    reply = Reply((), "Good day.", pcm, 24000, "hello", {"seconds": 2})
    events = pair.to_client(pair.server.answer(reply))
    assert b"".join(event.pcm for event in events if isinstance(event, AudioDelta)) == pcm
    assert [event for event in events if not isinstance(event, AudioDelta)] == [
        InputTranscript("hello"),
        TranscriptDelta("Good day."),
        Usage({"seconds": 2}),
        AnswerEnded(AnswerEnd.COMPLETED),
    ]


def test_a_tool_turn_and_its_results() -> None:
    pair = Pair().opened()
    assert intents(pair.to_server(pair.client.text("Money back!"))) == [AnswerWanted("Money back!")]
    reply = Reply((ReplyCall("refund", {"amount": 5}), ReplyCall("note", {})), "On it.")
    assert pair.to_client(pair.server.answer(reply)) == [
        TextDelta("On it."),
        ToolCallStarted("call-0", "refund", 0),
        ToolCall("call-0", "refund", '{"amount":5}', {"amount": 5}, 0),
        ToolCallStarted("call-1", "note", 1),
        ToolCall("call-1", "note", "{}", {}, 1),
        AnswerEnded(AnswerEnd.COMPLETED),
    ]
    assert intents(pair.to_server(pair.client.tool_result("call-1", "noted"))) == [ToolResultGiven("call-1", "noted")]
    assert intents(pair.to_server(pair.client.tool_result("call-0", "paid"))) == [
        ToolResultGiven("call-0", "paid"),
        AnswerWanted(),
    ]


def test_other_verbs() -> None:
    pair = Pair().opened()
    assert intents(pair.to_server(pair.client.cancel())) == [AnswerCancelled()]
    assert intents(pair.to_server([*pair.client.truncate(100), OutFrame(b'{"type":"news"}')])) == []
    assert pair.to_server(pair.client.close())[0].close == (1000, "")
    assert pair.to_client(pair.server.failure("down", "try later")) == [
        Failed(FailureKind.TRANSIENT, "down", "try later")
    ]


def test_speech_at_another_rate_is_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="24000 Hz"):
        list(RigSocketServer().answer(Reply(pcm=b"12", rate_hz=8000)))


def setup_with(**changes: Any) -> dict[str, Any]:
    (frame,) = RigSocketClient(TargetSettings("", "ws://h")).open(SETUP)
    return {**json.loads(frame.payload), **changes}


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        ({"version": 2, "versions": [2, 3]}, "version_mismatch", "version"),
        ({"version": 2, "versions": None}, "version_mismatch", "version"),
        ({"version": None, "versions": None}, "version_mismatch", "version"),
        ({"instructions": None}, "bad_setup", "instructions"),
        ({"audio": {"encoding": "opus", "input_rate_hz": 24000}}, "bad_setup", "audio"),
        ({"audio": {"encoding": "pcm16", "input_rate_hz": 44100}}, "bad_setup", "audio"),
        ({"tools": [{"name": "a", "parameters": {}}, {"parameters": {}}]}, "bad_setup", "tools[1].name"),
        ({"tools": [{"name": "a", "parameters": "none"}]}, "bad_setup", "tools[0].parameters"),
        ({"turn_control": {"mode": "telepathy"}}, "bad_setup", "turn_control.mode"),
        ({"turn_control": {"mode": "server_vad"}}, "bad_setup", "turn_control.mode"),
    ],
)
def test_a_setup_that_is_refused(changes: dict[str, Any], code: str, where: str) -> None:
    pair = Pair()
    step = pair.server.receive(InFrame(json.dumps(setup_with(**changes)).encode(), False, 0))
    assert not step.intents
    assert step.close == (4400, code)
    (event,) = pair.to_client(step.frames)
    assert isinstance(event, Refused)
    assert (event.code, event.where) == (code, where)
    if code == "version_mismatch":
        assert "version 1" in event.message


@pytest.mark.parametrize(
    ("payload", "binary"),
    [(b"\0\0", True), (b'{"type":"turn.commit"}', False), (b"{", False), (b"[]", False)],
)
def test_messages_out_of_place_are_errors_of_the_protocol(payload: bytes, binary: bool) -> None:
    pair = Pair()
    step = pair.server.receive(InFrame(payload, binary, 0))
    (event,) = pair.to_client(step.frames)
    assert isinstance(event, Failed)
    assert event.kind is FailureKind.PROTOCOL


def test_a_result_for_no_open_call_is_an_error() -> None:
    pair = Pair().opened()
    (step,) = pair.to_server(pair.client.tool_result("never", "x"))
    assert not step.intents
    assert step.frames


@given(frames=st.lists(st.tuples(st.binary(max_size=40), st.booleans()), max_size=4), opened=st.booleans())
@settings(max_examples=60)
def test_any_bytes_are_taken(frames: list[tuple[bytes, bool]], opened: bool) -> None:
    pair = Pair().opened() if opened else Pair()
    for payload, binary in frames:
        step = pair.server.receive(InFrame(payload, binary, 0))
        pair.to_client(step.frames)


@given(
    text=st.text(max_size=20),
    calls=st.lists(
        st.tuples(
            st.text(min_size=1, max_size=6), st.dictionaries(st.text(max_size=4), st.integers(-9, 9), max_size=3)
        ),
        max_size=3,
    ),
    samples=st.integers(0, 6000),
)
@settings(max_examples=50)
def test_any_reply_comes_through(text: str, calls: list[tuple[str, dict[str, int]]], samples: int) -> None:
    pair = Pair().opened()
    reply = Reply(tuple(ReplyCall(name, arguments) for name, arguments in calls), text, bytes(2 * samples))
    events = pair.to_client(pair.server.answer(reply))
    assert sum(len(event.pcm) for event in events if isinstance(event, AudioDelta)) == 2 * samples
    assert "".join(event.text for event in events if isinstance(event, TextDelta | TranscriptDelta)) == text
    given_calls = [(event.name, event.arguments) for event in events if isinstance(event, ToolCall)]
    assert given_calls == calls
    assert events[-1] == AnswerEnded(AnswerEnd.COMPLETED)
