"""File mode's request and response mapping: WAV, settings, requests, responses, failures."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.chat_audio import DIALECT, wav
from adapters.chat_audio.client import ChatAudioClient
from adapters.chat_audio.wire import MAX_REQUEST_BYTES
from adapters.dialect import InputTooLargeError, SettingsError, Setup, TargetSettings, ToolSpec, TurnMode
from adapters.registry import dialect
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Event,
    Failed,
    FailureKind,
    Refused,
    Served,
    TextDelta,
    ToolCall,
    ToolCallStarted,
    TranscriptDelta,
    Usage,
    Warned,
)
from captures.frames import ClosedBy, InFrame
from transports.transport import TransportError

KEY = "TESTKEY-not-real-7f3a9c"
TOOL = ToolSpec("refund", "Gives money back.", {"type": "object", "properties": {}})
SETUP = Setup("Help the caller.", (TOOL,), 24000)
PCM = bytes(range(200))


def client(base_url: str | None = "http://127.0.0.1:9000/v1", setup: Setup = SETUP, **extra: Any) -> ChatAudioClient:
    half = ChatAudioClient(TargetSettings("gpt-audio-1.5", base_url, KEY, extra))
    assert half.open(setup) == ()
    return half


def request(half: ChatAudioClient, pcm: bytes = PCM) -> Any:
    """Body of the request for a spoken turn."""
    half.start_turn()
    for frame in half.encode_clip(pcm, 24000, 20).frames:
        assert frame.held
        half.hold(frame)
    (frame,) = half.commit_turn()
    assert not frame.held
    return json.loads(frame.payload)


def receive(half: ChatAudioClient, body: object) -> list[Event]:
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    events, owed = half.receive(InFrame(payload, False, 0))
    assert not owed
    return [event for event in events if not isinstance(event, Served)]


def response(finish_reason: str | None = "stop", usage: Any = None, **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": finish_reason}], "usage": usage}


def call(arguments: Any, **changes: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": arguments}, **changes}


def test_registry_entry() -> None:
    assert dialect("chat_audio") is DIALECT
    assert (DIALECT.name, DIALECT.default_key_env) == ("chat_audio", "OPENAI_API_KEY")
    capabilities = client().capabilities
    assert (capabilities.streams_audio, capabilities.text_twin, capabilities.probe) == (False, True, True)
    assert capabilities.turn_modes == {TurnMode.MANUAL}
    assert (capabilities.input_rates_hz, capabilities.max_input_bytes) == ((24000,), 20_000_000)


# WAV


@given(pcm=st.binary(max_size=300).filter(lambda data: len(data) % 2 == 0), rate_hz=st.integers(1000, 192_000))
@settings(max_examples=40)
def test_wav_round_trip(pcm: bytes, rate_hz: int) -> None:
    assert wav.decode(wav.encode(pcm, rate_hz)) == (pcm, rate_hz)


@given(data=st.binary(max_size=80), head=st.sampled_from([b"", b"RIFF\0\0\0\0WAVE", wav.encode(b"", 8000)[:36]]))
@settings(max_examples=100)
def test_any_bytes_are_a_wav_or_a_wav_error(data: bytes, head: bytes) -> None:
    try:
        pcm, _ = wav.decode(head + data)
    except wav.WavError:
        return
    assert len(pcm) % 2 == 0


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 4_000])
def test_wav_with_a_length_that_is_not_true(size: int) -> None:
    data = bytearray(wav.encode(PCM, 24000))
    data[40:44] = struct.pack("<I", size)
    assert wav.decode(bytes(data)) == (PCM, 24000)


def test_wav_with_other_chunks_and_an_extensible_format() -> None:
    plain = wav.encode(PCM, 16000)
    listed = plain[:12] + b"LIST" + struct.pack("<I", 3) + b"abc\0" + plain[12:]
    assert wav.decode(listed) == (PCM, 16000)
    subformat = bytes.fromhex("0100000000001000800000aa00389b71")
    fmt = struct.pack("<HHIIHH", 0xFFFE, 1, 16000, 32000, 2, 16) + struct.pack("<HHI", 22, 16, 4) + subformat
    extensible = plain[:12] + b"fmt " + struct.pack("<I", len(fmt)) + fmt + plain[36:]
    assert wav.decode(extensible) == (PCM, 16000)


@pytest.mark.parametrize(
    ("channels", "bits", "tag"),
    [(2, 16, 1), (1, 24, 1), (1, 32, 3)],
)
def test_wav_of_another_format_is_named(channels: int, bits: int, tag: int) -> None:
    fmt = struct.pack("<HHIIHH", tag, channels, 8000, 8000, 2, bits)
    data = b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", 16) + fmt + b"data" + struct.pack("<I", 4) + bytes(4)
    with pytest.raises(wav.WavError, match=f"{channels} channels, {bits} bits"):
        wav.decode(data)


# Settings


@pytest.mark.parametrize(
    ("model", "base_url", "extra", "named"),
    [
        ("", None, {}, "model: "),
        ("m", "ws://127.0.0.1/v1", {}, "base_url: must look like https://host/v1"),
        ("m", "https://host/v1?api-key=SECRETSECRET", {}, "base_url: must end"),
        ("m", "https://u:SECRETSECRET@host/v1", {}, "base_url: no user name"),
        ("m", None, {"vioce": "ash"}, "settings.vioce: "),
        ("m", None, {"modalities": ["audio"]}, "settings: "),
        ("m", None, {"modalities": ["text"], "voice": "ash"}, "settings: "),
        ("m", None, {"modalities": ["smell"]}, "settings.modalities.0: "),
        ("m", None, {"temperature": 7}, "settings.temperature: "),
        ("m", None, {"max_completion_tokens": 0}, "settings.max_completion_tokens: "),
        ("m", None, {"headers": {"X-Title": "SECRETSECRET\n"}}, "settings.headers.X-Title: "),
        ("m", None, {"tool_choice": "maybe"}, "settings.tool_choice."),
    ],
)
def test_wrong_settings_name_the_key_and_never_the_value(
    model: str, base_url: str | None, extra: dict[str, Any], named: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        ChatAudioClient(TargetSettings(model, base_url, None, extra))
    assert str(raised.value).startswith(named)
    assert "SECRET" not in str(raised.value)


def test_endpoint() -> None:
    endpoint = client(headers={"X-Title": "rig-secret"}).endpoint()
    assert endpoint.url == endpoint.label == "http://127.0.0.1:9000/v1"
    assert endpoint.headers == {"X-Title": "rig-secret", "Authorization": f"Bearer {KEY}"}
    assert "secret" not in repr(endpoint)
    assert KEY not in repr(endpoint)
    assert client(None).endpoint().url == "https://api.openai.com/v1"


def test_openai_itself_serves_no_text_twin_without_speech() -> None:
    assert client(None).capabilities.text_twin
    assert not client(None, modalities=["text"]).capabilities.text_twin
    assert client(modalities=["text"]).capabilities.text_twin


@pytest.mark.parametrize("key", ["SECRETSECRET\n", "SECRET\r\nX: y", " SECRET", "SECRÉT"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(SettingsError, match=r"^api_key_env: ") as raised:
        ChatAudioClient(TargetSettings("m", None, key))
    assert "SECR" not in str(raised.value)


# Requests


def test_request_of_a_spoken_turn() -> None:
    body = request(client())
    data = base64.b64encode(wav.encode(PCM, 24000)).decode()
    assert body == {
        "model": "gpt-audio-1.5",
        "messages": [
            {"role": "system", "content": "Help the caller."},
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}]},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "refund",
                    "description": "Gives money back.",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
        "modalities": ["text", "audio"],
        "audio": {"voice": "alloy", "format": "wav"},
    }


def test_request_of_a_text_twin_and_of_a_probe() -> None:
    (frame,) = client().text("Money back!")
    assert json.loads(frame.payload)["messages"][-1] == {"role": "user", "content": "Money back!"}
    probe = request(client(setup=Setup("Which one?", (), 24000), tool_choice="auto", parallel_tool_calls=False))
    assert {"tools", "tool_choice", "parallel_tool_calls"}.isdisjoint(probe)


def test_request_carries_the_settings() -> None:
    choice = {"type": "function", "function": {"name": "refund"}}
    given_settings = {
        "modalities": ["text"],
        "temperature": 0,
        "top_p": 1,
        "max_completion_tokens": 200,
        "seed": 7,
        "tool_choice": choice,
        "provider": {"order": ["openai"], "allow_fallbacks": False},
    }
    body = request(client(**given_settings, headers={"X-Title": "rig"}))
    assert {name: body[name] for name in given_settings} == given_settings
    assert "audio" not in body
    assert "headers" not in body
    assert request(client(voice="ash"))["audio"] == {"voice": "ash", "format": "wav"}


def test_a_second_turn_repeats_the_conversation() -> None:
    half = client()
    first = request(half)
    calls = [call('{"amount":5}'), call("", id="c2")]
    receive(half, response("tool_calls", content=None, audio={"id": "a", "transcript": "On it."}, tool_calls=calls))
    assert half.tool_result("c1", "paid") == ()
    (frame,) = half.tool_result("c2", "noted")
    assert json.loads(frame.payload)["messages"] == [
        *first["messages"],
        {"role": "assistant", "content": "On it.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "paid"},
        {"role": "tool", "tool_call_id": "c2", "content": "noted"},
    ]
    receive(half, response(content="Done."))
    assert request(half)["messages"][-2:] == [{"role": "assistant", "content": "Done."}, first["messages"][-1]]


def test_what_is_too_large_is_refused_before_it_is_sent() -> None:
    half = client()
    with pytest.raises(InputTooLargeError, match="20,000,000") as raised:
        half.encode_clip(bytes(MAX_REQUEST_BYTES * 3 // 4), 24000, 20)
    assert raised.value.limit == MAX_REQUEST_BYTES
    almost = half.encode_clip(bytes((MAX_REQUEST_BYTES - 200) // 4 * 3 - 56), 24000, 20)
    half.hold(almost.frames[0])
    with pytest.raises(InputTooLargeError):
        half.commit_turn()
    with pytest.raises(ValueError, match="whole 16-bit samples"):
        half.encode_clip(b"123", 24000, 20)


def test_verbs_that_send_nothing() -> None:
    half = client()
    assert [*half.start_turn(), *half.cancel(), *half.truncate(100), *half.close()] == []
    assert half.closed(ClosedBy(0, None, "", by_peer=True)) is None
    assert half.encode_silence(24000, 10).held


# Responses

DONE = AnswerEnded(AnswerEnd.COMPLETED, "stop")
SPEECH = base64.b64encode(wav.encode(PCM, 24000)).decode()


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (response(content="Hello."), [TextDelta("Hello."), DONE]),
        (response(content=[{"type": "text", "text": "Hel"}, {"text": "lo."}]), [TextDelta("Hello."), DONE]),
        (response(content=None, refusal="No."), [TextDelta("No."), DONE]),
        (response(content=None), [DONE]),
        (
            response(content=None, audio={"id": "a1", "data": SPEECH, "transcript": "Hi."}),
            [TranscriptDelta("Hi."), AudioDelta(PCM, 24000, "a1"), DONE],
        ),
        (
            response(content=None, audio={"data": "UklGRg==", "transcript": "Hi."}),
            [
                TranscriptDelta("Hi."),
                Warned("unreadable_audio", "the reply's audio cannot be read: not a WAV file"),
                DONE,
            ],
        ),
        (
            response("tool_calls", content="One moment.", tool_calls=[call('{"amount": 5}')]),
            [
                TextDelta("One moment."),
                ToolCallStarted("c1", "refund", 0),
                ToolCall("c1", "refund", '{"amount": 5}', {"amount": 5}, 0),
                AnswerEnded(AnswerEnd.COMPLETED, "tool_calls"),
            ],
        ),
        (
            response(tool_calls=[call("")]),
            [ToolCallStarted("c1", "refund", 0), ToolCall("c1", "refund", "", {}, 0), DONE],
        ),
        (
            response(tool_calls=[call('{"amount": ')]),
            [ToolCallStarted("c1", "refund", 0), ToolCall("c1", "refund", '{"amount": ', None, 0), DONE],
        ),
        (
            response(tool_calls=[call({"amount": 5})]),
            [ToolCallStarted("c1", "refund", 0), ToolCall("c1", "refund", '{"amount":5}', {"amount": 5}, 0), DONE],
        ),
        (
            response(tool_calls=[{"id": "c1", "type": "function"}]),
            [ToolCallStarted("c1", None, 0), ToolCall("c1", None, "", {}, 0), DONE],
        ),
        (
            response(tool_calls=["refund"]),
            [ToolCallStarted("#0", None, 0), ToolCall("#0", None, '"refund"', None, 0), DONE],
        ),
        (response("length", content="Hel"), [TextDelta("Hel"), AnswerEnded(AnswerEnd.LENGTH, "length")]),
        (response("content_filter"), [AnswerEnded(AnswerEnd.CONTENT_FILTER, "content_filter")]),
        (response(None, content="Hi"), [TextDelta("Hi"), AnswerEnded(AnswerEnd.COMPLETED)]),
        (
            response(content="Hi", usage={"total_tokens": 9, "cost": 0.1}),
            [TextDelta("Hi"), Usage({"total_tokens": 9, "cost": 0.1}), DONE],
        ),
        (
            {"error": {"code": 502, "message": "upstream is down"}},
            [Failed(FailureKind.TRANSIENT, "http_502", "HTTP 502: upstream is down")],
        ),
        (
            {"choices": [{"error": {"code": 429, "message": "slow down"}, "message": {"content": ""}}]},
            [Failed(FailureKind.RATE_LIMIT, "http_429", "HTTP 429: slow down")],
        ),
        (
            {"error": {"code": 402, "message": "no balance"}},
            [Failed(FailureKind.QUOTA, "http_402", "HTTP 402: no balance")],
        ),
        ({"error": "sorry"}, [Failed(FailureKind.TRANSIENT, "error", "sorry")]),
        ({"error": {"type": "invalid_request_error", "message": "bad"}}, [Refused("invalid_request_error", "bad")]),
        (
            {"error": None, "choices": []},
            [
                Failed(
                    FailureKind.PROTOCOL, "no_answer_in_response", "no message in the response; fields: error, choices"
                )
            ],
        ),
        (
            b"<html>",
            [Failed(FailureKind.PROTOCOL, "unreadable_response", "the response is not a JSON object: <html>")],
        ),
    ],
)
def test_responses_as_events(body: object, events: list[Event]) -> None:
    assert receive(client(), body) == events


def test_calls_of_one_id_stay_apart_and_keep_their_order() -> None:
    half = client()
    request(half)
    events = receive(half, response(tool_calls=[call("{}"), call("{}"), call("{}", id="")]))
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert [(one.call_id, one.output_index) for one in calls] == [("c1", 0), ("c1#1", 1), ("#2", 2)]
    half.tool_result("c1", "a")
    half.tool_result("c1#1", "b")
    (frame,) = half.tool_result("#2", "c")
    assert [message.get("tool_call_id") for message in json.loads(frame.payload)["messages"][-3:]] == ["c1", "c1", ""]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["function", "id", "name", "arguments", "text", "data", "transcript", "message", "code"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(payload=st.binary(max_size=60))
@settings(max_examples=50)
def test_any_bytes_become_events(payload: bytes) -> None:
    assert receive(client(), payload)


@given(
    message=st.dictionaries(st.sampled_from(["content", "audio", "tool_calls", "refusal"]), VALUES, max_size=4),
    rest=st.dictionaries(st.sampled_from(["usage", "error", "choices"]), VALUES, max_size=2),
    finish_reason=VALUES,
)
@settings(max_examples=150)
def test_any_fields_become_events(message: dict[str, Any], rest: dict[str, Any], finish_reason: Any) -> None:
    body = {"choices": [{"message": message, "finish_reason": finish_reason}], **rest}
    events = receive(client(), body)
    assert isinstance(events[-1], AnswerEnded | Refused | Failed)


# Failed requests


def explained(message: str, code: str | None = None, param: str | None = None, kind: str | None = None) -> str:
    return json.dumps({"error": {"message": message, "code": code, "param": param, "type": kind}})


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (
            401,
            explained("no", "invalid_api_key"),
            Refused("invalid_api_key", "HTTP 401: no (check the key: api_key_env)"),
        ),
        (403, explained("not here"), Refused("http_403", "HTTP 403: not here (check the key: api_key_env)")),
        (404, explained("no such model", "model_not_found"), Refused("model_not_found", "HTTP 404: no such model")),
        (
            400,
            explained("too long", "string_above_max_length", "tools[3].function.description"),
            Refused("string_above_max_length", "HTTP 400: too long", "tools[3].function.description"),
        ),
        (422, "plain words", Refused("http_422", "HTTP 422: plain words")),
        (302, "", Refused("http_302", "HTTP 302: the text")),
        (402, explained("pay"), Failed(FailureKind.QUOTA, "http_402", "HTTP 402: pay")),
        (
            429,
            explained("slow", "rate_limit_exceeded"),
            Failed(FailureKind.RATE_LIMIT, "rate_limit_exceeded", "HTTP 429: slow", 4.0),
        ),
        (
            429,
            explained("used up", "insufficient_quota"),
            Failed(FailureKind.QUOTA, "insufficient_quota", "HTTP 429: used up"),
        ),
        (
            429,
            explained("used up", None, None, "insufficient_quota"),
            Failed(FailureKind.QUOTA, "insufficient_quota", "HTTP 429: used up"),
        ),
        (413, explained("too big"), Failed(FailureKind.PROTOCOL, "http_413", "HTTP 413: too big")),
        (500, "", Failed(FailureKind.TRANSIENT, "http_500", "HTTP 500: the text", 4.0)),
        (503, explained("Loading model"), Failed(FailureKind.TRANSIENT, "http_503", "HTTP 503: Loading model", 4.0)),
        (
            500,
            explained("audio input is not supported - hint: mmproj"),
            Refused("http_500", "HTTP 500: audio input is not supported - hint: mmproj"),
        ),
        (None, "", Failed(FailureKind.TRANSIENT, "timeout", "the text", 4.0)),
    ],
)
def test_failed_requests(status: int | None, body: str, expected: Event) -> None:
    code = "timeout" if status is None else f"http_{status}"
    error = TransportError("the text", code=code, status=status, body=body, retry_after_s=4.0)
    assert client().connect_failed(error) == expected


def test_a_key_that_the_vendor_echoes_is_masked() -> None:
    body = explained(f"Incorrect API key provided: {KEY}", "invalid_api_key")
    event = client().connect_failed(TransportError("t", code="http_401", status=401, body=body))
    assert KEY not in repr(event)
    (event,) = receive(client(), {"error": {"message": f"who is {KEY}?"}})
    assert KEY not in repr(event)
    (event,) = receive(client(), f"Bearer {KEY} is wrong".encode())
    assert KEY not in repr(event)
