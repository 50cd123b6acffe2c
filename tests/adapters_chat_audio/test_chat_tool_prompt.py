"""Tools as prompted JSON: the menu and back, and a reader for which whatever is not the protocol is no answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.chat_audio import tool_prompt
from adapters.chat_audio.hearing import audio_units, unheard
from adapters.dialect import Setup, TargetSettings, ToolSpec
from adapters.registry import dialect
from adapters.server import AnswerWanted, AudioGiven, Reply, ReplyCall, SetupGiven, ToolResultGiven
from captures.events import AnswerEnded, TextDelta, ToolCall
from captures.frames import InFrame

TOOL = ToolSpec("refund", "Gives money\nback.", {"type": "object", "properties": {}})
words = st.text(max_size=20)
tools = st.builds(ToolSpec, st.text(min_size=1, max_size=10), words, st.just({"type": "object", "properties": {}}))


@settings(max_examples=40)
@given(st.lists(tools, min_size=1, max_size=4), st.text(max_size=40))
def test_a_menu_can_be_read_back(menu: list[ToolSpec], instructions: str) -> None:
    assert tool_prompt.tools_in(tool_prompt.with_tools(instructions, menu)) == (instructions, tuple(menu))


@settings(max_examples=40)
@given(st.text(min_size=1, max_size=10), st.dictionaries(words, st.integers(-9, 9), max_size=3), words)
def test_what_the_protocol_says_is_read_as_it_was_meant(name: str, arguments: dict[str, Any], say: str) -> None:
    called = tool_prompt.read(tool_prompt.call_text(name, arguments, say))
    assert called == tool_prompt.Said(name, arguments, say)
    assert tool_prompt.read(tool_prompt.say_text(say)) == tool_prompt.Said(None, {}, say)
    assert tool_prompt.read(f"\n```json\n{tool_prompt.call_text(name, arguments)}\n```\n") is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I will refund that.",
        'Sure: {"tool": "refund", "arguments": {}}',
        '{"tool": "refund", "arguments": {}} {"tool": "refund", "arguments": {}}',
        '[{"tool": "refund", "arguments": {}}]',
        '{"tool": "refund", "tool": null}',
        '{"tool": "refund", "arguments": "all"}',
        '{"tool": "", "arguments": {}}',
        '{"tool": 3}',
        '{"name": "refund", "arguments": {}}',
        '{"tool": "refund", "arguments": {}, "why": "asked"}',
        '{"tool": null, "arguments": {"amount": 3}}',
        '{"tool": "refund", "arguments": {"amount": NaN}}',
        '{"tool": "refund", "arguments": {}',
        "[" * 100_000,
    ],
)
def test_anything_else_is_unreadable(text: str) -> None:
    assert tool_prompt.read(text) is None


class Talk:
    """vLLM with prompted tools, both halves."""

    def __init__(self) -> None:
        self.client = dialect("vllm").client(TargetSettings("m", None, None, {"tools": "prompt"}))
        self.setup = Setup("Help.", (TOOL,), 16000)
        self.client.open(self.setup)
        self.server: Any = None

    def post(self, frames: Any) -> Any:
        (frame,) = frames
        self.server = dialect("vllm").server()
        self.body = json.loads(frame.payload)
        return self.server.receive(InFrame(frame.payload, False, 0)).intents

    def speak(self) -> Any:
        self.client.hold(self.client.encode_clip(bytes(320), 16000, 20).frames[0])
        return self.post(self.client.commit_turn())

    def receive(self, content: str) -> list[Any]:
        body = {"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]}
        return list(self.client.receive(InFrame(json.dumps(body).encode(), False, 0))[0])


def test_a_turn_with_prompted_tools_and_its_result() -> None:
    talk = Talk()
    assert talk.speak() == [SetupGiven(talk.setup), AudioGiven(bytes(320), 16000), AnswerWanted(None)]
    assert "tools" not in talk.body
    (frame,) = talk.server.answer(Reply((ReplyCall("refund", {"amount": 5}),), "On it."))
    events = talk.client.receive(InFrame(frame.payload, False, 0))[0]
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    assert (call.name, call.arguments) == ("refund", {"amount": 5})
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["On it."]
    intents = talk.post(talk.client.tool_result(call.call_id, "paid: 5"))
    assert [intent for intent in intents if isinstance(intent, ToolResultGiven)] == [
        ToolResultGiven("prompted", "paid: 5")
    ]


def test_an_unreadable_answer_is_a_wrong_call_never_none() -> None:
    talk = Talk()
    talk.speak()
    events = talk.receive("I'd rather not say.")
    assert [(event.name, event.arguments) for event in events if isinstance(event, ToolCall)] == [(None, None)]
    assert isinstance(events[-1], AnswerEnded)
    talk.speak()
    events = talk.receive('{"tool": null, "say": "No need."}')
    assert not [event for event in events if isinstance(event, ToolCall)]


def test_a_probe_is_answered_in_plain_words() -> None:
    talk = Talk()
    talk.client.open(Setup("Which?", (), 16000))
    talk.speak()
    assert [event for event in talk.receive("clear") if isinstance(event, TextDelta)] == [TextDelta("clear")]


@pytest.mark.parametrize(
    ("usage", "units"),
    [
        ({}, None),
        ({"prompt_tokens_details": {"cached_tokens": 3}}, None),
        ({"prompt_tokens_details": {"audio_tokens": True}}, None),
        ({"prompt_tokens_details": {"audio_tokens": 0}}, 0),
        ({"prompt_audio_seconds": 4}, 4),
        ({"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 9}]}, 0),
        ({"promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 9}]}, 9),
    ],
)
def test_what_a_usage_tells_of_the_audio(usage: dict[str, Any], units: float | None) -> None:
    assert audio_units(usage) == units


@pytest.mark.parametrize(
    ("said", "deaf"),
    [
        ("I'm sorry, but no audio was provided.", True),
        ("I can’t listen to audio files. Could you type it?", True),
        ("I don't have the ability to hear recordings.", True),
        ("As a text-based AI, I cannot process audio.", True),
        ("I couldn't hear the audio clearly; could you repeat the time?", False),
        ("Sorry, I did not catch that. Which day?", False),
        ("Your voice message has been saved.", False),
        ("I cannot process the refund.", False),
    ],
)
def test_a_reply_that_says_it_heard_nothing(said: str, deaf: bool) -> None:
    assert (unheard({}, said, called=False) is not None) is deaf
    assert unheard({}, said, called=True) is None
    assert unheard({"prompt_tokens_details": {"audio_tokens": 40}}, said, called=False) is None
