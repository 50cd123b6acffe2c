"""The client half of OpenAI Live by itself: what each message means, and that none can break it."""

from __future__ import annotations

import base64
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.dialect import SettingsError, TargetSettings, TurnControlSettings, TurnMode
from adapters.openai_live import DIALECT
from captures import events as ev
from captures.frames import ClosedBy, InFrame
from transports.transport import TransportError

STARTED = {"type": "session.started", "event_id": "e0", "session": {"id": "live_1", "model": "gpt-live-1"}}


def tell(client, *messages):
    found = []
    for message in messages:
        payload = message if isinstance(message, bytes) else orjson.dumps(message)
        found += client.receive(InFrame(payload, False, 0))[0]
    return found


def nested(kind, delegation_id="d1", **fields):
    return {"type": "response.event", "delegation_id": delegation_id, "event": {"type": kind, **fields}}


def call_item(call_id, name, arguments, status="completed"):
    item = {"type": "function_call", "id": f"i_{call_id}", "call_id": call_id, "name": name, "arguments": arguments}
    return {**item, "status": status}


def created(delegation_id, target="responses"):
    delegation = {"id": delegation_id, "type": "delegation", "target": target}
    return {"type": "session.delegation.created", "delegation": delegation, "offset_ms": 5}


def test_the_session_starts_with_the_clients_message_and_tools_sit_in_the_delegation(client, setup):
    [frame] = client(reasoning_effort="low", tool_choice="required", voice="marin").open(setup)
    message = orjson.loads(frame.payload)
    assert message["type"] == "session.start"
    session = message["session"]
    assert session["model"] == "gpt-live-1"
    assert session["audio"] == {"format": {"type": "audio/pcm", "rate": 24_000}, "output": {"voice": "marin"}}
    backend = session["delegation"]["responses"]
    assert [tool["name"] for tool in backend["tools"]] == ["pay_bill", "escalate"]
    assert backend["tools"][0]["type"] == "function"
    assert (backend["reasoning"], backend["tool_choice"]) == ({"effort": "low"}, "required")
    assert session["instructions"] == backend["instructions"] == setup.instructions


def test_what_the_protocol_cannot_do_is_declared(client):
    able = client(end_silence_s=2).capabilities
    assert not able.text_twin
    assert not able.deterministic_turns
    assert able.turn_modes == {TurnMode.SERVER_VAD}
    assert (able.continuous_audio, able.ends_by_silence_s) == (True, 2)


def test_settings_are_checked_by_name():
    def make(extra, url=None):
        return DIALECT.client(TargetSettings("gpt-live-1", url, None, extra))

    for extra, named in [
        ({}, "settings.delegate_model"),
        ({"delegate_model": "m", "tempo": 1}, "settings.tempo"),
        ({"delegate_model": "m", "rate_hz": 8000}, "settings.rate_hz"),
    ]:
        with pytest.raises(SettingsError, match=named):
            make(extra)
    with pytest.raises(SettingsError, match="base_url"):
        make({"delegate_model": "m"}, "ftp://host/")


def test_turn_control_has_no_other_mode_and_no_parameters(client, setup):
    for control in (TurnControlSettings(), TurnControlSettings(TurnMode.SERVER_VAD, {"threshold": 0.5})):
        with pytest.raises(SettingsError, match="turn_control"):
            client().open(replace(setup, turn_control=control))


def test_the_key_is_in_a_header_and_nowhere_else(client):
    half = client()
    endpoint = half.endpoint()
    assert endpoint.headers["Authorization"] == "Bearer sk-secret-key"
    assert "sk-secret-key" not in f"{endpoint!r} {half!r}"
    error = TransportError("x", code="http_400", status=400, body='{"error":{"message":"bad sk-secret-key"}}')
    assert "sk-secret-key" not in repr(half.connect_failed(error))
    message = {"type": "error", "error": {"type": "t", "code": "c", "message": "bad sk-secret-key"}}
    assert "sk-secret-key" not in repr(tell(half, message))


def test_calls_come_from_one_level_down_and_open_work_is_told(client):
    events = tell(
        client(),
        STARTED,
        created("d1"),
        nested("response.output_item.added", output_index=0, item=call_item("c1", "pay_bill", "", "in_progress")),
        nested("response.function_call_arguments.delta", item_id="i_c1", output_index=0, delta='{"amount"'),
        nested("response.function_call_arguments.delta", item_id="i_c1", output_index=0, delta=":1}"),
        nested("response.function_call_arguments.done", item_id="i_c1", output_index=0, arguments='{"amount":1}'),
        nested("response.output_item.done", output_index=0, item=call_item("c1", "pay_bill", '{"amount":1}')),
        nested("response.completed", response={"status": "completed", "usage": {"total_tokens": 9}}),
    )
    assert [type(one).__name__ for one in events] == [
        "SessionReady",
        "Delegated",
        "ToolCallStarted",
        "ToolCallArguments",
        "ToolCallArguments",
        "ToolCall",
        "Delegated",
        "Usage",
    ]
    assert events[5] == ev.ToolCall("c1", "pay_bill", '{"amount":1}', {"amount": 1}, 0)
    assert [one.open for one in events if isinstance(one, ev.Delegated)] == [True, False]
    assert events[-1].counts == {"delegated": [{"total_tokens": 9}]}


def test_calls_of_two_delegations_interleaved_keep_their_order(client):
    events = tell(
        client(),
        created("d1"),
        created("d2"),
        nested("response.output_item.done", "d2", output_index=0, item=call_item("c2", "escalate", "{}")),
        nested("response.output_item.done", "d1", output_index=1, item=call_item("c1", "pay_bill", "{}")),
    )
    calls = sorted((one for one in events if isinstance(one, ev.ToolCall)), key=lambda one: one.output_index)
    assert [one.name for one in calls] == ["pay_bill", "escalate"]


def test_a_call_cut_short_is_announced_and_never_complete(client):
    cut = call_item("c1", "pay_bill", '{"amou', "incomplete")
    events = tell(
        client(),
        created("d1"),
        nested("response.output_item.added", output_index=0, item=call_item("c1", "pay_bill", "", "in_progress")),
        nested("response.output_item.done", output_index=0, item=cut),
        nested("response.incomplete", response={"incomplete_details": {"reason": "max_output_tokens"}}),
    )
    assert not any(isinstance(one, ev.ToolCall) for one in events)
    assert events[-1] == ev.AnswerEnded(ev.AnswerEnd.LENGTH, "max_output_tokens")


def test_the_request_to_go_on_waits_for_all_results_and_for_the_backend(client):
    half = client()
    tell(
        half,
        created("d1"),
        nested("response.output_item.done", output_index=0, item=call_item("c1", "pay_bill", "{}")),
        nested("response.output_item.done", output_index=1, item=call_item("c2", "escalate", "{}")),
    )
    kinds = [[orjson.loads(frame.payload)["type"] for frame in half.tool_result(one, "ok")] for one in ("c1", "c2")]
    assert kinds == [["response.item.create"], ["response.item.create"]]
    _, owed = half.receive(InFrame(orjson.dumps(nested("response.completed", response={})), False, 0))
    assert [orjson.loads(frame.payload)["type"] for frame in owed] == ["response.create"]


def test_work_for_the_application_is_not_waited_for(client):
    [event] = tell(client(), created("d1", "client"))
    assert isinstance(event, ev.Warned)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"type": "session.closed", "reason": "expired"}, ev.Failed),
        ({"type": "session.closed", "reason": "content"}, ev.AnswerEnded),
        ({"type": "session.output_audio.delta", "delta": "!"}, ev.Unrecognised),
        ({"type": "session.novelty"}, ev.Unrecognised),
        ({"type": "error", "error": {"code": "unknown_parameter", "message": "m", "param": "session.x"}}, ev.Refused),
        ({"type": "error", "error": {"code": "credit_balance_exhausted", "message": "m"}}, ev.Failed),
    ],
)
def test_what_single_messages_mean_before_the_start(client, message, expected):
    [event] = tell(client(), message)
    assert isinstance(event, expected)


def test_after_the_start_an_error_is_a_complaint_and_duplicates_count_once(client):
    complaint = {"type": "error", "event_id": "e9", "error": {"code": "unknown_parameter", "message": "m"}}
    events = tell(client(), STARTED, complaint, complaint)
    assert [type(one).__name__ for one in events] == ["SessionReady", "Warned"]


def test_a_started_session_without_our_tools_is_refused(client, setup):
    half = client()
    half.open(setup)
    delegation = {"type": "responses", "responses": {"model": "b", "tools": [{"name": "escalate"}]}}
    [event] = tell(half, {"type": "session.started", "session": {"id": "s", "delegation": delegation}})
    assert isinstance(event, ev.Refused)
    assert "pay_bill" in event.message


def test_closes_by_their_meaning(client):
    half = client()
    assert half.closed(ClosedBy(0, 1000, "", by_peer=False)) is None
    assert isinstance(half.closed(ClosedBy(0, 1008, "policy", by_peer=True)), ev.Refused)
    tell(half, STARTED)
    assert half.closed(ClosedBy(0, 1001, "bye", by_peer=True)).kind is ev.FailureKind.TRANSIENT
    assert half.closed(ClosedBy(0, 1011, "quota used up", by_peer=True)).kind is ev.FailureKind.QUOTA


def test_clip_frames_hold_the_clip(client, voice):
    pcm = voice(0.05)
    clip = client().encode_clip(pcm, 24_000, 20)
    pieces = [base64.b64decode(orjson.loads(frame.payload)["audio"]) for frame in clip.frames]
    assert b"".join(pieces) == pcm
    assert [len(piece) for piece in pieces] == [960, 960, 480]


_KINDS = [
    "session.started",
    "session.output_audio.delta",
    "session.input_transcript.delta",
    "session.output_transcript.delta",
    "session.delegation.created",
    "session.usage.updated",
    "session.closed",
    "error",
]
_NESTED = ["response.created", "response.output_item.added", "response.output_item.done", "response.completed"] + [
    f"response.function_call_arguments.{part}" for part in ("delta", "done")
]
_KEYS = ["session", "delta", "delegation", "id", "target", "usage", "error", "item", "response", "arguments", "name"]
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8) | st.just("function_call"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*_KEYS, "type"]), inner, max_size=4),
    max_leaves=12,
)
_objects = st.dictionaries(st.sampled_from(_KEYS), _values, max_size=5)
_plain = st.builds(lambda kind, rest: {**rest, "type": kind}, st.sampled_from(_KINDS), _objects)
_wrapped = st.builds(
    lambda kind, work, rest: {"type": "response.event", "delegation_id": work, "event": {**rest, "type": kind}},
    st.sampled_from([*_NESTED, "response.failed", "response.incomplete", "error"]),
    _values,
    _objects,
)


@given(st.lists(st.binary(max_size=30) | st.builds(orjson.dumps, _plain | _wrapped), max_size=8))
def test_no_bytes_can_break_the_client(payloads):
    half = DIALECT.client(TargetSettings("gpt-live-1", "ws://127.0.0.1:9/", None, {"delegate_model": "b"}))
    for payload in payloads:
        events, _ = half.receive(InFrame(payload, False, 0))
        assert all(isinstance(event, ev.Event) for event in events)


@given(st.lists(st.binary(max_size=30) | st.builds(orjson.dumps, _plain | _wrapped), max_size=8))
def test_no_bytes_can_break_the_server(payloads):
    server = DIALECT.server()
    for payload in payloads:
        step = server.receive(InFrame(payload, False, 0))
        assert step.frames
