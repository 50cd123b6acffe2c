"""StepFun's own: detection off by default, answers that a commit may start, a confirmation of another name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from adapters.dialect import SettingsError, ToolSpec, TurnMode
from adapters.server import AnswerWanted, Reply
from captures.events import (
    AnswerEnded,
    Failed,
    FailureKind,
    InputTranscript,
    SessionReady,
    ToolCall,
    Warned,
)
from transports.transport import TransportError

Make = Callable[..., Any]
NAME = "stepfun_realtime"
SPEECH = bytes(range(256)) * 60


def test_the_session_that_is_sent(both: Make) -> None:
    pair = both(NAME, voice="linjiajiejie").open(tools=())
    assert pair.sent[0]["session"] == {
        "modalities": ["text", "audio"],
        "instructions": "Be brief.",
        "input_audio_format": "pcm16",
        "output_audio_format": "pcm16",
        "voice": "linjiajiejie",
    }
    assert pair.of(SessionReady)[0].echoed["max_output_tokens"] == "4096"


def test_detection_by_level_with_the_vendors_parameters(both: Make) -> None:
    pair = both(NAME).open(TurnMode.SERVER_VAD, prefix_padding_ms=200, energy_awakeness_threshold=1000)
    assert pair.sent[0]["session"]["turn_detection"] == {
        "type": "server_vad",
        "prefix_padding_ms": 200,
        "energy_awakeness_threshold": 1000,
    }
    assert pair.of(SessionReady)[0].echoed["turn_detection"]["silence_duration_ms"] == 100
    with pytest.raises(SettingsError, match=r"turn_control\.energy_awakeness_threshold"):
        both(NAME).open(TurnMode.SERVER_VAD, energy_awakeness_threshold=6000)


def test_a_second_session_created_confirms_the_settings(both: Make, tools: Any) -> None:
    pair = both(NAME)
    pair.client.open(pair.setup(tools=()))
    created = {"type": "session.created", "session": {"id": "s1"}}
    assert pair.hear(created) == []
    (ready,) = pair.hear(created)
    assert isinstance(ready, SessionReady)


def test_an_answer_that_the_commit_began(both: Make) -> None:
    pair = both(NAME).open()
    pair.client.start_turn()
    create = pair.client.commit_turn()[1]
    request_id = orjson.loads(create.payload)["event_id"]
    refused = {"type": "error", "error": {"code": "invalid_param", "message": "已有响应", "event_id": request_id}}
    events = pair.hear(
        {"type": "input_audio_buffer.committed", "item_id": "i"},
        {"type": "response.created", "response": {"id": "r"}},
        refused,
        {"type": "response.done", "response": {"id": "r", "status": "completed", "output": []}},
    )
    assert [type(event).__name__ for event in events[1:]] == ["Warned", "AnswerEnded"]


def test_a_refused_request_with_no_answer_running_fails(both: Make) -> None:
    pair = both(NAME).open()
    request_id = orjson.loads(pair.client.commit_turn()[1].payload)["event_id"]
    error = {"type": "error", "error": {"code": "invalid_param", "message": "m", "event_id": request_id}}
    assert pair.hear(error) == [Failed(FailureKind.PROTOCOL, "invalid_param", "m")]


def test_a_call_whose_end_does_not_name_it(both: Make) -> None:
    pair = both(NAME).open()
    pair.client.commit_turn()
    place = {"response_id": "r", "item_id": "i", "output_index": 0, "call_id": "c"}
    item = {"id": "i", "type": "function_call", "call_id": "c", "name": "book_table", "arguments": ""}
    events = pair.hear(
        {"type": "response.output_item.added", "response_id": "r", "output_index": 0, "item": item},
        {"type": "response.thinking.delta", "response_id": "r", "delta": "Hm."},
        {"type": "response.function_call_arguments.done", "arguments": '{"party":4}', **place},
    )
    assert [(call.name, call.arguments) for call in events if isinstance(call, ToolCall)] == [
        ("book_table", {"party": 4})
    ]
    assert not [event for event in events if isinstance(event, Warned)]


def test_the_callers_turn_as_text(both: Make) -> None:
    pair = both(NAME).open()
    pair.to_server(pair.client.text("Book for four."))
    assert pair.intents[1:] == [AnswerWanted("Book for four.")]
    created = next(message for message in pair.received if message["type"] == "conversation.item.created")
    assert created["item"]["content"] == [{"type": "input_text", "transcript": "Book for four."}]
    pair.to_client(pair.server.answer(Reply(text="Done.", pcm=SPEECH)))
    assert isinstance(pair.events[-1], AnswerEnded)


def test_the_caller_is_transcribed_unasked(both: Make) -> None:
    pair = both(NAME).open()
    pair.speak(SPEECH)
    pair.to_client(pair.server.answer(Reply(text="Yes.", input_transcript="Four.")))
    assert [event.text for event in pair.of(InputTranscript)] == ["Four."]


def test_a_cancelled_answer_ends_by_its_own_event(both: Make) -> None:
    pair = both(NAME).open()
    pair.speak(SPEECH)
    pair.to_server(pair.client.cancel())
    assert pair.received[-1]["type"] == "response.cancelled"


def test_a_tool_of_the_built_in_searchs_name(both: Make) -> None:
    pair = both(NAME)
    with pytest.raises(SettingsError, match="tool web_search"):
        pair.client.open(pair.setup(tools=(ToolSpec("web_search", "d", {"type": "object"}),)))


@pytest.mark.parametrize(
    "session",
    [
        {"modalities": ["text"]},
        {"input_audio_format": "pcm"},
        {"turn_detection": {"type": "semantic_vad"}},
        {"turn_detection": {"type": "server_vad", "energy_awakeness_threshold": 9000}},
        {"tools": [{"type": "function", "name": "f", "parameters": {}}]},
    ],
)
def test_values_are_refused(both: Make, session: Any) -> None:
    assert both(NAME).refused(session)[0] == "invalid_param"


def test_other_kinds_of_tools_are_accepted_and_are_no_functions(both: Make) -> None:
    tools = [{"type": "web_search"}, {"type": "retrieval", "function": {"description": "d", "options": {}}}]
    pair = both(NAME)
    (updated,) = pair.say({"type": "session.update", "session": {"tools": tools}})
    assert updated["session"]["tools"] == tools
    assert pair.intents[0].setup.tools == ()


def test_an_empty_commit_is_refused(both: Make) -> None:
    (error,) = both(NAME).open().say({"type": "input_audio_buffer.commit"})
    assert error["error"]["code"] == "invalid_param"


def test_too_many_requests(both: Make) -> None:
    error = TransportError("no", code="http_429", status=429, body="request limited RPM reached", retry_after_s=2.0)
    event = both(NAME).client.connect_failed(error)
    assert (event.kind, event.retry_after_s) == (FailureKind.RATE_LIMIT, 2.0)
