"""The client half of Nova Sonic by itself: what each event means (B12), and that none can break it."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.dialect import SettingsError, TargetSettings, TurnControlSettings, TurnMode
from adapters.nova_sonic import DIALECT
from adapters.server import Reply, ReplyCall
from captures import events as ev
from captures.frames import ClosedBy, InFrame
from transports.transport import TransportError


def tell(half, *messages):
    found = []
    for message in messages:
        payload = message if isinstance(message, bytes) else orjson.dumps(message)
        found += half.receive(InFrame(payload, False, 0))[0]
    return found


def event(name, **fields):
    return {"event": {name: fields}}


def block(content_id, kind, role, stage=None):
    fields = {} if stage is None else {"additionalModelFields": orjson.dumps({"generationStage": stage}).decode()}
    return event("contentStart", contentId=content_id, type=kind, role=role, **fields)


def said(content_id, text, stage="FINAL", role="ASSISTANT"):
    return [block(content_id, "TEXT", role, stage), event("textOutput", contentId=content_id, role=role, content=text)]


def ended(kind, reason, content_id="x"):
    return event("contentEnd", contentId=content_id, type=kind, stopReason=reason)


def tool_use(**arguments):
    return [
        block("b1", "TOOL", "TOOL"),
        event("toolUse", contentId="b1", toolName="forecast", toolUseId="t1", **arguments),
        ended("TOOL", "TOOL_USE", "b1"),
    ]


LIMA = {"city": "Lima", "days": 2}


@pytest.mark.parametrize(
    ("fields", "arguments"),
    [
        ({"content": '{"city":"Lima","days":2}'}, LIMA),
        ({"input": LIMA}, LIMA),
        ({"content": "", "input": LIMA}, LIMA),
        ({"content": LIMA}, LIMA),
        ({"content": orjson.dumps(orjson.dumps(LIMA).decode()).decode()}, LIMA),
        ({"content": ""}, {}),
        ({}, {}),
        ({"content": '{"city":"Lima",'}, None),
        ({"content": "[1]"}, None),
        ({"content": 7}, None),
    ],
)
def test_b12_arguments_are_read_wherever_they_are(client, fields, arguments):
    events = tell(client(), *tool_use(**fields), *said("b2", "One moment"))
    started, call, words = events
    assert started == ev.ToolCallStarted("t1", "forecast", 0)
    assert (call.call_id, call.name, call.arguments) == ("t1", "forecast", arguments)
    if arguments is None and isinstance(fields["content"], str):
        assert call.arguments_json == fields["content"]
    assert words == ev.TranscriptDelta("One moment")


def test_a_repeated_tool_use_counts_once_and_a_second_call_comes_second(client):
    other = event("toolUse", toolName="escalate", toolUseId="t2", content="{}")
    calls = [one for one in tell(client(), *tool_use(), *tool_use(), other) if isinstance(one, ev.ToolCall)]
    assert [(one.name, one.output_index) for one in calls] == [("forecast", 0), ("escalate", 1)]


def test_the_plan_is_not_what_was_said(client):
    events = tell(
        client(),
        *said("b0", "the weather", "FINAL", "USER"),
        *said("b1", "It will rain", "SPECULATIVE"),
        block("b2", "AUDIO", "ASSISTANT"),
        event("audioOutput", contentId="b2", content="AQID"),
        ended("AUDIO", "PARTIAL_TURN"),
        ended("AUDIO", "END_TURN"),
        *said("b3", "It will"),
        *said("b4", "be sunny"),
        event("completionEnd", stopReason="END_TURN"),
    )
    assert events == [
        ev.InputTranscript("the weather"),
        ev.AudioDelta(b"\x01\x02\x03", 24_000, "b2"),
        ev.AnswerEnded(ev.AnswerEnd.COMPLETED),
        ev.TranscriptDelta("It will"),
        ev.TranscriptDelta(" be sunny"),
    ]


def test_the_plan_stands_in_with_a_warning_when_the_spoken_words_never_come(client):
    events = tell(client(), *said("b1", "It will rain", "SPECULATIVE"), event("completionEnd", stopReason="END_TURN"))
    assert [type(one).__name__ for one in events] == ["Warned", "TranscriptDelta", "AnswerEnded"]


def test_an_interrupted_speech_ends_no_turn(client):
    marker = event("textOutput", contentId="b1", role="ASSISTANT", content='{ "interrupted" : true }')
    events = tell(
        client(),
        block("b1", "TEXT", "ASSISTANT", "FINAL"),
        marker,
        ended("TEXT", "INTERRUPTED"),
        ended("AUDIO", "END_TURN"),
        block("b2", "AUDIO", "ASSISTANT"),
        ended("AUDIO", "END_TURN"),
    )
    assert events == [ev.Interrupted(), ev.AnswerEnded(ev.AnswerEnd.COMPLETED)]


def test_set_up_has_schemas_and_results_as_json_text(client, setup_of):
    half = client(tool_choice="any", voice="tiffany")
    messages = [orjson.loads(frame.payload)["event"] for frame in half.open(setup_of(sensitivity="LOW"))]
    start, prompt = messages[0]["sessionStart"], messages[1]["promptStart"]
    assert start["turnDetectionConfiguration"] == {"endpointingSensitivity": "LOW"}
    spec = prompt["toolConfiguration"]["tools"][0]["toolSpec"]
    assert orjson.loads(spec["inputSchema"]["json"])["properties"] == {"city": {"type": "string"}}
    assert prompt["toolConfiguration"]["toolChoice"] == {"any": {}}
    assert prompt["audioOutputConfiguration"]["voiceId"] == "tiffany"
    assert messages[3]["textInput"]["content"] == "You answer the phone."
    for told, sent in [("sunny", {"result": "sunny"}), ('{"sky":"blue"}', {"sky": "blue"})]:
        result = orjson.loads(half.tool_result("t1", told)[1].payload)["event"]["toolResult"]
        assert orjson.loads(result["content"]) == sent


def test_generations_differ_as_declared(client, setup_of):
    first, second = client("amazon.nova-sonic-v1:0"), client()
    assert (first.capabilities.text_twin, second.capabilities.text_twin) == (False, True)
    start = orjson.loads(first.open(setup_of(sensitivity="HIGH"))[0].payload)["event"]["sessionStart"]
    assert start["endpointingSensitivity"] == "HIGH"
    assert not second.capabilities.deterministic_turns
    assert second.capabilities.turn_modes == {TurnMode.SERVER_VAD}


def test_settings_are_checked_by_name(client, setup_of):
    def make(extra, url=None, model="m"):
        return DIALECT.client(TargetSettings(model, url, None, extra))

    for extra, url, model, named in [
        ({"tempo": 1}, None, "m", "settings.tempo"),
        ({"region": "moon"}, None, "m", "settings.region"),
        ({"access_key_env": "A B"}, None, "m", "settings.access_key_env"),
        ({}, None, "", "model"),
        ({}, "ws://127.0.0.1:1/", "m", "settings.stream"),
        ({"stream": "websocket"}, None, "m", "base_url"),
    ]:
        with pytest.raises(SettingsError, match=named):
            make(extra, url, model)
    for control in (TurnControlSettings(), TurnControlSettings(TurnMode.SERVER_VAD, {"threshold": 1})):
        with pytest.raises(SettingsError, match="turn_control"):
            client().open(replace(setup_of(), turn_control=control))


def test_the_secret_is_shown_nowhere(client):
    half = client()
    assert half.endpoint().label.startswith("https://bedrock-runtime.us-east-1.amazonaws.com/model/")
    assert "planted-secret" not in f"{half.endpoint()!r} {half!r} {half.endpoint().label}"
    told = half.connect_failed(TransportError("bad planted-secret", code="SmithyError"))
    assert "planted-secret" not in repr(told)
    fault = {"exception": {"type": "validationException", "message": "bad planted-secret"}}
    assert "planted-secret" not in repr(tell(half, fault))


@pytest.mark.parametrize(
    ("name", "message", "kind"),
    [
        ("throttlingException", "slow down", ev.FailureKind.RATE_LIMIT),
        ("ServiceQuotaExceededException", "used up", ev.FailureKind.QUOTA),
        ("modelTimeoutException", "Model has timed out", ev.FailureKind.TRANSIENT),
        ("ModelStreamErrorException", "InternalErrorCode=531::RST_STREAM closed", ev.FailureKind.TRANSIENT),
        ("validationException", "Tool Response parsing error", ev.FailureKind.TRANSIENT),
        ("validationException", "Invalid event bytes", None),
        ("AccessDeniedException", "not allowed", None),
        ("sdk_missing", "install it", None),
    ],
)
def test_exceptions_by_their_meaning(client, name, message, kind):
    [told] = tell(client(), {"exception": {"type": name, "message": message}})
    assert (told.kind if isinstance(told, ev.Failed) else None) == kind
    assert told.code == name
    again = client().connect_failed(TransportError(message, code=name))
    assert type(again) is type(told)


def test_a_validation_fault_in_the_middle_of_an_answer_concerns_this_cell_alone(client):
    events = tell(client(), *tool_use(), {"exception": {"type": "validationException", "message": "no"}})
    assert events[-1].kind is ev.FailureKind.PROTOCOL


def test_closes_by_their_meaning(client):
    half = client()
    assert half.closed(ClosedBy(0, 1000, "", by_peer=False)) is None
    assert half.closed(ClosedBy(0, 1000, "the stream ended", by_peer=True)).kind is ev.FailureKind.TRANSIENT
    tell(half, ended("AUDIO", "END_TURN"))
    assert half.closed(ClosedBy(0, 1000, "the stream ended", by_peer=True)) is None


def test_the_server_half_refuses_what_the_vendor_refuses(client, setup_of):
    def told(*messages):
        server = DIALECT.server()
        steps = [server.receive(InFrame(orjson.dumps(message), False, 0)) for message in messages]
        [frame] = steps[-1].frames
        assert steps[-1].close is not None
        return orjson.loads(frame.payload)["exception"]["message"]

    opened = [orjson.loads(frame.payload) for frame in client().open(setup_of())]
    assert "sessionStart" in told(opened[1])
    assert "promptStart" in told(opened[0], opened[2])
    history = event("contentStart", promptName="rig", contentName="h", type="TEXT", role="ASSISTANT")
    assert "history" in told(*opened, history)
    as_object = orjson.loads(orjson.dumps(opened[1]))
    as_object["event"]["promptStart"]["toolConfiguration"]["tools"][0]["toolSpec"]["inputSchema"]["json"] = {}
    assert "JSON string" in told(opened[0], as_object)


def test_a_call_cut_short_is_kept_as_text_and_repeated_words_count_once(client, setup_of):
    server, half = DIALECT.server(), client()
    for frame in half.open(setup_of()):
        server.receive(InFrame(frame.payload, False, 0))
    reply = Reply((ReplyCall("forecast", {"city": "Lima"}),), text="One moment")
    frames = [frame for frame in server.answer_faults["cut-arguments"](server.answer(reply)) for _ in range(2)]
    events = tell(half, *(frame.payload for frame in frames))
    [call] = [one for one in events if isinstance(one, ev.ToolCall)]
    assert (call.arguments, call.arguments_json) == (None, '{"city"')
    assert [one.text for one in events if isinstance(one, ev.TranscriptDelta)] == ["One moment"]


_NAMES = ["completionStart", "contentStart", "textOutput", "audioOutput", "toolUse", "contentEnd", "completionEnd"]
_KEYS = [
    "contentId",
    "type",
    "role",
    "content",
    "input",
    "toolUseId",
    "toolName",
    "stopReason",
    "additionalModelFields",
]
_words = st.sampled_from(["AUDIO", "TEXT", "END_TURN", "INTERRUPTED", "ASSISTANT", "USER", '{"generationStage":[]}'])
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8) | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=3),
    max_leaves=10,
)
_bodies = st.dictionaries(st.sampled_from(_KEYS), _values, max_size=6)
_events = st.builds(lambda name, body: {"event": {name: body}}, st.sampled_from([*_NAMES, "usageEvent"]), _bodies)
_exceptions = st.builds(lambda name, text: {"exception": {"type": name, "message": text}}, _values, _values)


@given(st.lists(st.binary(max_size=30) | st.builds(orjson.dumps, _events | _exceptions), max_size=8))
def test_no_bytes_can_break_the_client(payloads):
    half = DIALECT.client(TargetSettings("amazon.nova-2-sonic-v1:0", None, None, {}))
    for payload in payloads:
        events, owed = half.receive(InFrame(payload, False, 0))
        assert all(isinstance(one, ev.Event) for one in events)
        assert owed == ()


_CLIENT_NAMES = ["sessionStart", "promptStart", "contentStart", "textInput", "audioInput", "toolResult", "contentEnd"]
_CLIENT_KEYS = ["promptName", "contentName", "type", "role", "content", "interactive", "toolConfiguration", "toolSpec"]
_client_bodies = st.dictionaries(st.sampled_from(_CLIENT_KEYS), _values | st.sampled_from(["a", "b"]), max_size=5)
_client_events = st.builds(
    lambda name, body: orjson.dumps({"event": {name: body}}), st.sampled_from(_CLIENT_NAMES), _client_bodies
)


@given(st.lists(st.binary(max_size=30) | _client_events, max_size=8))
def test_no_bytes_can_break_the_server(payloads):
    server = DIALECT.server()
    server.receive(InFrame(b'{"event":{"sessionStart":{}}}', False, 0))
    server.receive(InFrame(b'{"event":{"promptStart":{"promptName":"p"}}}', False, 0))
    for payload in payloads:
        server.receive(InFrame(payload, False, 0))
