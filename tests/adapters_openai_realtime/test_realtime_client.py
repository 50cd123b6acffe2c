"""The client half: server messages in, events out, by tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from adapters.dialect import SettingsError, Setup, TargetSettings, ToolSpec, TurnControlSettings, TurnMode
from adapters.openai_realtime import DIALECT
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Failed,
    FailureKind,
    InputTranscript,
    Interrupted,
    Refused,
    SessionReady,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    ToolCall,
    ToolCallArguments,
    ToolCallStarted,
    TranscriptDelta,
    TurnCommitted,
    Unrecognised,
    Usage,
    Warned,
)
from captures.frames import ClosedBy, InFrame

Make = Callable[..., Any]
COMPLETED = AnswerEnded(AnswerEnd.COMPLETED)


def added(item: str, call: str | None, name: str | None, index: int = 0) -> dict[str, Any]:
    inner = {"type": "function_call", "id": item, "call_id": call, "name": name, "arguments": ""}
    return {"type": "response.output_item.added", "response_id": "r1", "output_index": index, "item": inner}


def delta(item: str, text: str) -> dict[str, Any]:
    return {"type": "response.function_call_arguments.delta", "response_id": "r1", "item_id": item, "delta": text}


def arguments_done(item: str, text: str, **more: Any) -> dict[str, Any]:
    event = {"type": "response.function_call_arguments.done", "response_id": "r1", "item_id": item, "arguments": text}
    return event | more


def call_item(item: str, call: str, name: str | None, text: str, status: str = "completed") -> dict[str, Any]:
    return {"type": "function_call", "id": item, "call_id": call, "name": name, "arguments": text, "status": status}


def item_done(inner: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.done", "response_id": "r1", "output_index": index, "item": inner}


def done(status: Any = "completed", output: Any = None, response_id: str = "r1", **more: Any) -> dict[str, Any]:
    return {"type": "response.done", "response": {"id": response_id, "status": status, "output": output, **more}}


CREATED = {"type": "response.created", "response": {"id": "r1", "status": "in_progress"}}
BOOKED = '{"party":4,"time":"19:30"}'
BOOKING = ToolCall("c1", "book_table", BOOKED, {"party": 4, "time": "19:30"}, 0)


def calls_of(events: list[Any]) -> list[ToolCall]:
    return [event for event in events if isinstance(event, ToolCall)]


# B01


def test_call_in_argument_events_alone(wire: Make) -> None:
    session = wire().asked()
    events = session.hear(CREATED, added("it1", "c1", "book_table"), delta("it1", BOOKED[:9]), delta("it1", BOOKED[9:]))
    assert events == [
        ToolCallStarted("c1", "book_table", 0),
        ToolCallArguments("c1", BOOKED[:9]),
        ToolCallArguments("c1", BOOKED[9:]),
    ]
    assert session.hear(arguments_done("it1", BOOKED)) == [BOOKING]
    assert session.hear(item_done(call_item("it1", "c1", "book_table", BOOKED)), done()) == [COMPLETED]


def test_call_in_the_closing_event_alone(wire: Make) -> None:
    listed = [call_item("it1", "c1", "book_table", BOOKED)]
    assert wire().asked().hear(CREATED, done(output=listed)) == [
        ToolCallStarted("c1", "book_table", 0),
        BOOKING,
        COMPLETED,
    ]


def test_call_in_both_is_one_call_even_under_another_item_id(wire: Make) -> None:
    events = (
        wire()
        .asked()
        .hear(
            CREATED,
            added("it1", "c1", "book_table"),
            arguments_done("it1", BOOKED),
            item_done(call_item("it1", "c1", "book_table", BOOKED)),
            done(output=[call_item("other", "c1", "book_table", BOOKED)]),
        )
    )
    assert calls_of(events) == [BOOKING]
    assert events[-1] == COMPLETED


def test_call_in_deltas_alone(wire: Make) -> None:
    events = wire().asked().hear(CREATED, added("it1", "c1", "book_table"), delta("it1", BOOKED), done())
    assert calls_of(events) == [BOOKING]


def test_call_in_the_item_alone(wire: Make) -> None:
    events = wire().asked().hear(CREATED, item_done(call_item("it1", "c1", "book_table", BOOKED)))
    assert events == [ToolCallStarted("c1", "book_table", 0), BOOKING]


# B02


def test_interleaved_calls_named_once(wire: Make) -> None:
    events = (
        wire()
        .asked()
        .hear(
            added("a", "c1", "get_weather", 0),
            added("b", "c2", "get_time", 1),
            delta("a", '{"city":'),
            delta("b", '{"zone":'),
            delta("a", '"Oslo"}'),
            delta("b", '"CET"}'),
            arguments_done("b", '{"zone":"CET"}'),
            arguments_done("a", '{"city":"Oslo"}'),
            done(),
        )
    )
    assert calls_of(events) == [
        ToolCall("c2", "get_time", '{"zone":"CET"}', {"zone": "CET"}, 1),
        ToolCall("c1", "get_weather", '{"city":"Oslo"}', {"city": "Oslo"}, 0),
    ]
    assert [event.call_id for event in events if isinstance(event, ToolCallArguments)] == ["c1", "c2", "c1", "c2"]


def test_interleaved_calls_whose_done_events_hold_no_arguments(wire: Make) -> None:
    events = (
        wire()
        .asked()
        .hear(
            added("a", "c1", "get_weather", 0),
            added("b", "c2", "get_time", 1),
            delta("a", '{"city":'),
            delta("b", '{"zone":"CET"}'),
            delta("a", '"Oslo"}'),
            {"type": "response.function_call_arguments.done", "response_id": "r1", "item_id": "b"},
            {"type": "response.function_call_arguments.done", "response_id": "r1", "item_id": "a"},
        )
    )
    assert [(call.name, call.arguments) for call in calls_of(events)] == [
        ("get_time", {"zone": "CET"}),
        ("get_weather", {"city": "Oslo"}),
    ]


def test_a_call_that_is_never_named_is_kept(wire: Make) -> None:
    events = wire().asked().hear(added("a", "c1", None), arguments_done("a", "{}"), done())
    assert events == [
        ToolCallStarted("c1", None, 0),
        Warned("unnamed_call", "no event named the tool call c1"),
        ToolCall("c1", None, "{}", {}, 0),
        COMPLETED,
    ]


def test_a_name_that_comes_last_is_waited_for(wire: Make) -> None:
    events = (
        wire()
        .asked()
        .hear(delta("a", "{}"), arguments_done("a", "{}"), item_done(call_item("a", "c1", "get_time", "{}")))
    )
    assert [(call.name, call.arguments) for call in calls_of(events)] == [("get_time", {})]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        ("{}", {}),
        ('{"a":{"b":[1,2.5,null,true,"☃"]}}', {"a": {"b": [1, 2.5, None, True, "☃"]}}),
        ("[1]", None),
        ('{"city":"Lima",', None),
        ('{"a":1}{"b":2}', None),
        ('{"a":"\\ud800"}', None),
        ('{"a":' * 100 + "1" + "}" * 100, None),
        ("[" * 5000, None),
    ],
)
def test_arguments_are_kept_as_received_and_read_when_they_can_be(
    wire: Make, text: str, arguments: dict[str, Any] | None
) -> None:
    item = call_item("a", "c1", "f", text)
    events = (
        wire().asked().hear(arguments_done("a", text, name="f", call_id="c1"), item_done(item), done(output=[item]))
    )
    assert calls_of(events) == [ToolCall("c1", "f", text, arguments, 0)]


def test_a_call_cut_short_is_no_complete_call(wire: Make) -> None:
    cut = call_item("a", "c1", "f", '{"a":', "incomplete")
    session = wire().asked()
    events = session.hear(
        added("a", "c1", "f"),
        delta("a", '{"a":'),
        arguments_done("a", '{"a":'),
        item_done(cut),
        done("incomplete", [cut], status_details={"type": "incomplete", "reason": "max_output_tokens"}),
    )
    assert events == [
        ToolCallStarted("c1", "f", 0),
        ToolCallArguments("c1", '{"a":'),
        AnswerEnded(AnswerEnd.LENGTH, "max_output_tokens"),
    ]


# Speech and words


@pytest.mark.parametrize(
    ("audio", "transcript", "text"),
    [
        ("response.output_audio", "response.output_audio_transcript", "response.output_text"),
        ("response.audio", "response.audio_transcript", "response.text"),
    ],
)
def test_speech_words_and_usage(wire: Make, audio: str, transcript: str, text: str) -> None:
    place = {"response_id": "r1", "item_id": "i1", "output_index": 0, "content_index": 0}
    usage = {"total_tokens": 3, "input_token_details": {"audio_tokens": 2}}
    events = (
        wire()
        .asked()
        .hear(
            CREATED,
            {"type": "response.content_part.added", **place},
            {"type": f"{transcript}.delta", "delta": "Hel", **place},
            {"type": f"{audio}.delta", "delta": "AAEC", **place},
            {"type": f"{transcript}.delta", "delta": "lo", **place},
            {"type": f"{audio}.done", **place},
            {"type": f"{transcript}.done", "transcript": "Hello", **place},
            {"type": f"{text}.delta", "delta": "Hi", **(place | {"item_id": "i2"})},
            {"type": f"{text}.done", "text": "Hi", **(place | {"item_id": "i2"})},
            done(usage=usage, output=[{"type": "message", "id": "i1", "content": [{"transcript": "Hello"}]}]),
        )
    )
    assert events == [
        TranscriptDelta("Hel"),
        AudioDelta(b"\x00\x01\x02", 24_000, "i1"),
        TranscriptDelta("lo"),
        TextDelta("Hi"),
        Usage(usage),
        COMPLETED,
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"type": "response.output_text.done", "response_id": "r1", "item_id": "i", "text": "Hi"}, TextDelta("Hi")),
        (done(output=[{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}]), TextDelta("Hi")),
        (
            done(output=[{"type": "message", "content": [{"type": "output_audio", "transcript": "Hi"}]}]),
            TranscriptDelta("Hi"),
        ),
    ],
)
def test_words_that_come_only_whole_are_not_lost(wire: Make, message: dict[str, Any], expected: Any) -> None:
    assert wire().asked().hear(CREATED, message)[0] == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"type": "input_audio_buffer.committed", "item_id": "i"}, [TurnCommitted("i")]),
        ({"type": "input_audio_buffer.speech_started", "audio_start_ms": 120}, [SpeechStarted(120)]),
        ({"type": "input_audio_buffer.speech_stopped", "audio_end_ms": True}, [SpeechStopped(None)]),
        (
            {"type": "conversation.item.input_audio_transcription.completed", "transcript": "Hello"},
            [InputTranscript("Hello")],
        ),
        (
            {"type": "conversation.item.input_audio_transcription.delta", "delta": "He"},
            [InputTranscript("He", final=False)],
        ),
        (
            {"type": "conversation.item.input_audio_transcription.failed", "error": {"code": "x", "message": "m"}},
            [Warned("input_transcription:x", "m")],
        ),
        ({"type": "rate_limits.updated", "rate_limits": []}, []),
        ({"type": "conversation.item.added", "item": {}}, []),
        ({"type": "conversation.item.created", "item": {}}, []),
        ({"type": "session.updated", "session": {}}, []),
        ({"type": "brand.new\n"}, [Unrecognised("brand.new\\n")]),
        ({"no": "type"}, [Unrecognised("message without a type: no")]),
        ({"type": 5}, [Unrecognised("message without a type: type")]),
        (b"[1]", [Unrecognised("not a JSON object: [1]")]),
        (b"\xff\x00{", [Unrecognised("not a JSON object: \\xff\\x00{")]),
        (b"{" * 100_000, [Unrecognised("not a JSON object: " + "{" * 80)]),
        ({"type": "response.output_audio.delta", "delta": "*"}, [Unrecognised("audio that is not base64")]),
        ({"type": "response.output_audio.delta"}, [Unrecognised("audio that is not base64")]),
        ({"type": "response.output_text.delta", "delta": 1}, [Unrecognised("text without a delta")]),
    ],
)
def test_other_messages(wire: Make, message: Any, expected: list[Any]) -> None:
    assert wire().asked().hear(message) == expected


# Ends of an answer


@pytest.mark.parametrize(
    ("status", "details", "expected"),
    [
        ("completed", None, [COMPLETED]),
        ("cancelled", {"reason": "client_cancelled"}, [AnswerEnded(AnswerEnd.CANCELLED, "client_cancelled")]),
        (
            "cancelled",
            {"reason": "turn_detected"},
            [Interrupted(), AnswerEnded(AnswerEnd.CANCELLED, "turn_detected")],
        ),
        ("incomplete", {"reason": "content_filter"}, [AnswerEnded(AnswerEnd.CONTENT_FILTER, "content_filter")]),
        ("incomplete", {}, [AnswerEnded(AnswerEnd.INCOMPLETE)]),
        (
            "failed",
            {"error": {"code": "rate_limit_exceeded", "message": "Please try again in 350ms."}},
            [Failed(FailureKind.RATE_LIMIT, "rate_limit_exceeded", "Please try again in 350ms.", 0.35)],
        ),
        (
            "failed",
            {"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "Spent."}},
            [Failed(FailureKind.QUOTA, "insufficient_quota", "Spent.")],
        ),
        (
            "failed",
            {"error": {"type": "server_error", "message": "Oops."}},
            [Failed(FailureKind.TRANSIENT, "server_error", "Oops.")],
        ),
        ("failed", None, [Failed(FailureKind.TRANSIENT, "failed", "the answer failed (failed)")]),
        (None, None, [Failed(FailureKind.PROTOCOL, "response_status", "response.done with status None")]),
        ("odd", None, [Failed(FailureKind.PROTOCOL, "response_status", "response.done with status 'odd'")]),
    ],
)
def test_status_of_the_answer(wire: Make, status: Any, details: Any, expected: list[Any]) -> None:
    usage = {"total_tokens": 0}
    events = wire().asked().hear(CREATED, done(status, [], status_details=details, usage=usage))
    assert events == [Usage(usage), *expected]


def test_frames_delivered_twice_count_once(wire: Make) -> None:
    script = [
        CREATED | {"event_id": "e1"},
        added("it1", "c1", "book_table") | {"event_id": "e2"},
        delta("it1", BOOKED) | {"event_id": "e3"},
        {"type": "response.output_audio.delta", "response_id": "r1", "delta": "AAAA", "event_id": "e4"},
        arguments_done("it1", BOOKED) | {"event_id": "e5"},
        done() | {"event_id": "e6"},
    ]
    once = wire().asked().hear(*script)
    assert wire().asked().hear(*[message for message in script for _ in range(2)]) == once
    assert len(calls_of(once)) == 1


def test_events_with_one_constant_id_all_count(wire: Make) -> None:
    words = [{"type": "response.output_text.delta", "delta": word, "event_id": "same"} for word in "abc"]
    assert wire().asked().hear(*words) == [TextDelta("a"), TextDelta("b"), TextDelta("c")]


def test_an_answer_before_the_turn_and_its_tail_are_not_the_answer(wire: Make) -> None:
    session = wire().ready()
    session.client.start_turn()
    greeting = {"type": "response.output_text.delta", "response_id": "r0", "delta": "Welcome"}
    assert session.hear(greeting, greeting) == [Warned("uninvited_answer", "an answer to no turn of the caller: r0")]
    session.client.commit_turn()
    assert session.hear(greeting, done(response_id="r0"), CREATED, done()) == [COMPLETED]


def test_the_end_of_a_cancelled_answer_does_not_end_the_next_turn(wire: Make) -> None:
    session = wire().asked()
    session.hear(CREATED, delta("a", "{"))
    assert orjson.loads(session.client.cancel()[0].payload) == {"type": "response.cancel", "response_id": "r1"}
    session.client.start_turn()
    session.client.commit_turn()
    events = session.hear(
        done("cancelled"),
        {"type": "response.created", "response": {"id": "r2"}},
        {"type": "response.output_text.delta", "response_id": "r2", "delta": "Yes"},
        done(response_id="r2"),
    )
    assert [event for event in events if not isinstance(event, Warned)] == [TextDelta("Yes"), COMPLETED]


def test_what_follows_the_end_is_warned_of_once(wire: Make) -> None:
    late = {"type": "response.output_text.delta", "response_id": "r1", "delta": "more"}
    assert wire().asked().hear(CREATED, done(), done(), late, late) == [
        COMPLETED,
        Warned("after_the_end", "more of an answer that was over: r1"),
    ]


# Set-up: B05, B06


def test_ready_comes_with_session_updated_alone(wire: Make) -> None:
    session = wire()
    assert session.hear({"type": "session.created", "session": {"id": "sess_9"}}) == []
    assert session.hear({"type": "session.updated", "session": {"tools": session.opened[0]["session"]["tools"]}}) == [
        SessionReady("sess_9", {"tools": ["book_table", "cancel_order"]})
    ]
    (opening,) = session.opened
    assert opening["type"] == "session.update"
    assert opening["session"] == {
        "type": "realtime",
        "instructions": "Be brief.",
        "output_modalities": ["audio"],
        "tools": [
            {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in session.setup.tools
        ],
        "audio": {
            "input": {"format": {"type": "audio/pcm", "rate": 24000}, "turn_detection": None},
            "output": {"format": {"type": "audio/pcm", "rate": 24000}},
        },
    }


def test_refused_settings_name_the_tool_and_the_lengths() -> None:
    long = ToolSpec("transfer", "x" * 2473, {"type": "object"})
    short = ToolSpec("other", "y", {"type": "object"})
    client, server = DIALECT.client(TargetSettings("m")), DIALECT.server()
    opening = client.open(Setup("", (short, short, short, long, short), 24_000))[0]
    (answer,) = server.receive(InFrame(opening.payload, False, 0)).frames
    (event,) = client.receive(InFrame(answer.payload, False, 0))[0]
    assert event == Refused(
        "string_above_max_length",
        "Invalid 'session.tools[3].description': string too long. Expected a string with maximum length 1024, "
        "but got a string with length 2473 instead.",
        "session.tools[3].description",
    )


@pytest.mark.parametrize("echo", [[], None, [{"type": "function", "name": "book_table"}]])
def test_fewer_tools_than_sent_are_refused_by_name(wire: Make, echo: Any) -> None:
    (event,) = wire().hear({"type": "session.updated", "session": {"tools": echo}})
    assert isinstance(event, Refused)
    assert event.where == "session.tools"
    assert event.message.endswith("cancel_order")


def test_settings_confirmed_otherwise_are_warned_of(wire: Make) -> None:
    vad = {"audio": {"input": {"turn_detection": {"type": "server_vad"}}}}
    assert wire().hear({"type": "session.updated", "session": vad}) == [
        Warned("tools_not_echoed", "the confirmed settings do not say which tools are known"),
        Warned("turn_detection_differs", "the confirmed settings end turns in another mode"),
        SessionReady(None, {"turn_detection": {"type": "server_vad"}}),
    ]


def error(code: str | None, kind: str = "invalid_request_error", **more: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "code": code, "message": "Text.", **more}}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (error("invalid_value", param="session.voice"), Refused("invalid_value", "Text.", "session.voice")),
        (error("beta_api_shape_disabled"), Refused("beta_api_shape_disabled", "Text.")),
        (error("insufficient_quota"), Failed(FailureKind.QUOTA, "insufficient_quota", "Text.")),
        (error("rate_limit_exceeded"), Failed(FailureKind.RATE_LIMIT, "rate_limit_exceeded", "Text.")),
        (error(None, "server_error"), Failed(FailureKind.TRANSIENT, "server_error", "Text.")),
        ({"type": "error"}, Refused("error", "no explanation given")),
    ],
)
def test_errors_before_the_settings_are_confirmed(wire: Make, message: Any, expected: Any) -> None:
    assert wire().hear(message) == [expected]


# Errors during a turn: B03, B04

EMPTY = error("input_audio_buffer_commit_empty")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            error("conversation_already_has_active_response"),
            Warned("conversation_already_has_active_response", "Text."),
        ),
        (error("response_cancel_not_active"), Warned("response_cancel_not_active", "Text.")),
        (error("anything"), Warned("anything", "Text.", spoils_turn=True)),
        (error(None, "server_error"), Warned("server_error", "Text.", spoils_turn=True)),
        (error("insufficient_quota"), Failed(FailureKind.QUOTA, "insufficient_quota", "Text.")),
        (error("session_expired"), Failed(FailureKind.TRANSIENT, "session_expired", "Text.")),
        (error("invalid_api_key"), Refused("invalid_api_key", "Text.")),
        (EMPTY, Failed(FailureKind.PROTOCOL, "input_audio_buffer_commit_empty", "Text.")),
    ],
)
def test_errors_during_a_turn(wire: Make, message: Any, expected: Any) -> None:
    assert wire().asked().hear(message) == [expected]


@pytest.mark.parametrize(
    ("kind", "expected"), [("server_error", FailureKind.TRANSIENT), ("invalid_request_error", FailureKind.PROTOCOL)]
)
def test_an_error_about_our_request_for_an_answer_fails_the_attempt(
    wire: Make, kind: str, expected: FailureKind
) -> None:
    session = wire().ready()
    _, request = (orjson.loads(frame.payload) for frame in session.client.commit_turn())
    assert request["type"] == "response.create"
    assert session.hear(error("x", kind, event_id=request["event_id"])) == [Failed(expected, "x", "Text.")]


def test_empty_commit_under_server_detection_is_a_warning_and_the_answer_counts(wire: Make) -> None:
    session = wire(mode=TurnMode.SERVER_VAD).ready()
    assert [*session.client.start_turn(), *session.client.commit_turn()] == []
    events = session.hear(
        {"type": "input_audio_buffer.speech_stopped", "audio_end_ms": 900},
        {"type": "input_audio_buffer.committed", "item_id": "i"},
        CREATED,
        EMPTY,
        item_done(call_item("a", "c1", "lookup_order", "{}")),
        done(),
    )
    assert events == [
        SpeechStopped(900),
        TurnCommitted("i"),
        Warned("input_audio_buffer_commit_empty", "Text.", spoils_turn=True),
        ToolCallStarted("c1", "lookup_order", 0),
        ToolCall("c1", "lookup_order", "{}", {}, 0),
        COMPLETED,
    ]


@pytest.mark.parametrize("before", [CREATED, {"type": "input_audio_buffer.committed", "item_id": "i"}])
def test_empty_commit_is_a_warning_once_the_turn_was_taken(wire: Make, before: Any) -> None:
    assert wire().asked().hear(before, EMPTY)[-1] == Warned(
        "input_audio_buffer_commit_empty", "Text.", spoils_turn=True
    )


def test_manual_commit_is_one_commit_and_one_request(wire: Make) -> None:
    frames = wire().ready().client.commit_turn()
    assert [orjson.loads(frame.payload)["type"] for frame in frames] == ["input_audio_buffer.commit", "response.create"]


# Closes


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (1000, "", (FailureKind.TRANSIENT, "close_1000")),
        (1001, "Your session hit the maximum duration of 60 minutes.", (FailureKind.TRANSIENT, "close_1001")),
        (None, "", (FailureKind.TRANSIENT, "closed")),
        (1006, "", (FailureKind.TRANSIENT, "close_1006")),
        (1011, "You exceeded your current quota", (FailureKind.QUOTA, "close_1011")),
        (1011, "internal", (FailureKind.TRANSIENT, "close_1011")),
        (1008, "policy", (FailureKind.PROTOCOL, "close_1008")),
        (4500, "", (FailureKind.PROTOCOL, "close_4500")),
        (1013, "rate_limit_exceeded", (FailureKind.RATE_LIMIT, "rate_limit_exceeded")),
    ],
)
def test_a_close_before_the_answer_is_over(wire: Make, code: int | None, reason: str, expected: Any) -> None:
    event = wire().asked().client.closed(ClosedBy(0, code, reason, by_peer=code is not None))
    assert isinstance(event, Failed)
    assert (event.kind, event.code) == expected
    assert reason in event.message


@pytest.mark.parametrize("code", [1003, 1007, 1008, 4000])
def test_a_close_during_the_set_up_refuses_the_target(wire: Make, code: int) -> None:
    event = wire().client.closed(ClosedBy(0, code, "", True))
    assert isinstance(event, Refused)
    assert event.code == f"close_{code}"


def test_the_beta_shape_is_refused_at_any_time(wire: Make) -> None:
    event = wire().asked().client.closed(ClosedBy(0, 4000, "invalid_request_error.beta_api_shape_disabled", True))
    assert isinstance(event, Refused)
    assert event.code == "beta_api_shape_disabled"


def test_a_close_after_the_answer_or_by_us_ends_nothing(wire: Make) -> None:
    session = wire().asked()
    assert session.client.closed(ClosedBy(0, 1000, "", by_peer=False)) is None
    session.hear(CREATED, done())
    assert session.client.closed(ClosedBy(0, 1001, "", True)) is None
    session.client.text("Another turn")
    assert session.client.closed(ClosedBy(0, 1001, "", True)) is not None


def test_modes_the_api_does_not_have_are_refused_before_the_session(wire: Make) -> None:
    client = DIALECT.client(TargetSettings("m"))
    for control, words in [
        (TurnControlSettings(TurnMode.PUSH_TEXT), "turn_control.mode"),
        (TurnControlSettings(TurnMode.SERVER_VAD, {"eagerness": "low"}), "turn_control.eagerness"),
        (TurnControlSettings(TurnMode.SEMANTIC_VAD, {"create_response": False}), "turn_control.create_response"),
        (TurnControlSettings(TurnMode.MANUAL, {"threshold": 0.1}), "turn_control.threshold"),
    ]:
        with pytest.raises(SettingsError, match=words):
            client.open(Setup("", (), 24_000, control))
