"""Qwen-Omni's own: hosts, settings, value refusals, error texts and account states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adapters.dialect import SettingsError, TurnMode
from adapters.server import AnswerWanted, AudioGiven, Reply, ReplyCall
from captures.events import AnswerEnded, Failed, FailureKind, Refused, SessionReady, TextDelta, ToolCall, Warned
from captures.frames import ClosedBy
from transports.transport import TransportError

Make = Callable[..., Any]
NAME = "qwen_omni_realtime"
MODEL = "qwen3.5-omni-plus-realtime"
SPEECH = bytes(range(256)) * 60


@pytest.mark.parametrize(
    ("extra", "base_url", "host", "workspace"),
    [
        ({}, None, "dashscope.aliyuncs.com", None),
        ({"region": "ap-southeast-1"}, None, "dashscope-intl.aliyuncs.com", None),
        ({"workspace": "llm-7"}, None, "llm-7.cn-beijing.maas.aliyuncs.com", "llm-7"),
        (
            {"workspace": "llm-7", "region": "ap-southeast-1"},
            None,
            "llm-7.ap-southeast-1.maas.aliyuncs.com",
            "llm-7",
        ),
        ({"workspace": "llm-7"}, "wss://own.example/api-ws/v1/realtime", "own.example", "llm-7"),
    ],
)
def test_hosts_and_workspaces(both: Make, extra: Any, base_url: str | None, host: str, workspace: str | None) -> None:
    endpoint = both(NAME, base_url=base_url, **extra).client.endpoint()
    assert endpoint.url == f"wss://{host}/api-ws/v1/realtime?model={MODEL}"
    assert endpoint.headers.get("X-DashScope-WorkSpace") == workspace


@pytest.mark.parametrize("workspace", ["a/b", "evil.example/", "-a", ""])
def test_a_workspace_is_a_label_of_a_host(both: Make, workspace: str) -> None:
    with pytest.raises(SettingsError, match=r"settings\.workspace"):
        both(NAME, workspace=workspace)


def test_a_region_beside_an_address_is_refused(both: Make) -> None:
    with pytest.raises(SettingsError, match=r"settings\.region"):
        both(NAME, base_url="ws://127.0.0.1:1/", region="cn-beijing")


def test_the_session_that_is_sent(both: Make) -> None:
    pair = both(NAME, voice="Tina", temperature=1, top_k=20, seed=7, transcription_model="qwen3-asr-flash-realtime")
    session = pair.open(TurnMode.SEMANTIC_VAD, threshold=-0.5, interrupt_response=False).sent[0]["session"]
    assert {name: value for name, value in session.items() if name != "tools"} == {
        "modalities": ["text", "audio"],
        "instructions": "Be brief.",
        "input_audio_format": "pcm",
        "output_audio_format": "pcm",
        "turn_detection": {
            "type": "semantic_vad",
            "threshold": -0.5,
            "create_response": True,
            "interrupt_response": False,
        },
        "input_audio_transcription": {"model": "qwen3-asr-flash-realtime"},
        "voice": "Tina",
        "temperature": 1.0,
        "top_k": 20,
        "seed": 7,
    }
    echoed = pair.of(SessionReady)[0].echoed
    assert (echoed["voice"], echoed["temperature"], echoed["model"]) == ("Tina", 1.0, MODEL)


@pytest.mark.parametrize("parameters", [{"silence_duration_ms": 100}, {"threshold": 2}, {"prefix_padding_ms": 300}])
def test_parameters_that_the_vendor_would_refuse(both: Make, parameters: Any) -> None:
    with pytest.raises(SettingsError, match=f"turn_control.{next(iter(parameters))}"):
        both(NAME).open(TurnMode.SERVER_VAD, **parameters)


@pytest.mark.parametrize("model", ["qwen3-omni-flash-realtime", "qwen3-omni-flash-realtime-2025-12-01"])
def test_a_model_that_never_calls_is_refused_for_tools_alone(both: Make, model: str) -> None:
    pair = both(NAME, model=model)
    with pytest.raises(SettingsError, match=rf"^model: {model} accepts tools and never calls one"):
        pair.client.open(pair.setup())
    assert len(both(NAME, model=model).open(tools=()).of(SessionReady)) == 1


def test_an_old_voice_on_the_new_model_is_refused_before_anything_is_spent(both: Make) -> None:
    pair = both(NAME, model="qwen3.8-omni-flash-realtime", voice="Cherry")
    with pytest.raises(SettingsError, match=r"settings\.voice: .* cannot speak as Cherry"):
        pair.client.open(pair.setup(tools=()))
    assert both(NAME, voice="Cherry").open().of(SessionReady)


def test_there_is_no_text_twin(both: Make) -> None:
    pair = both(NAME).open()
    assert not pair.client.capabilities.text_twin
    words = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
    (error,) = pair.say({"type": "conversation.item.create", "item": words})
    assert (error["type"], error["error"]["param"]) == ("error", "item.type")


# The server half


@pytest.mark.parametrize(
    ("session", "place"),
    [
        ({"modalities": ["audio"]}, "session.modalities"),
        ({"turn_detection": {"type": "server_vad", "threshold": 1.5}}, "session.turn_detection.threshold"),
        (
            {"turn_detection": {"type": "server_vad", "silence_duration_ms": 100}},
            "session.turn_detection.silence_duration_ms",
        ),
        ({"turn_detection": {"type": "smart_turn"}}, "session.turn_detection.type"),
        ({"input_audio_format": "g711_ulaw"}, "session.input_audio_format"),
        ({"input_audio_format": "pcm", "audio": {"input": {"format": {"type": "pcm"}}}}, "session.audio"),
        (
            {"audio": {"input": {"format": {"type": "pcm", "sample_rate": 44100}}}},
            "session.audio.input.format.sample_rate",
        ),
        ({"enable_search": True, "tools": [{"type": "function", "function": {"name": "f"}}]}, "session.enable_search"),
    ],
)
def test_values_are_refused(both: Make, session: Any, place: str) -> None:
    assert both(NAME).refused(session) == ("invalid_value", place)


def test_flat_tools_are_dropped_without_a_word(both: Make) -> None:
    flat = {"type": "function", "name": "book_table", "description": "d", "parameters": {"type": "object"}}
    (updated,) = both(NAME).say({"type": "session.update", "session": {"tools": [flat], "tool_choice": "auto"}})
    assert (updated["type"], updated["session"]["tools"]) == ("session.updated", [])
    assert "tool_choice" not in updated["session"]


def test_the_newer_audio_settings_choose_the_rate(both: Make) -> None:
    pair = both(NAME)
    audio = {"input": {"format": {"type": "pcm", "sample_rate": 24000}}}
    pair.say({"type": "session.update", "session": {"audio": audio, "turn_detection": None}})
    pair.say({"type": "input_audio_buffer.append", "audio": "AAAA" * 20})
    pair.say({"type": "input_audio_buffer.commit"})
    assert pair.intents[-1] == AudioGiven(bytes(60), 24_000)


def test_nothing_to_answer_and_instructions_that_stand_in(both: Make) -> None:
    pair = both(NAME).open()
    (error,) = pair.say({"type": "response.create", "response": {"instructions": None}})
    assert error["error"]["message"] == "Cannot create response without input, history, or instructions"
    assert "event_id" not in error["error"]
    (created,) = pair.say({"type": "response.create", "response": {"instructions": "Say hello."}})
    assert created["type"] == "response.created"
    assert pair.intents[-1] == AnswerWanted()


def test_no_answer_is_begun_while_the_caller_speaks(both: Make) -> None:
    pair = both(NAME).open(TurnMode.SERVER_VAD)
    loud = (b"\x00\x20" * 12 + b"\x00\xe0" * 12) * 400
    pair.to_server(pair.client.encode_clip(loud, 16_000, 20).frames)
    (error,) = pair.say({"type": "response.create"})
    assert error["error"]["message"] == "Cannot create response while user is speaking."


def test_a_second_result_of_a_call_is_refused(both: Make) -> None:
    pair = both(NAME).open()
    pair.speak(SPEECH)
    pair.to_client(pair.server.answer(Reply((ReplyCall("book_table", {}),))))
    call_id = pair.of(ToolCall)[0].call_id
    item = {"type": "function_call_output", "call_id": call_id, "output": "{}"}
    assert [m["type"] for m in pair.say({"type": "conversation.item.create", "item": item})] == [
        "conversation.item.created"
    ]
    (error,) = pair.say({"type": "conversation.item.create", "item": item})
    assert error["error"]["message"] == "Duplicate function call output"


def test_an_old_voice_fails_when_it_should_speak(both: Make) -> None:
    pair = both(NAME, model="qwen3.8-omni-flash-realtime").open()
    (updated,) = pair.say({"type": "session.update", "session": {"voice": "Ethan"}})
    assert updated["session"]["voice"] == "Ethan"
    pair.speak(SPEECH)
    assert pair.events[-1] == Failed(FailureKind.PROTOCOL, "invalid_value", "Voice 'Ethan' is not supported.")


def test_text_answers(both: Make) -> None:
    pair = both(NAME, modalities="text").open()
    pair.speak(SPEECH)
    pair.to_client(pair.server.answer(Reply(text="Four it is.")))
    assert "response.text.delta" in pair.kinds()
    assert "".join(event.text for event in pair.of(TextDelta)) == "Four it is."
    assert isinstance(pair.events[-1], AnswerEnded)


def test_the_end_of_a_session_is_not_one_of_its_events(both: Make) -> None:
    (error,) = both(NAME).say({"type": "session.finish"})
    assert (error["type"], error["error"]["code"]) == ("error", "invalid_value")


# Faults


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (401, '{"code":"InvalidApiKey","message":"Invalid API-key provided."}', Refused, "http_401"),
        (403, '{"code":"Model.AccessDenied","message":"No access."}', Refused, "http_403"),
        (403, '{"code":"AllocationQuota.FreeTierOnly","message":"Used up."}', FailureKind.QUOTA, None),
        (400, '{"code":"Arrearage","message":"Access denied."}', FailureKind.QUOTA, "Arrearage"),
        (429, '{"code":"Throttling.RateQuota","message":"Too many."}', FailureKind.RATE_LIMIT, "Throttling.RateQuota"),
        (400, '{"code":"ModelNotFound","message":"No such model."}', Refused, "ModelNotFound"),
        (503, "", FailureKind.TRANSIENT, "http_503"),
    ],
)
def test_refused_handshakes(both: Make, status: int, body: str, kind: Any, code: str | None) -> None:
    error = TransportError("no", code=f"http_{status}", status=status, body=body)
    event = both(NAME).client.connect_failed(error)
    assert event.kind is kind if isinstance(event, Failed) else isinstance(event, kind)
    assert code is None or event.code == code


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("Arrearage", FailureKind.QUOTA),
        ("Throttling.AllocationQuota", FailureKind.RATE_LIMIT),
        ("response_idle_timeout", FailureKind.TRANSIENT),
    ],
)
def test_account_states_and_limits_in_a_session(both: Make, code: str, expected: FailureKind) -> None:
    pair = both(NAME).open()
    assert pair.hear({"type": "error", "error": {"code": code, "message": "m"}}) == [Failed(expected, code, "m")]


def test_a_workspace_key_on_a_shared_host_is_refused(both: Make) -> None:
    pair = both(NAME)
    pair.client.open(pair.setup())
    error = {"type": "error", "error": {"type": "invalid_request_error", "code": "AccessDenied", "message": "No."}}
    assert pair.hear(error) == [Refused("AccessDenied", "No.")]


@pytest.mark.parametrize(
    "text",
    [
        "Conversation already has an active response",
        "Conversation has none active response",
        "Duplicate function call output",
    ],
)
def test_races_are_warnings_even_while_an_answer_is_awaited(both: Make, text: str) -> None:
    pair = both(NAME).open()
    pair.client.commit_turn()
    error = {"type": "error", "error": {"type": "invalid_request_error", "code": "invalid_value", "message": text}}
    assert pair.hear(error) == [Warned("invalid_value", text)]


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (1007, "Your session idle too long: no response was generated for 180 seconds.", FailureKind.TRANSIENT),
        (1007, "Invalid payload", FailureKind.PROTOCOL),
        (1001, "", FailureKind.TRANSIENT),
        (1011, "Arrearage: account overdue", FailureKind.QUOTA),
    ],
)
def test_closes(both: Make, code: int, reason: str, kind: FailureKind) -> None:
    pair = both(NAME).open()
    pair.client.start_turn()
    assert pair.client.closed(ClosedBy(0, code, reason, by_peer=True)).kind is kind
