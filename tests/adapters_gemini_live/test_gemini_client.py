"""What the client half sends and reads: models, settings, keys, closes."""

from __future__ import annotations

import base64
import json
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.dialect import SettingsError, Setup, TargetSettings, TurnControlSettings, TurnMode
from adapters.gemini_live import DIALECT
from captures import events as ev
from captures.frames import ClosedBy, InFrame
from transports.transport import TransportError

KEY = "AIzaTESTKEYTESTKEYTESTKEY"
MODEL_2_5 = "gemini-2.5-flash-native-audio-preview-12-2025"
MODEL_3_1 = "gemini-3.1-flash-live-preview"
MODEL_3_8 = "gemini-3.8-live"
EXTENDED = "gemini-3.8-live-extended-thinking"


def target(model: str = MODEL_2_5, base_url: str | None = None, api_key: str | None = KEY, **extra: Any) -> Any:
    return DIALECT.client(TargetSettings(model, base_url, api_key, extra))


def close(code: int | None, reason: str = "", by_peer: bool = True) -> ClosedBy:
    return ClosedBy(0, code, reason, by_peer)


# --- what is sent


def test_the_setup_of_a_manual_session(gemini: Any) -> None:
    assert gemini.Wire().setup == {
        "model": f"models/{MODEL_2_5}",
        "generationConfig": {"responseModalities": ["AUDIO"]},
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "realtimeInputConfig": {"automaticActivityDetection": {"disabled": True}},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "book_table",
                        "description": "Books a table.",
                        "parameters": {"type": "OBJECT", "properties": {"party": {"type": "INTEGER"}}},
                    },
                    {"name": "hold_the_line", "description": "Waits."},
                ]
            }
        ],
        "outputAudioTranscription": {},
    }


def test_the_servers_own_detection_takes_its_parameters(gemini: Any) -> None:
    parameters = {
        "start_of_speech_sensitivity": "low",
        "silence_duration_ms": 300,
        "activity_handling": "NO_INTERRUPTION",
    }
    wire = gemini.Wire(mode=TurnMode.SERVER_VAD, parameters=parameters)
    assert wire.setup["realtimeInputConfig"] == {
        "automaticActivityDetection": {
            "startOfSpeechSensitivity": "START_SENSITIVITY_LOW",
            "silenceDurationMs": 300,
        },
        "activityHandling": "NO_INTERRUPTION",
    }
    assert [*wire.client.start_turn(), *wire.client.commit_turn()] == []


@pytest.mark.parametrize(
    ("model", "extra", "key"),
    [
        (MODEL_2_5, {}, "clientContent"),
        (MODEL_3_1, {}, "realtimeInput"),
        (MODEL_3_8, {}, "realtimeInput"),
        (MODEL_3_8, {"text_as": "client_content"}, "clientContent"),
        ("unheard-of", {}, "realtimeInput"),
    ],
)
def test_text_goes_as_the_model_answers_it(gemini: Any, model: str, extra: Any, key: str) -> None:
    (message,) = gemini.sent(gemini.Wire(model, **extra).client.text("Hello"))
    assert (
        message
        == {
            "clientContent": {
                "clientContent": {"turns": [{"role": "user", "parts": [{"text": "Hello"}]}], "turnComplete": True}
            },
            "realtimeInput": {"realtimeInput": {"text": "Hello"}},
        }[key]
    )


def test_chunks_hold_the_clip_at_16_khz() -> None:
    pcm = bytes(range(250)) * 4
    clip = target().encode_clip(pcm, 16_000, 20)
    messages = [orjson.loads(frame.payload)["realtimeInput"]["audio"] for frame in clip.frames]
    assert {message["mimeType"] for message in messages} == {"audio/pcm;rate=16000"}
    assert [len(base64.b64decode(message["data"])) for message in messages] == [640, 360]
    assert b"".join(base64.b64decode(message["data"]) for message in messages) == pcm
    with pytest.raises(ValueError, match="16000 Hz"):
        target().encode_clip(pcm, 24_000, 20)


def test_results_go_back_with_name_and_id(gemini: Any) -> None:
    wire = gemini.Wire(tool_behavior="NON_BLOCKING", result_scheduling="SILENT").asked()
    first, second = gemini.call("c1", "book_table"), gemini.call(None, "hold_the_line")
    calls = [event for event in wire.hear(first, second) if isinstance(event, ev.ToolCall)]
    sent = gemini.sent([*wire.client.tool_result("c1", '{"ok":1}'), *wire.client.tool_result(calls[1].call_id, "done")])
    assert [message["toolResponse"]["functionResponses"] for message in sent] == [
        [{"id": "c1", "name": "book_table", "response": {"ok": 1}, "scheduling": "SILENT"}],
        [{"name": "hold_the_line", "response": {"output": "done"}, "scheduling": "SILENT"}],
    ]
    assert wire.client.tool_result("c1", "{}") == ()


def test_a_withdrawn_call_needs_no_result(gemini: Any) -> None:
    wire = gemini.Wire().asked()
    wire.hear(gemini.call("c1", "book_table"))
    (warned,) = wire.hear({"toolCallCancellation": {"ids": ["c1"]}})
    assert warned == ev.Warned("tool_call_withdrawn", "the server withdrew calls: c1")
    assert wire.client.tool_result("c1", "{}") == ()


# --- keys


@pytest.mark.parametrize(
    ("extra", "key", "header", "in_query"),
    [
        ({}, KEY, ("x-goog-api-key", KEY), False),
        ({"key_in": "query"}, KEY, None, True),
        ({"key_in": "bearer"}, KEY, ("Authorization", f"Bearer {KEY}"), False),
        ({}, f"auth_tokens/{KEY}", ("Authorization", f"Token auth_tokens/{KEY}"), False),
    ],
)
def test_where_the_key_goes_and_where_it_never_shows(extra: Any, key: str, header: Any, in_query: bool) -> None:
    client = target(api_key=key, **extra)
    endpoint = client.endpoint()
    assert (header is None) or endpoint.headers[header[0]] == header[1]
    assert (f"key={KEY}" in endpoint.url) is in_query
    assert KEY not in endpoint.label
    assert KEY not in repr(endpoint)
    told = [
        client.connect_failed(TransportError(f"no {KEY}", code="refused")),
        client.connect_failed(TransportError("x", code="http_404", status=404, body=f"?key={KEY} is wrong")),
        client.connect_failed(TransportError("x", code="http_403", status=403, body=f"API key {KEY} is wrong")),
        client.closed(close(1008, f"API key not valid: {KEY}")),
        client.closed(close(1011, f"internal: {KEY}")),
        *client.receive(frame({"error": {"code": 400, "message": f"bad {KEY}"}}))[0],
    ]
    assert all(KEY not in repr(event) for event in told)


def frame(message: Any) -> Any:
    return InFrame(orjson.dumps(message), True, 0)


def test_addresses() -> None:
    path = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
    assert target().endpoint().url == f"wss://generativelanguage.googleapis.com{path}"
    token = target(api_key="auth_tokens/abc").endpoint()
    assert token.label.endswith("v1alpha.GenerativeService.BidiGenerateContentConstrained")
    local = target(base_url="https://localhost:8443").endpoint()
    assert (local.url, local.label) == (f"wss://localhost:8443{path}", f"wss://localhost:8443{path}")
    vertex = (
        "wss://europe-west4-aiplatform.googleapis.com/ws/google.cloud.aiplatform.v1.LlmBidiService/BidiGenerateContent"
    )
    assert target(base_url=vertex).endpoint().url == vertex
    for wrong in ("ftp://x", "localhost:1", "wss://user:secret@host/"):
        with pytest.raises(SettingsError, match=r"^base_url: "):
            target(base_url=wrong)


# --- settings


@pytest.mark.parametrize(
    ("model", "extra", "key"),
    [
        (MODEL_2_5, {"voices": "Kore"}, "settings.voices"),
        (MODEL_2_5, {"thinking_level": "low"}, "settings.thinking_level"),
        (MODEL_3_1, {"thinking_budget": 5}, "settings.thinking_budget"),
        (MODEL_3_1, {"affective_dialog": False}, "settings.affective_dialog"),
        (MODEL_3_1, {"tool_behavior": "NON_BLOCKING"}, "settings.tool_behavior"),
        (MODEL_3_8, {"thinking_level": "low"}, "settings.thinking_level"),
        (MODEL_3_8, {"proactive_audio": False}, "settings.proactive_audio"),
        (EXTENDED, {}, "settings.thinking_level"),
        (EXTENDED, {"thinking_level": "minimal"}, "settings.thinking_level"),
        (EXTENDED, {"thinking_level": "low", "tool_behavior": "BLOCKING"}, "settings.tool_behavior"),
        (MODEL_2_5, {"session_resumption": {"handel": "h"}}, "settings.session_resumption.handel"),
        ("", {}, "model"),
    ],
)
def test_what_a_model_refuses_is_refused_before_anything_is_sent(model: str, extra: Any, key: str) -> None:
    with pytest.raises(SettingsError, match=rf"^{key}: ") as raised:
        target(model, **extra)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("mode", "parameters", "key"),
    [
        (TurnMode.SEMANTIC_VAD, {}, "turn_control.mode"),
        (TurnMode.MANUAL, {"silence_duration_ms": 1}, "turn_control.silence_duration_ms"),
        (TurnMode.SERVER_VAD, {"eagerness": "low"}, "turn_control.eagerness"),
        (TurnMode.SERVER_VAD, {"silence_duration_ms": -1}, "turn_control.silence_duration_ms"),
    ],
)
def test_turn_control_that_the_api_does_not_have(mode: TurnMode, parameters: Any, key: str) -> None:
    with pytest.raises(SettingsError, match=rf"^{key}: "):
        target().open(Setup("", (), 16_000, TurnControlSettings(mode, parameters)))


def test_a_profile_by_name_and_its_grace() -> None:
    assert target(MODEL_2_5).capabilities.late_call_grace_s == 0
    assert target(MODEL_2_5, tool_behavior="NON_BLOCKING").capabilities.late_call_grace_s == 2
    assert target(MODEL_3_8).capabilities.late_call_grace_s == 2
    assert target(MODEL_3_8, tool_behavior="BLOCKING").capabilities.late_call_grace_s == 0
    assert target("my-tuned-model", profile="3.8", late_call_grace_s=3).capabilities.late_call_grace_s == 3
    assert target("gemini-live-2.5-flash-native-audio").text("x")[0].payload.startswith(b'{"clientContent"')


# --- what is read


def test_text_and_binary_frames_are_the_same(gemini: Any) -> None:
    for binary in (False, True):
        assert gemini.Wire().hear({"setupComplete": {"sessionId": "s1"}}, binary=binary) == [ev.SessionReady("s1")]


def test_one_message_with_several_keys(gemini: Any) -> None:
    wire = gemini.Wire().asked()
    message = gemini.content(
        modelTurn={"parts": [{"text": "thinking", "thought": True}, {"text": "Hi"}]},
        outputTranscription={"text": "Hi"},
        inputTranscription={"text": "hello"},
        turnComplete=True,
        turnCompleteReason="NEED_MORE_INPUT",
    )
    assert wire.hear(message | {"usageMetadata": {"totalTokenCount": 9}, "news": {}}) == [
        ev.Unrecognised("news"),
        ev.Usage({"totalTokenCount": 9}),
        ev.InputTranscript("hello", final=False),
        ev.TextDelta("Hi"),
        ev.TranscriptDelta("Hi"),
        ev.AnswerEnded(ev.AnswerEnd.COMPLETED, "NEED_MORE_INPUT"),
    ]


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("MALFORMED_FUNCTION_CALL", ev.AnswerEnd.INCOMPLETE),
        ("GENERATED_AUDIO_SAFETY", ev.AnswerEnd.CONTENT_FILTER),
        ("RESPONSE_REJECTED", ev.AnswerEnd.CONTENT_FILTER),
        ("TURN_COMPLETE_REASON_UNSPECIFIED", ev.AnswerEnd.COMPLETED),
    ],
)
def test_why_a_turn_ended(gemini: Any, reason: str, end: ev.AnswerEnd) -> None:
    (ended,) = gemini.Wire().asked().hear(gemini.content(turnComplete=True, turnCompleteReason=reason))
    assert ended.reason is end


def test_a_call_comes_once_and_keeps_its_number(gemini: Any) -> None:
    wire = gemini.Wire().asked()
    events = wire.hear(
        gemini.call("c1", "book_table", party=2),
        gemini.call("c1", "book_table", party=2),
        gemini.call("c2", "hold_the_line"),
    )
    assert [(event.call_id, event.output_index) for event in events] == [("c1", 0), ("c2", 1)]
    (bad,) = wire.hear({"toolCall": {"functionCalls": [{"id": "c3", "name": "f", "args": "x"}]}})
    assert (bad.arguments, bad.arguments_json) == (None, '"x"')
    (nameless,) = wire.hear({"toolCall": {"functionCalls": [{"id": "c4"}]}})
    assert (nameless.name, nameless.arguments) == (None, {})


def test_the_newest_resumable_handle_is_kept(gemini: Any) -> None:
    wire = gemini.Wire(session_resumption={})
    assert wire.setup["sessionResumption"] == {}
    for handle, resumable in (("h1", True), ("h2", True), ("h3", False)):
        wire.hear({"sessionResumptionUpdate": {"newHandle": handle, "resumable": resumable}})
    assert wire.client.resumption_handle == "h2"
    again = gemini.Wire(session_resumption={"handle": wire.client.resumption_handle})
    assert again.setup["sessionResumption"] == {"handle": "h2"}


def test_an_answer_that_goes_on_while_the_caller_speaks_again_is_not_the_next_one(gemini: Any) -> None:
    wire = gemini.Wire().asked()
    wire.hear(gemini.audio(0.1))
    wire.client.start_turn()
    events = wire.hear(gemini.audio(0.1), gemini.audio(0.1), gemini.call("c1", "book_table"))
    assert events == [ev.Warned("uninvited_answer", "the model went on with an earlier turn while the caller spoke")]
    wire.client.commit_turn()
    assert isinstance(wire.hear(gemini.call("c2", "book_table"))[0], ev.ToolCall)


# --- failures


@pytest.mark.parametrize(
    ("ready", "code", "reason", "expected"),
    [
        (False, 1007, "Invalid JSON payload received. Unknown name", "refused"),
        (False, 1008, "models/x is not found for API version v1beta", "refused"),
        (False, 1008, "Operation is not implemented, or supported, or enabled.", "refused"),
        (False, 1007, "API key not valid. Please pass a valid API key.", "refused"),
        (True, 1007, "API key expired. Please renew the API key.", "refused"),
        (True, 1007, "Request contains an invalid argument.", "protocol"),
        (True, 1008, "Operation is not implemented, or supported, or enabled.", "transient"),
        (True, 1011, "You exceeded your current quota, please check your plan and billing", "quota"),
        (False, 1000, "You exceeded your current quota", "quota"),
        (True, 1011, "Resource exhausted", "rate_limit"),
        (True, 1011, "Internal error encountered.", "transient"),
        (True, 1011, "Deadline expired before operation could complete.", "transient"),
        (True, 1001, "", "transient"),
        (True, None, "", "transient"),
        (False, 4000, "", "refused"),
    ],
)
def test_a_close_is_read_by_its_reason(gemini: Any, ready: bool, code: int, reason: str, expected: str) -> None:
    wire = gemini.Wire()
    if ready:
        wire.asked()
    event = wire.client.closed(close(code, reason))
    assert ("refused" if isinstance(event, ev.Refused) else event.kind.value) == expected
    assert event.code == ("closed" if code is None else f"close_{code}")
    assert reason in event.message


def test_a_close_after_the_answer_ends_nothing(gemini: Any) -> None:
    wire = gemini.Wire().asked()
    wire.hear(gemini.content(turnComplete=True))
    assert wire.client.closed(close(1011, "x")) is None


@pytest.mark.parametrize(
    ("status", "body", "expected", "wait_s"),
    [
        (400, {"message": "API key not valid.", "status": "INVALID_ARGUMENT"}, "refused", None),
        (401, {}, "refused", None),
        (403, {"message": "Permission denied", "status": "PERMISSION_DENIED"}, "refused", None),
        (404, {"message": "not there"}, "refused", None),
        (429, {"message": "You exceeded your current quota"}, "quota", None),
        (
            429,
            {
                "message": "quota",
                "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}],
            },
            "rate_limit",
            7.0,
        ),
        (429, {"message": "slow down"}, "rate_limit", None),
        (500, {}, "transient", None),
        (503, {}, "transient", None),
    ],
)
def test_a_refused_handshake(status: int, body: Any, expected: str, wait_s: float | None) -> None:
    error = TransportError("no", code=f"http_{status}", status=status, body=orjson.dumps({"error": body}).decode())
    event: Any = target().connect_failed(error)
    assert ("refused" if isinstance(event, ev.Refused) else event.kind.value) == expected
    assert getattr(event, "retry_after_s", None) == wait_s


# --- anything

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
TOP = ("setupComplete", "serverContent", "toolCall", "toolCallCancellation", "usageMetadata", "goAway", "error")
MORE = ("sessionResumptionUpdate", "voiceActivity", "voiceActivityDetectionSignal", "surprise")
INNER = (
    *("modelTurn", "parts", "inlineData", "data", "mimeType", "text", "turnComplete", "interrupted", "functionCalls"),
    *("id", "name", "args", "ids", "interactionStatus", "turnCompleteReason", "outputTranscription", "newHandle"),
    *("resumable", "timeLeft", "audioOffset", "voiceActivityType", "sessionId", "code", "message", "status"),
)
NESTED = st.recursive(
    JSON,
    lambda inner: st.dictionaries(st.sampled_from(INNER), inner, max_size=4) | st.lists(inner, max_size=2),
    max_leaves=10,
)
MESSAGES = st.dictionaries(st.sampled_from(TOP + MORE), NESTED, max_size=3).map(
    lambda message: json.dumps(message).encode()
)


@settings(max_examples=200, deadline=None)
@given(payloads=st.lists(st.binary(max_size=40) | MESSAGES, max_size=10), asked=st.booleans())
def test_client_reads_anything(payloads: list[bytes], asked: bool) -> None:
    client = target()
    client.open(Setup("", (), 16_000))
    if asked:
        client.start_turn()
        client.commit_turn()
    for payload in [
        *payloads,
        b"[" * 3000,
        b'{"toolCall":{"functionCalls":[{"args":' + b"[" * 500 + b"]" * 500 + b"}]}}",
    ]:
        events, owed = client.receive(InFrame(payload, False, 0))
        assert all(isinstance(event, get_args(ev.Event)) for event in events)
        assert owed == ()
