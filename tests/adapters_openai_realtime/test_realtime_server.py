"""The server half: faults are answered in the vendor's words and change nothing."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from adapters.openai_realtime import DIALECT
from adapters.server import AnswerWanted, Reply
from captures.frames import InFrame


def hear(server: Any, message: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    payload = message if isinstance(message, bytes) else orjson.dumps(message)
    step = server.receive(InFrame(payload, False, 0))
    return [orjson.loads(frame.payload) for frame in step.frames], list(step.intents)


def update(**session: Any) -> dict[str, Any]:
    return {"type": "session.update", "event_id": "mine", "session": {"type": "realtime", **session}}


def item(**fields: Any) -> dict[str, Any]:
    return {"type": "conversation.item.create", "event_id": "mine", "item": fields}


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("message", "code", "param"),
    [
        ({"type": "session.update", "event_id": "mine"}, "invalid_type", "session"),
        (
            {"type": "session.update", "event_id": "mine", "session": {"voice": "alloy"}},
            "missing_required_parameter",
            "session.type",
        ),
        (update(modalities=["text", "audio"]), "unknown_parameter", "session.modalities"),
        (update(output_modalities=["text", "audio"]), "invalid_value", "session.output_modalities"),
        (update(output_modalities=["video"]), "invalid_value", "session.output_modalities[0]"),
        (update(model="another"), "invalid_value", "session.model"),
        (update(tools=[{"type": "function", "function": {}}]), "missing_required_parameter", "session.tools[0].name"),
        (update(audio={"input": {"format": "pcm16"}}), "invalid_type", "session.audio.input.format"),
        (
            update(audio={"input": {"turn_detection": {"type": "server_vad", "threshold": 3}}}),
            "invalid_value",
            "session.audio.input.turn_detection.threshold",
        ),
        (
            update(audio={"input": {"turn_detection": {}}}),
            "missing_required_parameter",
            "session.audio.input.turn_detection.type",
        ),
        (update(max_output_tokens=5000), "invalid_value", "session.max_output_tokens"),
        (update(prompt=deep(100)), "invalid_value", None),
        ({"type": "input_audio_buffer.append", "event_id": "mine"}, "missing_required_parameter", "audio"),
        ({"type": "input_audio_buffer.append", "event_id": "mine", "audio": "%%%"}, "invalid_value", "audio"),
        (item(type="message", role="user", content=[{"type": "text"}]), "invalid_value", "item.content[0]"),
        (item(type="message", role="boss", content=[]), "invalid_value", "item.role"),
        (item(type="function_call_output", call_id="none", output=""), "invalid_tool_call_id", "item.call_id"),
        (item(), "invalid_value", "item.type"),
        ({"type": "conversation.item.truncate", "event_id": "mine"}, "invalid_value", "item_id"),
        ({"type": "response.create", "event_id": "mine", "response": {"odd": 1}}, "unknown_parameter", "response.odd"),
        ({"type": "nonsense", "event_id": "mine"}, "invalid_value", "type"),
        ({"event_id": "mine"}, "missing_required_parameter", "type"),
    ],
)
def test_faults_name_code_part_and_message_id(message: dict[str, Any], code: str, param: str | None) -> None:
    server = DIALECT.server()
    (event,), intents = hear(server, message)
    assert event["type"] == "error"
    error = event["error"]
    assert (error["type"], error["code"], error["param"], error["event_id"]) == (
        "invalid_request_error",
        code,
        param,
        "mine",
    )
    assert error["message"]
    assert intents == []


@pytest.mark.parametrize("payload", [b"", b"\xff", b"[]", b"nul", b"{" * 9000])
def test_what_is_no_object_is_an_error(payload: bytes) -> None:
    (event,), intents = hear(DIALECT.server(), payload)
    assert (event["error"]["code"], intents) == ("invalid_json", [])


def test_only_fields_that_are_present_change() -> None:
    server = DIALECT.server()
    server.greeting({"model": "m"})
    tool = {"type": "function", "name": "f", "description": "d", "parameters": {}}
    hear(server, update(tools=[tool], instructions="A", audio={"output": {"voice": "ash"}}))
    vad = {"type": "semantic_vad", "eagerness": "high"}
    (event,), (given,) = hear(server, update(instructions="", audio={"input": {"turn_detection": vad}}))
    session = event["session"]
    assert (session["tools"], session["instructions"]) == ([tool], "")
    assert session["audio"]["output"]["voice"] == "ash"
    assert session["audio"]["input"]["turn_detection"] == {
        "type": "semantic_vad",
        "eagerness": "high",
        "create_response": True,
        "interrupt_response": True,
    }
    assert given.setup.turn_control.mode == "semantic_vad"
    (event,), _ = hear(server, update(output_modalities=None, audio={"input": {"turn_detection": None}}))
    assert event["session"]["audio"]["input"]["turn_detection"] is None
    assert event["session"]["output_modalities"] == ["audio"]


def test_an_override_holds_for_one_answer() -> None:
    server = DIALECT.server()
    hear(server, update(instructions="A"))
    _, intents = hear(server, {"type": "response.create", "response": {"instructions": "B"}})
    assert [getattr(intent, "setup", None) and intent.setup.instructions for intent in intents] == ["B", None]
    list(server.answer(Reply(text="x")))
    _, intents = hear(server, {"type": "response.create"})
    assert intents[0].setup.instructions == "A"
    assert intents[1] == AnswerWanted()


def test_speech_is_truncated_within_what_was_said() -> None:
    server = DIALECT.server()
    server.greeting({"model": "m"})
    events = [orjson.loads(frame.payload) for frame in server.answer(Reply(text="x", pcm=bytes(48_000)))]
    said = events[-1]["response"]["output"][0]["id"]
    cut = {"type": "conversation.item.truncate", "item_id": said, "content_index": 0}
    (event,), _ = hear(server, cut | {"audio_end_ms": 1001})
    assert event["error"]["param"] == "audio_end_ms"
    (event,), _ = hear(server, cut | {"audio_end_ms": 400})
    assert (event["type"], event["audio_end_ms"]) == ("conversation.item.truncated", 400)


def test_speech_at_another_rate_is_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="24000 Hz, not 16000"):
        DIALECT.server().answer(Reply(pcm=b"ab", rate_hz=16_000))


def test_the_longest_tool_description_is_accepted() -> None:
    tool = {"type": "function", "name": "f", "description": "d" * 1024, "parameters": {}}
    (event,), _ = hear(DIALECT.server(), update(tools=[tool]))
    assert event["type"] == "session.updated"


def test_the_reply_to_a_cancelled_answer_does_not_enter_the_next_one() -> None:
    server = DIALECT.server()
    hear(server, {"type": "response.create"})
    late = server.answer(Reply(text="late"))
    hear(server, {"type": "response.cancel"})
    (created,), _ = hear(server, {"type": "response.create"})
    assert list(late) == []
    events = [orjson.loads(frame.payload) for frame in server.answer(Reply(text="x"))]
    assert events[-1]["response"]["id"] == created["response"]["id"]
    assert "response.created" not in [event["type"] for event in events]
