"""The rig socket's client half: settings, verbs as frames, frames as events, failures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.dialect import SettingsError, Setup, TargetSettings, ToolSpec, TurnControlSettings, TurnMode
from adapters.registry import dialect
from adapters.rig_socket import DIALECT
from adapters.rig_socket.client import RigSocketClient
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Event,
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
    ToolCallStarted,
    TranscriptDelta,
    Unrecognised,
    Usage,
    Warned,
)
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import TransportError

URL = "ws://127.0.0.1:9876/agent?token=TESTKEY-not-real-7f3a9c"
KEY = "TESTKEY-header-not-real-5e1b"
READY = {"type": "session.ready", "version": 1}


def client(**extra: Any) -> RigSocketClient:
    return RigSocketClient(TargetSettings("", URL, KEY, extra))


def receive(half: RigSocketClient, message: object) -> list[Event]:
    payload = message if isinstance(message, bytes) else json.dumps(message).encode()
    events, owed = half.receive(InFrame(payload, False, 0))
    assert not owed
    return list(events)


def ready_client(**ready: Any) -> RigSocketClient:
    half = client()
    assert isinstance(receive(half, {**READY, **ready})[0], SessionReady)
    return half


def sent(frames: Any) -> list[Any]:
    return [frame.payload if frame.binary else json.loads(frame.payload) for frame in frames]


def test_registry_entry() -> None:
    assert dialect("rig_socket") is DIALECT
    assert (DIALECT.name, DIALECT.wire_version, DIALECT.default_key_env) == ("rig_socket", 1, None)
    assert isinstance(DIALECT.client(TargetSettings("any", URL)), RigSocketClient)


@pytest.mark.parametrize(
    ("base_url", "extra", "named"),
    [
        (None, {}, "base_url: required"),
        ("http://127.0.0.1:1", {}, "base_url: must look like ws://"),
        ("ws://", {}, "base_url: must look like"),
        ("ws://h:port/", {}, "base_url: must look like"),
        ("ws://u:SECRETSECRET@h/", {}, "base_url: no user name"),
        (URL, {"input_rate": 8000}, "settings.input_rate: "),
        (URL, {"takes_setup": False}, "settings.tools: required with takes_setup: false"),
        (URL, {"tools": ["refund"]}, "settings.tools: only for an agent with tools of its own"),
        (URL, {"takes_setup": False, "tools": [""]}, "settings.tools.0: "),
        (URL, {"end_silence_s": 0.1}, "settings.end_silence_s: "),
        (URL, {"input_rate_hz": 22050}, "settings.input_rate_hz: "),
        (URL, {"input_rate_hz": "8000"}, "settings.input_rate_hz: "),
        (URL, {"headers": {"X-Key": "SECRETSECRET\r\nHost: elsewhere"}}, "settings.headers.X-Key: "),
        (URL, {"headers": {"X-Key": 7}}, "settings.headers.X-Key: "),
    ],
)
def test_wrong_settings_name_the_key_and_never_the_value(base_url: str | None, extra: Any, named: str) -> None:
    with pytest.raises(SettingsError) as raised:
        RigSocketClient(TargetSettings("", base_url, None, extra))
    assert str(raised.value).startswith(named)
    assert "SECRET" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_endpoint_keeps_secrets_out_of_label_and_repr() -> None:
    endpoint = client(headers={"X-Tenant": "acme-secret"}).endpoint()
    assert endpoint.url == URL
    assert endpoint.headers == {"X-Tenant": "acme-secret", "Authorization": f"Bearer {KEY}"}
    assert endpoint.label == "ws://127.0.0.1:9876/agent"
    assert "TESTKEY" not in repr(endpoint)


@pytest.mark.parametrize("key", ["SECRETSECRET\n", "SECRET\r\nX: y", " SECRET", "SECRÉT"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(SettingsError, match=r"^api_key_env: ") as raised:
        RigSocketClient(TargetSettings("", URL, key))
    assert "SECR" not in str(raised.value)


def test_capabilities_follow_the_settings() -> None:
    assert client().capabilities.input_rates_hz[0] == 24000
    assert client(input_rate_hz=8000).capabilities.input_rates_hz == (8000, 24000, 16000, 48000)
    assert not client().capabilities.waits_for_tool_result
    assert client(waits_for_tool_result=True).capabilities.waits_for_tool_result
    assert client().capabilities.turn_modes == {TurnMode.MANUAL, TurnMode.SERVER_VAD}


def test_an_agent_with_its_own_prompt_and_tools_is_sent_neither() -> None:
    half = client(takes_setup=False, tools=["refund"])
    able = half.capabilities
    assert (able.takes_setup, able.declared_tools, able.probe) == (False, frozenset({"refund"}), False)
    (message,) = sent(half.open(Setup("Be kind.", (ToolSpec("refund", "", {}),), 24000)))
    assert (message["instructions"], message["tools"]) == ("", [])
    assert client().capabilities.declared_tools is None


def test_full_duplex_is_declared() -> None:
    able = client(end_silence_s=1, continuous_audio=True, text_turns=False).capabilities
    assert (able.ends_by_silence_s, able.continuous_audio, able.text_twin) == (1, True, False)
    assert able.turn_modes == {TurnMode.SERVER_VAD}
    assert not able.deterministic_turns
    waits = client(end_silence_s=0.5).capabilities
    assert (waits.ends_by_silence_s, waits.continuous_audio) == (0.5, False)
    assert TurnMode.MANUAL in waits.turn_modes


def test_setup_message() -> None:
    tools = (ToolSpec("refund", "Gives money back.", {"type": "object", "properties": {}}),)
    control = TurnControlSettings(TurnMode.SERVER_VAD, {"silence_ms": 500})
    (message,) = sent(client().open(Setup("Be kind.", tools, 16000, control)))
    assert message == {
        "type": "session.setup",
        "version": 1,
        "versions": [1],
        "instructions": "Be kind.",
        "tools": [
            {"name": "refund", "description": "Gives money back.", "parameters": {"type": "object", "properties": {}}}
        ],
        "audio": {"encoding": "pcm16", "input_rate_hz": 16000, "output_rate_hz": 24000},
        "turn_control": {"mode": "server_vad", "parameters": {"silence_ms": 500}},
    }


def test_verbs() -> None:
    half = client()
    verbs = [
        *half.start_turn(),
        half.encode_silence(8000, 5),
        *half.commit_turn(),
        *half.text("Hello."),
        *half.tool_result("c1", "done"),
        *half.cancel(),
        *half.truncate(240),
        *half.close(),
    ]
    assert sent(verbs) == [
        {"type": "turn.start"},
        bytes(80),
        {"type": "turn.commit"},
        {"type": "turn.text", "text": "Hello."},
        {"type": "tool.result", "call_id": "c1", "output": "done"},
        {"type": "turn.cancel"},
        {"type": "reply.truncate", "audio_ms": 240},
        {"type": "session.close"},
    ]


@given(
    samples=st.integers(0, 3000),
    rate_hz=st.sampled_from((8000, 16000, 24000, 48000)),
    chunk_ms=st.sampled_from((1, 7, 10, 20, 100)),
)
@settings(max_examples=40)
def test_chunks_are_the_clip(samples: int, rate_hz: int, chunk_ms: int) -> None:
    pcm = bytes(i % 251 for i in range(2 * samples))
    clip = client().encode_clip(pcm, rate_hz, chunk_ms)
    assert b"".join(frame.payload for frame in clip.frames) == pcm
    assert all(frame.binary and not frame.held and len(frame.payload) % 2 == 0 for frame in clip.frames)
    assert all(len(frame.payload) == 2 * rate_hz * chunk_ms // 1000 for frame in clip.frames[:-1])
    assert (clip.samples, clip.rate_hz, clip.chunk_ms) == (samples, rate_hz, chunk_ms)


@pytest.mark.parametrize(("pcm", "rate_hz", "chunk_ms"), [(b"123", 8000, 20), (b"12", 44100, 20), (b"12", 8000, 0)])
def test_clips_that_cannot_be_sent(pcm: bytes, rate_hz: int, chunk_ms: int) -> None:
    with pytest.raises(ValueError, match="whole 16-bit samples"):
        client().encode_clip(pcm, rate_hz, chunk_ms)


CALL = {"type": "tool.call", "call_id": "a", "name": "refund", "arguments": {"amount": 5}}


@pytest.mark.parametrize(
    ("message", "events"),
    [
        ({"type": "reply.text", "text": "Yes"}, [TextDelta("Yes")]),
        ({"type": "reply.transcript", "text": "Yes"}, [TranscriptDelta("Yes")]),
        ({"type": "input.transcript", "text": "Hi"}, [InputTranscript("Hi")]),
        ({"type": "speech.started", "audio_ms": 40}, [SpeechStarted(40)]),
        ({"type": "speech.stopped"}, [SpeechStopped(None)]),
        ({"type": "interrupted"}, [Interrupted()]),
        ({"type": "usage", "counts": {"tokens": 3}}, [Usage({"tokens": 3})]),
        ({"type": "turn.end"}, [AnswerEnded(AnswerEnd.COMPLETED)]),
        ({"type": "turn.end", "reason": "length"}, [AnswerEnded(AnswerEnd.LENGTH)]),
        ({"type": "turn.end", "reason": "content_filter"}, [AnswerEnded(AnswerEnd.CONTENT_FILTER)]),
        ({"type": "turn.end", "reason": "cancelled", "x_more": 1}, [AnswerEnded(AnswerEnd.CANCELLED)]),
        (
            {"type": "turn.end", "more": 1},
            [AnswerEnded(AnswerEnd.COMPLETED), Warned("unknown_field", "turn.end has no field more; it is ignored")],
        ),
        ({"type": "turn.end", "reason": "tired"}, [AnswerEnded(AnswerEnd.INCOMPLETE, "tired")]),
        (
            CALL,
            [ToolCallStarted("a", "refund", 0), ToolCall("a", "refund", '{"amount":5}', {"amount": 5}, 0)],
        ),
        (
            CALL | {"arguments": ' {"amount": 5}'},
            [ToolCallStarted("a", "refund", 0), ToolCall("a", "refund", ' {"amount": 5}', {"amount": 5}, 0)],
        ),
        (CALL | {"arguments": ""}, [ToolCallStarted("a", "refund", 0), ToolCall("a", "refund", "", {}, 0)]),
        (CALL | {"arguments": None}, [ToolCallStarted("a", "refund", 0), ToolCall("a", "refund", "", {}, 0)]),
        (
            CALL | {"arguments": '{"amount": '},
            [ToolCallStarted("a", "refund", 0), ToolCall("a", "refund", '{"amount": ', None, 0)],
        ),
        (CALL | {"arguments": [5]}, [ToolCallStarted("a", "refund", 0), ToolCall("a", "refund", "[5]", None, 0)]),
        (
            {"type": "tool.call", "arguments": {}},
            [ToolCallStarted("unnamed-0", None, 0), ToolCall("unnamed-0", None, "{}", {}, 0)],
        ),
        (
            CALL | {"call_id": 7},
            [ToolCallStarted("7", "refund", 0), ToolCall("7", "refund", '{"amount":5}', {"amount": 5}, 0)],
        ),
        ({"type": "x_mood", "happy": True}, [Unrecognised("x_mood")]),
        (
            {"type": "mood", "happy": True},
            [Unrecognised("mood"), Warned("unknown_type", "mood: not a type of the rig socket; it is ignored")],
        ),
        (
            {"type": "error", "code": "busy", "message": "later", "kind": "rate_limit", "retry_after_s": 2},
            [Failed(FailureKind.RATE_LIMIT, "busy", "later", 2.0)],
        ),
        ({"type": "error", "kind": "quota", "code": "q", "message": "m"}, [Failed(FailureKind.QUOTA, "q", "m")]),
        ({"type": "error", "kind": "protocol", "code": "p", "message": "m"}, [Failed(FailureKind.PROTOCOL, "p", "m")]),
        ({"type": "error", "kind": "warning", "code": "w", "message": "m"}, [Warned("w", "m")]),
        (
            {"type": "error", "kind": "configuration", "code": "c", "message": "m", "where": "tools[1]"},
            [Refused("c", "m", "tools[1]")],
        ),
        (
            {"type": "error", "kind": "odd", "message": 5},
            [Failed(FailureKind.TRANSIENT, "error", "the agent reported an error without a message")],
        ),
    ],
    ids=lambda value: value.get("type") if isinstance(value, dict) else None,
)
def test_messages_as_events(message: dict[str, Any], events: list[Event]) -> None:
    assert receive(ready_client(), message) == events


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"\xff\xfe", b"[]", b'"turn.end"', b"NaN", b'{"type": 5}', b"{}", b"[" * 100_000]
)
def test_unreadable_messages_are_kept_and_warned_of(payload: bytes) -> None:
    events = receive(ready_client(), payload)
    assert [type(event) for event in events] == [Unrecognised, Warned]


def test_calls_are_numbered_and_given_once() -> None:
    half = ready_client()
    first, second = receive(half, CALL)[1], receive(half, CALL | {"call_id": "b"})[1]
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert (first.output_index, second.output_index) == (0, 1)
    (again,) = receive(half, CALL | {"name": "other"})
    assert isinstance(again, Warned)


def test_arguments_nested_too_deep_are_unreadable() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"in": deep}
    call = receive(ready_client(), CALL | {"arguments": deep})[1]
    assert isinstance(call, ToolCall)
    assert call.arguments is None


def test_audio_has_the_rate_of_session_ready() -> None:
    half = client()
    early, _ = half.receive(InFrame(b"\1\2", True, 0))
    assert isinstance(early[0], Warned)
    assert receive(half, {**READY, "agent": "mine", "output_rate_hz": 8000}) == [
        SessionReady(None, {"agent": "mine", "output_rate_hz": 8000})
    ]
    assert half.receive(InFrame(b"\1\2\3", True, 0)) == ([AudioDelta(b"\1\2\3", 8000)], ())
    assert ready_client().receive(InFrame(b"\1\2", True, 0)) == ([AudioDelta(b"\1\2", 24000)], ())


@pytest.mark.parametrize(
    ("ready", "code", "holds"),
    [
        ({"type": "session.ready", "version": 2}, "version_mismatch", ["version 2", "version 1"]),
        ({"type": "session.ready", "version": True}, "version_mismatch", ["version True", "version 1"]),
        ({"type": "session.ready"}, "version_mismatch", ["no version", "version 1"]),
        ({**READY, "output_rate_hz": 4000}, "bad_output_rate", ["8000", "48000"]),
        ({**READY, "output_rate_hz": "24000"}, "bad_output_rate", ["8000", "48000"]),
    ],
)
def test_a_session_that_cannot_be(ready: dict[str, Any], code: str, holds: list[str]) -> None:
    (event,) = receive(client(), ready)
    assert isinstance(event, Refused)
    assert event.code == code
    assert all(part in event.message for part in holds)


def test_an_error_without_a_kind_refuses_before_ready() -> None:
    (event,) = receive(client(), {"type": "error", "code": "no_tools", "message": "I need tools"})
    assert event == Refused("no_tools", "I need tools")


@pytest.mark.parametrize(
    ("status", "code", "event", "kind"),
    [
        (401, "http_401", Refused, None),
        (403, "http_403", Refused, None),
        (400, "http_400", Refused, None),
        (404, "http_404", Refused, None),
        (302, "http_302", Refused, None),
        (429, "http_429", Failed, FailureKind.RATE_LIMIT),
        (500, "http_500", Failed, FailureKind.TRANSIENT),
        (503, "http_503", Failed, FailureKind.TRANSIENT),
        (None, "refused", Failed, FailureKind.TRANSIENT),
        (None, "dns", Failed, FailureKind.TRANSIENT),
        (None, "not_websocket", Failed, FailureKind.PROTOCOL),
        (None, "bad_address", Refused, None),
    ],
)
def test_connect_failed(status: int | None, code: str, event: type, kind: FailureKind | None) -> None:
    body = f"who are you, {KEY}?\nTESTKEY-not-real-7f3a9c"
    error = TransportError("ws://127.0.0.1:9876/agent said no", code=code, status=status, body=body, retry_after_s=3)
    result = client().connect_failed(error)
    assert type(result) is event
    assert isinstance(result, Refused | Failed)
    assert result.code == code
    assert getattr(result, "kind", None) == kind
    assert "TESTKEY" not in repr(result)
    assert "\n" not in result.message
    if status == 429:
        assert isinstance(result, Failed)
        assert result.retry_after_s == 3


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        (None, FailureKind.TRANSIENT, FailureKind.TRANSIENT),
        (1005, FailureKind.TRANSIENT, FailureKind.TRANSIENT),
        (1006, FailureKind.TRANSIENT, FailureKind.TRANSIENT),
        (1011, FailureKind.TRANSIENT, FailureKind.TRANSIENT),
        (1001, FailureKind.TRANSIENT, FailureKind.TRANSIENT),
        (1000, FailureKind.PROTOCOL, FailureKind.PROTOCOL),
        (1003, None, FailureKind.PROTOCOL),
        (1007, None, FailureKind.PROTOCOL),
        (1008, None, FailureKind.PROTOCOL),
        (4400, None, FailureKind.PROTOCOL),
    ],
)
def test_closes(code: int | None, before: FailureKind | None, after: FailureKind) -> None:
    """`before` and `after` session.ready; None stands for a refusal."""
    closed = ClosedBy(0, code, f"bye {KEY}", by_peer=True)
    for half, kind in ((client(), before), (ready_client(), after)):
        event = half.closed(closed)
        assert isinstance(event, Refused if kind is None else Failed)
        assert getattr(event, "kind", None) == kind
        assert KEY not in repr(event)
        assert "bye ***" in repr(event)


def test_a_close_after_the_answer_ends_nothing() -> None:
    lost = ClosedBy(0, None, "", by_peer=True)
    half = ready_client()
    half.start_turn()
    assert half.closed(lost) is not None
    receive(half, {"type": "turn.end"})
    assert half.closed(lost) is None
    half.tool_result("a", "done")
    assert half.closed(lost) is not None
    receive(half, {"type": "error", "message": "m"})
    assert half.closed(lost) is None
    assert ready_client().closed(ClosedBy(0, 1000, "", by_peer=False)) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["session.ready", "error", "tool.call", "reply.text", "reply.transcript", "turn.end", "usage", "speech.stopped"]
)
FIELDS = st.sampled_from(
    ["version", "output_rate_hz", "kind", "code", "message", "call_id", "name", "arguments", "text", "reason", "counts"]
)


@given(frames=st.lists(st.tuples(st.binary(max_size=40), st.booleans()), max_size=5))
@settings(max_examples=60)
def test_any_bytes_become_events(frames: list[tuple[bytes, bool]]) -> None:
    half = client()
    for payload, binary in frames:
        events, owed = half.receive(InFrame(payload, binary, 0))
        assert len(events) >= 1
        assert not owed


@given(messages=st.lists(st.tuples(NAMES, st.dictionaries(FIELDS, VALUES, max_size=5)), max_size=5))
@settings(max_examples=100)
def test_any_fields_become_events(messages: list[tuple[str, dict[str, Any]]]) -> None:
    half = client()
    for name, fields in messages:
        assert receive(half, {**fields, "type": name})


def test_every_frame_is_whole_json() -> None:
    frames: list[OutFrame] = [*client().open(Setup("é\u2028", (), 24000)), *client().text("“é”")]
    assert [json.loads(frame.payload)["type"] for frame in frames] == ["session.setup", "turn.text"]
