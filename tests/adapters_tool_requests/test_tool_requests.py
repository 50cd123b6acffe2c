"""Requests seen beside the connection, as calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.dialect import SettingsError
from adapters.tool_requests import MAX_CALLS, ToolRequests, frame_of
from captures.events import ToolCall, ToolCallStarted, TranscriptDelta, Unrecognised, Warned
from captures.frames import InFrame

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcnametool", max_size=6), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def webhook(**more: Any) -> ToolRequests:
    return ToolRequests({"webhook": more})


def call_of(requests: ToolRequests, **request: Any) -> ToolCall:
    events = requests.events(frame_of("webhook", {"method": "POST", "path": "/tools", **request}, None, 5))
    assert events is not None
    started, call = events
    assert isinstance(started, ToolCallStarted)
    assert isinstance(call, ToolCall)
    assert (started.call_id, started.name) == (call.call_id, call.name)
    return call


@pytest.mark.parametrize(
    ("request_", "name", "arguments"),
    [
        ({"body": {"name": "pay", "arguments": {"amount": 40}}}, "pay", {"amount": 40}),
        ({"body": {"tool": "pay", "args": {"amount": 40}, "call_sid": "CA1"}}, "pay", {"amount": 40}),
        ({"body": {"name": "pay", "arguments": '{"amount": 40}'}}, "pay", {"amount": 40}),
        ({"body": {"function": {"name": "pay", "arguments": '{"amount": 40}'}}}, "pay", {"amount": 40}),
        ({"body": {"name": "hang_up", "arguments": {}}}, "hang_up", {}),
        ({"body": {"name": "hang_up"}}, "hang_up", {}),
        ({"below": "pay", "body": {"amount": 40, "CallSid": "CA1"}}, "pay", {"amount": 40}),
        ({"below": "hang_up", "body": None}, "hang_up", {}),
        ({"body": {"name": "pay", "arguments": '{"amount": '}}, "pay", None),
        ({"body": {"name": "pay", "arguments": [1]}}, "pay", None),
        ({"body": "not json"}, None, None),
    ],
)
def test_a_request_is_a_call(request_: dict[str, Any], name: str | None, arguments: Any) -> None:
    call = call_of(webhook(), **request_)
    assert (call.name, call.arguments, call.output_index) == (name, arguments, 0)


def test_expressions_say_where_its_parts_are() -> None:
    requests = webhook(name="body.fn", arguments="body.data.values", call_id="body.meta.sid")
    request = {"body": {"fn": "pay", "data": {"values": {"amount": 1}}, "meta": {"sid": "CA9"}, "name": "other"}}
    call = call_of(requests, **request)
    assert (call.name, call.arguments, requests.call_id_of(request)) == ("pay", {"amount": 1}, "CA9")


@pytest.mark.parametrize(
    "request_",
    [
        {"body": {"call_sid": "CA7"}},
        {"body": {}, "query": {"CallSid": "CA7"}},
        {"body": None, "headers": {"x-call-sid": "CA7"}},
    ],
)
def test_the_call_it_belongs_to_is_found_where_it_usually_stands(request_: dict[str, Any]) -> None:
    assert webhook().call_id_of(request_) == "CA7"


def test_a_request_sent_again_is_one_call() -> None:
    requests = webhook()
    body = {"name": "pay", "arguments": {}, "tool_call_id": "t1"}
    assert call_of(requests, body=body).call_id == "t1"
    again = requests.events(frame_of("webhook", {"body": body}, None, 9))
    assert again == [Warned("repeated_call", "call t1 came again; only the first counts")]
    assert call_of(requests, body={"name": "pay", "tool_call_id": "t2"}).output_index == 1


def test_calls_without_an_id_are_told_apart() -> None:
    requests = webhook()
    first, second = (call_of(requests, body={"name": "pay", "arguments": {}}) for _ in range(2))
    assert (first.call_id, second.call_id) == ("request-0", "request-1")


def test_a_log_line_is_a_call_or_words_or_nobodys() -> None:
    requests = ToolRequests({"log": {"path": "a.jsonl", "name": "tool", "arguments": "args", "transcript": "said"}})
    assert not requests.concerns({"body": {"level": "info"}})
    assert requests.concerns({"body": {"said": "Good day"}})
    assert requests.events(frame_of("log", {"body": {"said": "Good day"}}, None, 1)) == [TranscriptDelta("Good day")]
    events = requests.events(frame_of("log", {"body": {"tool": "pay", "args": {"amount": 2}}}, None, 2))
    assert events is not None
    assert events[1] == ToolCall("request-0", "pay", '{"amount":2}', {"amount": 2}, 0)


def test_the_result_is_the_tools_own_or_that_of_all() -> None:
    requests = webhook(results={"pay": {"paid": True}, "*": {"ok": 1}})
    assert (requests.result_of("pay"), requests.result_of("other"), requests.result_of(None)) == (
        {"paid": True}, {"ok": 1}, {"ok": 1},
    )  # fmt: skip
    assert webhook().result_of("pay") == {"status": "ok"}


def test_what_is_no_request_is_left_to_the_dialect() -> None:
    requests = webhook()
    assert requests.events(InFrame(b'{"event": "media"}', False, 1)) is None
    assert requests.events(InFrame(b"\xff\xfe", True, 1)) is None
    assert requests.events(InFrame(b'{"event": "rig.tool_request"}', False, 1)) == [
        Unrecognised("a tool request without content")
    ]


@given(JSON)
def test_no_body_raises_and_every_call_is_kept(body: Any) -> None:
    requests = webhook()
    events = requests.events(frame_of("webhook", {"method": "POST", "body": body}, None, 1))
    assert events is not None
    assert events
    call = events[-1]
    assert isinstance(call, ToolCall)
    assert call.arguments is None or json.loads(call.arguments_json or "{}") == call.arguments


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_raise(payload: bytes, binary: bool) -> None:
    for framed in (payload, b'{"event": "rig.tool_request", "request": ' + payload):
        events = webhook().events(InFrame(framed, binary, 1))
        assert events is None or events


def test_calls_are_bounded() -> None:
    requests = webhook()
    for _ in range(MAX_CALLS):
        call_of(requests, body={"name": "pay"})
    over = requests.events(frame_of("webhook", {"body": {"name": "pay"}}, None, 1))
    assert over == [Warned("too_many_calls", "more than 128 calls came; the others are left out")]


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        (None, "settings.tool_calls: must be a mapping with one of webhook, log and none"),
        ({}, "settings.tool_calls: give exactly one of webhook, log and none (there is nothing)"),
        ({"none": True, "webhook": {}}, "exactly one of webhook, log and none (there is webhook and none)"),
        ({"webhook": {"lisen": "x"}}, "settings.tool_calls.webhook.lisen: Extra inputs are not permitted"),
        ({"webhook": {"name": "body."}}, "settings.tool_calls.webhook.name: 'body.' is not a JMESPath expression"),
        ({"webhook": {"listen": "0.0.0.0:8790"}}, "others can reach 0.0.0.0:8790; add token: ${NAME}"),
        ({"webhook": {"listen": "example.org:80"}}, "others can reach example.org:80; add token: ${NAME}"),
        ({"webhook": {"listen": "127.0.0.1:99999"}}, "settings.tool_calls.webhook.listen: a port is at most 65535"),
        ({"log": {"path": "a.jsonl"}}, "settings.tool_calls.log.name: Field required"),
    ],
)
def test_a_wrong_setting_is_named(given_: Any, told: str) -> None:
    with pytest.raises(SettingsError) as error:
        ToolRequests(given_)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_an_open_address_needs_a_token_and_the_token_is_not_shown() -> None:
    requests = webhook(listen="0.0.0.0:8790", token="a-secret-token")
    assert requests.webhook is not None
    assert requests.webhook.token == "a-secret-token"
    assert "a-secret-token" not in repr(requests.webhook)
