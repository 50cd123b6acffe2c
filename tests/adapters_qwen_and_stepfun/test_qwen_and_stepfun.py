"""What Qwen-Omni, Qwen-Audio and StepFun have in common: beta event names, nested tools, manual turns."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import registry
from adapters.dialect import SettingsError, Setup, TargetSettings, ToolSpec, TurnMode
from adapters.server import AnswerCancelled, AnswerWanted, AudioGiven, Handshake, Reply, ReplyCall, SetupGiven
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Failed,
    FailureKind,
    InputTranscript,
    Refused,
    SessionReady,
    SpeechStarted,
    SpeechStopped,
    ToolCall,
    TranscriptDelta,
    TurnCommitted,
    Unrecognised,
    Usage,
    Warned,
)
from captures.frames import ClosedBy, InFrame
from transports.transport import TransportError

Make = Callable[..., Any]
SPEECH = bytes(range(256)) * 60
LOUD = (b"\x00\x20" * 12 + b"\x00\xe0" * 12) * 400
NESTED: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "book_table",
        "description": "Books a table.",
        "parameters": {"type": "object", "properties": {"party": {"type": "integer"}}},
    },
}


def test_a_spoken_turn_with_words_and_a_call(both: Make, name: str, tools: Any) -> None:
    pair = both(name).open()
    rate_hz = pair.rate_hz
    assert pair.intents == [SetupGiven(Setup("Be brief.", tools, rate_hz))]
    (ready,) = pair.of(SessionReady)
    assert ready.session_id == "sess_000001"
    assert ready.echoed["tools"] == ["book_table", "cancel_order"]
    assert ready.echoed["turn_detection"] is None
    pair.speak(SPEECH)
    assert pair.intents[1:] == [AudioGiven(SPEECH, rate_hz), AnswerWanted()]
    assert len(pair.of(TurnCommitted)) == 1
    reply = Reply((ReplyCall("book_table", {"party": 4}),), "One moment.", SPEECH, input_transcript="Four please.")
    pair.to_client(pair.server.answer(reply))
    (call,) = pair.of(ToolCall)
    assert (call.name, call.arguments, call.output_index) == ("book_table", {"party": 4}, 1)
    assert b"".join(event.pcm for event in pair.of(AudioDelta)) == SPEECH
    assert {event.rate_hz for event in pair.of(AudioDelta)} == {24_000}
    assert "".join(event.text for event in pair.of(TranscriptDelta)) == "One moment."
    assert pair.of(Usage)[0].counts["total_tokens"] > 0
    assert pair.events[-1] == AnswerEnded(AnswerEnd.COMPLETED)
    assert not pair.of(Unrecognised) + pair.of(Warned) + pair.of(Failed)


def test_the_result_of_a_call_is_answered(both: Make, name: str) -> None:
    pair = both(name).open()
    pair.speak(SPEECH)
    pair.to_client(pair.server.answer(Reply((ReplyCall("book_table", {"party": 4}),))))
    (call,) = pair.of(ToolCall)
    pair.to_server(pair.client.tool_result(call.call_id, '{"ok":true}'))
    assert [type(intent).__name__ for intent in pair.intents[-2:]] == ["ToolResultGiven", "AnswerWanted"]
    pair.to_client(pair.server.answer(Reply(text="Booked.")))
    assert "".join(event.text for event in pair.of(TranscriptDelta)) == "Booked."
    assert len(pair.of(AnswerEnded)) == 2
    assert not pair.of(Unrecognised) + pair.of(Warned) + pair.of(Failed)


def test_event_names_are_those_of_the_beta(both: Make, name: str) -> None:
    pair = both(name).open()
    pair.speak(SPEECH)
    pair.to_client(pair.server.answer(Reply((ReplyCall("book_table", {}),), "One moment.", SPEECH)))
    kinds = pair.kinds()
    assert kinds[:6] == [
        "session.created",
        "session.updated",
        "input_audio_buffer.committed",
        "conversation.item.created",
        "response.created",
        "response.output_item.added",
    ]
    assert "response.audio.delta" in kinds
    assert "response.audio_transcript.done" in kinds
    assert "response.function_call_arguments.done" in kinds
    assert kinds[-1] == "response.done"
    new = {"conversation.item.added", "conversation.item.done", "rate_limits.updated"}
    assert not [kind for kind in kinds if "output_audio" in kind or kind in new]


def test_b11_tools_are_nested_and_no_key_beside_them_is_sent(both: Make, name: str) -> None:
    pair = both(name).open(TurnMode.SERVER_VAD, silence_duration_ms=400)
    (opened,) = pair.sent
    assert opened["session"]["tools"][0] == NESTED
    assert not {"tool_choice", "parallel_tool_calls"} & set(opened["session"])
    assert "prefix_padding_ms" not in opened["session"]["turn_detection"]
    assert opened["session"]["turn_detection"]["silence_duration_ms"] == 400


def test_openai_has_the_same_tools_flat(tools: Any) -> None:
    client = registry.dialect("openai_realtime").client(TargetSettings("gpt-realtime-2.1"))
    (frame,) = client.open(Setup("Be brief.", tools, 24_000))
    assert orjson.loads(frame.payload)["session"]["tools"][0] == {"type": "function", **NESTED["function"]}


def test_b11_fewer_tools_confirmed_than_sent_refuse_the_target(both: Make, name: str) -> None:
    pair = both(name)
    pair.client.open(pair.setup())
    session = {"tools": [NESTED], "turn_detection": None}
    assert pair.hear({"type": "session.updated", "session": session}) == [
        Refused(
            "tools_missing",
            "1 of 2 tools are missing from the confirmed settings: cancel_order",
            "session.tools",
        )
    ]


def test_a_probe_offers_no_tools(both: Make, name: str) -> None:
    pair = both(name).open(tools=())
    assert "tools" not in pair.sent[0]["session"]
    assert len(pair.of(SessionReady)) == 1


def test_the_servers_detection_ends_the_turn_and_nothing_is_committed_by_us(both: Make, name: str) -> None:
    pair = both(name).open(TurnMode.SERVER_VAD, silence_duration_ms=300)
    assert pair.of(SessionReady)[0].echoed["turn_detection"]["silence_duration_ms"] == 300
    pair.speak(LOUD)
    assert len(pair.of(SpeechStarted)) == 1
    for _ in range(20):
        pair.to_server([pair.client.encode_silence(pair.rate_hz, 20)])
    assert len(pair.of(SpeechStopped)) == 1
    assert pair.intents[-1] == AnswerWanted()
    assert {message["type"] for message in pair.sent} == {"session.update", "input_audio_buffer.append"}


def test_an_answer_is_cancelled_and_never_truncated(both: Make, name: str) -> None:
    pair = both(name).open()
    pair.speak(SPEECH)
    frames = iter(pair.server.answer(Reply(text="One two three.", pcm=SPEECH)))
    while not pair.of(AudioDelta):
        pair.to_client([next(frames)])
    pair.to_server(pair.client.cancel())
    assert pair.client.truncate(100) == ()
    assert pair.intents[-1] == AnswerCancelled()
    assert pair.events[-1] == AnswerEnded(AnswerEnd.CANCELLED, "client_cancelled")
    assert list(frames) == []
    (refused,) = pair.say({"type": "conversation.item.truncate", "item_id": "item_000002", "audio_end_ms": 1})
    assert refused["type"] == "error"


@pytest.mark.parametrize("kind", ["response.cancelled", "response.done"])
def test_both_ends_of_a_cancelled_answer_are_read(both: Make, name: str, kind: str) -> None:
    pair = both(name).open()
    pair.client.commit_turn()
    response = {"id": "resp_1", "status": "cancelled", "output": []}
    events = pair.hear({"type": "response.created", "response": {"id": "resp_1"}}, {"type": kind, "response": response})
    assert events == [AnswerEnded(AnswerEnd.CANCELLED)]
    bare = both(name).open()
    bare.client.commit_turn()
    events = bare.hear({"type": "response.created", "response": {"id": "r"}}, {"type": "response.cancelled"})
    assert events == [AnswerEnded(AnswerEnd.CANCELLED)]


def test_an_error_that_names_no_message_ends_an_awaited_answer(both: Make, name: str) -> None:
    error = {"type": "error", "error": {"type": "invalid_request_error", "code": "invalid_value", "message": "No."}}
    pair = both(name).open()
    assert pair.hear(error) == [Warned("invalid_value", "No.", spoils_turn=True)]
    pair.client.start_turn()
    assert pair.hear(error) == [Warned("invalid_value", "No.", spoils_turn=True)]
    pair.client.commit_turn()
    assert pair.hear(error) == [Failed(FailureKind.PROTOCOL, "invalid_value", "No.")]
    pair.hear({"type": "response.created", "response": {"id": "r"}})
    assert pair.hear(error) == [Warned("invalid_value", "No.", spoils_turn=True)]


def test_a_second_request_is_refused_and_nothing_is_lost(both: Make, name: str) -> None:
    pair = both(name).open()
    pair.speak(SPEECH)
    (error,) = pair.say({"type": "response.create", "event_id": "rig_answer_3"})
    assert error["type"] == "error"
    assert [type(event).__name__ for event in pair.hear(error)] == ["Warned"]
    pair.to_client(pair.server.answer(Reply((ReplyCall("book_table", {}),))))
    assert len(pair.of(ToolCall)) == 1
    assert not pair.of(Failed)


def test_refused_settings_stop_the_target(both: Make, name: str) -> None:
    pair = both(name)
    pair.client.open(pair.setup())
    error = {"type": "error", "error": {"type": "invalid_request_error", "code": "x", "message": "m", "param": "p"}}
    assert pair.hear(error) == [Refused("x", "m", "p")]


def test_unknown_settings_and_modes_name_their_key(both: Make, name: str) -> None:
    with pytest.raises(SettingsError, match=r"settings\.tool_choice"):
        both(name, tool_choice="auto")
    with pytest.raises(SettingsError, match=r"turn_control\.(eagerness|mode)"):
        both(name).open(TurnMode.SEMANTIC_VAD, eagerness="low")
    with pytest.raises(SettingsError, match=r"turn_control\.mode"):
        both(name).open(TurnMode.PUSH_TEXT)
    with pytest.raises(SettingsError, match=r"^model: "):
        registry.dialect(name).client(TargetSettings(""))


def test_a_handshake_without_a_model_is_denied(name: str) -> None:
    server: Any = registry.dialect(name).server()
    assert server.denied(Handshake("/", {"model": "m"}, {})) is None
    assert server.denied(Handshake("/", {}, {})).status == 400


def test_no_key_is_shown(both: Make, name: str, key: str) -> None:
    pair = both(name)
    assert pair.client.endpoint().headers["Authorization"] == f"Bearer {key}"
    pair.client.open(pair.setup(tools=()))
    body = json.dumps({"code": "InvalidApiKey", "message": f"bad {key}"})
    told = [
        pair.client.connect_failed(TransportError(key, code="http_401", status=401, body=body)),
        pair.client.connect_failed(TransportError(key, code="http_500", status=500, body=body)),
        pair.client.closed(ClosedBy(0, 1011, f"with {key}", by_peer=True)),
        *pair.hear(
            {"type": "error", "error": {"code": key, "message": key, "param": key}},
            {"type": key},
            {"type": "session.updated", "session": {"voice": key, "model": key}},
        ),
    ]
    assert key not in repr(told) + repr(pair.client.endpoint())


def _recorded(name: str) -> list[dict[str, Any]]:
    dialect = registry.dialect(name)
    client, server = dialect.client(TargetSettings("m")), dialect.server()
    rate_hz = client.capabilities.input_rates_hz[0]
    messages = [*server.greeting({"model": "m"})]
    tool = ToolSpec("f", "d", {"type": "object"})
    sent = [*client.open(Setup("i", (tool,), rate_hz)), *client.encode_clip(bytes(9600), rate_hz, 100).frames]
    sent += [*client.commit_turn(), *client.text("t"), *client.tool_result("c", "o"), *client.cancel()]
    for frame in sent:
        messages += server.receive(InFrame(frame.payload, False, 0)).frames
    messages += server.answer(Reply((ReplyCall("f", {"a": 1}),), "a b", bytes(960), input_transcript="x y"))
    return [orjson.loads(frame.payload) for frame in [*messages, *sent]]


NAMES = ("qwen_audio_realtime", "qwen_omni_realtime", "stepfun_realtime")
RECORDED = {name: _recorded(name) for name in NAMES}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def mutated(draw: st.DrawFn, name: str) -> Any:
    """A recorded message with one value, at any depth, replaced or removed."""
    message = orjson.loads(orjson.dumps(draw(st.sampled_from(RECORDED[name]))))
    place: Any = message
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return message
        chosen = draw(st.sampled_from(keys))
        if isinstance(place[chosen], dict | list) and draw(st.booleans()):
            place = place[chosen]
            continue
        if isinstance(place, dict) and draw(st.booleans()):
            del place[chosen]
        else:
            place[chosen] = draw(JSON)
        return message


@pytest.mark.parametrize("dialect_name", NAMES)
@settings(max_examples=80, deadline=None)
@given(data=st.data(), ready=st.booleans(), asked=st.booleans())
def test_both_halves_read_anything(dialect_name: str, data: st.DataObject, ready: bool, asked: bool) -> None:
    dialect = registry.dialect(dialect_name)
    client = dialect.client(TargetSettings("m"))
    client.open(Setup("i", (), client.capabilities.input_rates_hz[0]))
    if ready:
        client.receive(InFrame(b'{"type":"session.updated","session":{}}', False, 0))
    if asked:
        client.commit_turn()
    server = dialect.server()
    server.greeting({})
    one = mutated(dialect_name) | JSON | st.sampled_from(RECORDED[dialect_name])
    payloads = [json.dumps(message).encode() for message in data.draw(st.lists(one, max_size=8))]
    for payload in [*payloads, data.draw(st.binary(max_size=30))]:
        client.receive(InFrame(payload, False, 0))
        for frame in server.receive(InFrame(payload, False, 0)).frames:
            assert "type" in orjson.loads(frame.payload)
    frames = list(server.answer(Reply((ReplyCall("f", {}),), "x", bytes(960), input_transcript="x")))
    assert orjson.loads(frames[-1].payload)["type"] == "response.done"


def test_the_callers_words_are_told_when_transcribed(both: Make, name: str) -> None:
    extra = {"transcription_model": "qwen3-asr-flash-realtime"} if name == "qwen_omni_realtime" else {}
    pair = both(name, **extra).open()
    pair.speak(SPEECH)
    pair.to_client(pair.server.answer(Reply(text="Yes.", input_transcript="Four please.")))
    assert [event.text for event in pair.of(InputTranscript)] == ["Four please."]
