"""The template engine: what is sent, what messages become, and that no bytes break it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.dialect import SettingsError, Setup, TargetSettings, ToolSpec, TurnMode
from adapters.template_socket import pipecat_frames
from adapters.template_socket.client import TemplateClient
from adapters.template_socket.sound import Format
from adapters.template_socket.template import TemplateError, checked, read_template, ready_templates
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Failed,
    FailureKind,
    Refused,
    SessionReady,
    ToolCall,
    TranscriptDelta,
    Unrecognised,
)
from captures.frames import ClosedBy, InFrame, OutFrame

TOOL = ToolSpec(
    "pay",
    "Pays.",
    {
        "type": "object",
        "properties": {"amount": {"type": "number"}, "note": {"type": "string"}},
        "required": ["amount"],
    },
)
SETUP = Setup("Be kind.", (TOOL,), 16_000)


def own_template(**changes: Any) -> dict[str, Any]:
    """`plain_json` with other parts."""
    return read_template("plain_json", Path()) | changes


def client(template: str | dict[str, Any], environment: dict[str, str] | None = None, **more: Any) -> TemplateClient:
    declared = read_template(template, Path()) if isinstance(template, str) else template
    values = {name: "v" for name, value in declared.get("values", {}).items() if value is None}
    told = {"template": "mine.yaml", "declared": declared, "values": values}
    if declared.get("takes_setup") is False:
        told["tools"] = ["pay"]
    address = more.pop("base_url", "ws://127.0.0.1:1/")
    key = more.pop("api_key", None)
    return TemplateClient(TargetSettings("any", address, key, told | more), environment or {})


def sent(frames: Any) -> list[Any]:
    return [json.loads(frame.payload) for frame in frames]


def heard(on: TemplateClient, *messages: Any) -> list[Any]:
    events: list[Any] = []
    for message in messages:
        payload = message if isinstance(message, bytes) else json.dumps(message).encode()
        events += on.receive(InFrame(payload, False, 0))[0]
    return events


def test_a_value_keeps_its_type_and_what_is_null_is_left_out() -> None:
    start = {
        "tools": "{{ tools[].{n: name, p: parameter_list[].name} }}",
        "rate": "{{ input_rate_hz }}",
        "label": "rate {{ input_rate_hz }}: {{ instructions }}",
        "none": "{{ tools[5] }}",
        "null": None,
        "quoted": {"deep": ["{{ instructions }}", True]},
    }
    on = client(own_template(send={"open": [start], "commit": [{"type": "end"}]}))
    assert sent(on.open(SETUP)) == [
        {
            "tools": [{"n": "pay", "p": ["amount", "note"]}],
            "rate": 16_000,
            "label": "rate 16000: Be kind.",
            "null": None,
            "quoted": {"deep": ["Be kind.", True]},
        }
    ]


def test_what_a_caller_says_is_never_read_as_a_template() -> None:
    on = client("plain_json")
    words = '{{ instructions }} ${HOME} "}'
    assert sent(on.text(words)) == [{"type": "say", "text": words}]


def test_a_result_goes_back_with_the_name_of_its_call() -> None:
    on = client("deepgram_voice_agent")
    call = {"id": "f1", "name": "pay", "arguments": '{"amount": 3}', "client_side": True}
    own = {"id": "f2", "name": "look", "arguments": "{}", "client_side": False}
    events = heard(on, {"type": "FunctionCallRequest", "functions": [call, own]})
    assert [event for event in events if isinstance(event, ToolCall)] == [
        ToolCall("f1", "pay", '{"amount": 3}', {"amount": 3}, 0)
    ]
    assert sent(on.tool_result("f1", "ok")) == [
        {"type": "FunctionCallResponse", "id": "f1", "name": "pay", "content": "ok"}
    ]


def test_a_ping_is_answered_with_its_own_number() -> None:
    on = client("elevenlabs_agents")
    _, owed = on.receive(InFrame(b'{"type":"ping","ping_event":{"event_id":7}}', False, 0))
    assert sent(owed) == [{"type": "pong", "event_id": 7}]


@pytest.mark.parametrize(
    "payload",
    [
        b'{"type":"call","id":"1","tool":"pay","args":{"amount":NaN}}',
        b'{"type":"call","id":"1","tool":"pay","args":{"amo',
        b'{"type":"call","id":"1","tool":"pay","args":"{half"}',
        b'{"type":"call","id":"1","tool":"pay","args":[1]}',
        b'{"type":"call","id":"1","tool":["pay"],"args":7}',
    ],
)
def test_an_unreadable_call_is_a_call(payload: bytes) -> None:
    (call,) = [event for event in heard(client("plain_json"), payload) if isinstance(event, ToolCall)]
    assert call.arguments is None


def test_the_same_call_again_is_no_second_one() -> None:
    call = {"type": "call", "id": "1", "tool": "pay", "args": {}}
    events = heard(client("plain_json"), call, call)
    assert len([event for event in events if isinstance(event, ToolCall)]) == 1


def test_an_end_counts_once_an_answer_had_begun() -> None:
    on = client("ultravox")
    listening, speaking = {"type": "state", "state": "listening"}, {"type": "state", "state": "speaking"}
    assert heard(on, {"type": "call_started", "callId": "c"}, listening) == [SessionReady("c")]
    on.start_turn()
    assert heard(on, listening, speaking, listening, listening) == [AnswerEnded(AnswerEnd.COMPLETED)]


def test_another_audio_format_than_the_templates_is_refused_and_speech_follows_what_the_agent_states() -> None:
    body = {"conversation_id": "c", "user_input_audio_format": "pcm_16000", "agent_output_audio_format": "ulaw_8000"}
    opened = {"type": "conversation_initiation_metadata", "conversation_initiation_metadata_event": body}
    on = client("elevenlabs_agents")
    assert isinstance(heard(on, opened)[0], SessionReady)
    audio = {"type": "audio", "audio_event": {"audio_base_64": "//8A"}}
    assert heard(on, audio) == [AudioDelta(np.array([0, 0, -32124], "<i2").tobytes(), 8000)]
    body["user_input_audio_format"] = "ulaw_8000"
    (refused,) = heard(client("elevenlabs_agents"), opened)
    assert isinstance(refused, Refused)
    assert "ulaw_8000" in refused.message


def test_mulaw_is_g711() -> None:
    table = Format("mulaw", 8000)
    codes = bytes(range(256))
    levels = np.frombuffer(table.decode(codes), "<i2")
    # Ends and middle of G.711, table 2a: ±8031 and 0 of 14 bits.
    assert [levels[0x00], levels[0x7F], levels[0x80], levels[0xFF]] == [-32124, 0, 32124, 0]
    again = table.encode(levels.tobytes())
    assert [code for code, back in zip(codes, again, strict=True) if code != back] == [0x7F]  # the negative zero
    samples = np.arange(-32124, 32125, dtype="<i2")
    error = np.abs(np.frombuffer(table.decode(table.encode(samples.tobytes())), "<i2").astype(int) - samples)
    assert error.max() <= 512
    assert error[np.abs(samples.astype(int)) < 100].max() <= 4


def test_audio_goes_in_base64_at_the_templates_coding() -> None:
    audio_in = {
        "rate_hz": 8000,
        "encoding": "mulaw",
        "message": {"event": "media", "media": {"payload": "{{ audio }}"}},
    }
    on = client(own_template(audio_in=audio_in))
    clip = on.encode_clip(bytes(2 * 400), 8000, 20)
    assert [len(clip.frames), clip.samples] == [3, 400]
    assert base64.b64decode(json.loads(clip.frames[2].payload)["media"]["payload"]) == b"\xff" * 80
    assert on.capabilities.input_rates_hz == (8000,)
    with pytest.raises(ValueError, match="8000 Hz"):
        on.encode_clip(b"\0\0", 16_000, 20)


def test_addresses_headers_and_masks() -> None:
    on = client("deepgram_voice_agent", base_url=None, api_key="dg-secret")
    assert on.endpoint().url == "wss://agent.deepgram.com/v1/agent/converse"
    assert on.endpoint().headers == {"Authorization": "Token dg-secret"}
    (error,) = heard(on, {"type": "Error", "code": "FAILED_TO_THINK", "description": "key dg-secret"})
    assert error == Failed(FailureKind.TRANSIENT, "FAILED_TO_THINK", "key ***")
    keyless = client("deepgram_voice_agent", base_url="ws://127.0.0.1:9")
    assert keyless.endpoint().headers == {}
    assert keyless.endpoint().url == "ws://127.0.0.1:9/v1/agent/converse"
    eleven = client("elevenlabs_agents", base_url=None, values={"agent_id": "a&b=c d"})
    assert eleven.endpoint().url.endswith("?agent_id=a%26b%3Dc%20d")
    assert "agent_id" not in eleven.endpoint().label


def test_the_environment_is_read_for_listed_names_alone() -> None:
    template = own_template(secrets=["MY_TOKEN"], headers={"X-Token": "t ${MY_TOKEN}"})
    on = client(template, {"MY_TOKEN": "s3cret", "HOME": "/root"})
    assert on.endpoint().headers == {"X-Token": "t s3cret"}
    with pytest.raises(TemplateError, match=r"headers.X-Token: \$\{HOME\} is not listed under secrets; add it there"):
        checked(own_template(headers={"X-Token": "${HOME}"}), "mine.yaml")
    with pytest.raises(SettingsError, match=r"headers\.X-Token"):
        client(template, {"MY_TOKEN": "a\r\nEvil: 1"})


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"versoin": 1}, "versoin: unknown key"),
    ({"version": 2}, "version: should be 1"),
    ({"audio_in": {"rate_hz": 11025}}, "audio_in.rate_hz: should be 8000, 16000, 24000 or 48000"),
    ({"audio_in": {"rate_hz": 16000, "message": {"a": 1}}}, 'audio_in.message: has no "{{ audio }}"'),
    ({"audio_in": {"rate_hz": 16000, "encoding": "mulaw"}}, "audio_in.rate_hz: mulaw is 8000 Hz; change it"),
    ({"send": {"open": [{"a": "{{ tool }}"}], "commit": [{}]}}, "send.open[0].a: {{ tool }} begins with 'tool'"),
    ({"send": {"open": [{"a": "{{ tools[ }}"}], "commit": [{}]}}, "send.open[0].a: 'tools[' is not a JMESPath"),
    ({"send": {}}, "send.commit: needed, unless"),
    ({"secrets": ["A B"]}, "secrets[0]: "),
    ({"headers": {"Authorization": "Bearer sk-123456"}}, "headers.Authorization: looks like a secret"),
    ({"events": [{"when": "a", "event": "hello"}]}, "events[0].event: should be 'ready'"),
    ({"events": [{"when": "a ==", "event": "ignore"}]}, "events[0] (ignore).when: 'a ==' is not a JMESPath"),
    ({"events": [{"when": "a", "event": "text"}]}, "events[0] (text): text is missing; add the expression"),
    ({"events": [{"when": "a", "event": "ignore", "text": "b"}]}, "events[0] (ignore): has no field text"),
    ({"events": [{"when": "a", "event": "audio", "audio": "b"}]}, "events: nothing ends an answer"),
    ({"turn": {"continuous_audio": True}}, "turn.continuous_audio: only where the agent detects"),
]


@pytest.mark.parametrize(("changes", "line"), FAULTS)
def test_a_fault_is_a_line_with_its_place(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(TemplateError) as caught:
        checked(own_template(**changes), "mine.yaml")
    assert any(problem.startswith(f"mine.yaml: {line}") for problem in caught.value.problems), caught.value.problems
    assert all("\n" not in problem for problem in caught.value.problems)


def test_files_that_are_no_templates(tmp_path: Path) -> None:
    (tmp_path / "tag.yaml").write_text("a: !!python/object/apply:os.system ['true']\n")
    (tmp_path / "list.yaml").write_text("- 1\n")
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    (tmp_path / "bomb.yaml").write_text(bomb)
    for name, line in (
        ("tag.yaml", "line 1: not YAML"),
        ("list.yaml", "must be a mapping"),
        ("none.yaml", "cannot be read"),
        ("nobody", "no such template; give a .yaml file or one of deepgram"),
    ):
        with pytest.raises(TemplateError, match=line):
            read_template(name, tmp_path)
    with pytest.raises(TemplateError, match="more than 20,000 values"):
        checked(read_template("bomb.yaml", tmp_path), "bomb.yaml")


def test_an_agent_with_tools_of_its_own_must_name_them() -> None:
    declared = read_template("ultravox", Path())
    with pytest.raises(SettingsError, match=r"settings.tools: mine.yaml does not take the items' tools"):
        TemplateClient(TargetSettings("m", "ws://a/", None, {"template": "mine.yaml", "declared": declared}), {})
    on = client("ultravox")
    assert on.capabilities.declared_tools == frozenset({"pay"})
    assert not on.capabilities.probe
    assert on.capabilities.turn_modes == frozenset({TurnMode.SERVER_VAD})


def test_values_are_the_templates_own() -> None:
    with pytest.raises(SettingsError, match=r"settings.values.voice: the template has no such value"):
        client("elevenlabs_agents", values={"agent_id": "a", "voice": "x"})
    with pytest.raises(SettingsError, match=r"settings.values.agent_id: required"):
        client("elevenlabs_agents", values={})


def test_pipecats_frames_go_both_ways() -> None:
    on = client("pipecat_websocket")
    (hello,) = on.open(SETUP)
    words = pipecat_frames.read_frame(hello.payload)
    assert isinstance(words, pipecat_frames.Words)
    assert json.loads(words.text)["type"] == "client-ready"
    audio = on.encode_clip(b"\1\0" * 320, 16_000, 20).frames[0]
    assert audio.binary
    assert pipecat_frames.read_frame(audio.payload) == pipecat_frames.Audio(b"\1\0" * 320, 16_000)
    assert on.receive(InFrame(audio.payload, True, 0))[0] == [AudioDelta(b"\1\0" * 320, 16_000)]
    said = b'{"label":"rtvi-ai","type":"bot-tts-text","data":{"text":"Hi"}}'
    frame = OutFrame(pipecat_frames.message_frame(said), binary=True)
    assert on.receive(InFrame(frame.payload, True, 0))[0] == [TranscriptDelta("Hi")]


def test_a_close_means_what_its_time_and_code_say() -> None:
    on = client("plain_json")
    assert isinstance(on.closed(ClosedBy(0, 4401, "no", True)), Refused)
    heard(on, {"type": "started"})
    on.start_turn()
    assert on.closed(ClosedBy(0, 1000, "", True)) == Failed(
        FailureKind.PROTOCOL, "close_1000", "the agent closed the connection (1000) before its answer had ended"
    )
    heard(on, {"type": "done"})
    assert on.closed(ClosedBy(0, 1006, "", True)) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("name", ready_templates())
def test_no_message_breaks_a_template(name: str, data: st.DataObject) -> None:
    on = client(name)
    on.open(SETUP)
    kinds = [word for rule in on._template.file.events for word in rule.when.split("'")[1::2]]
    fields = st.dictionaries(
        st.sampled_from(
            ["functions", "state", "role", "data", "audio_event", "client_tool_call", "args", "text", "id"]
        ),
        _JSON,
        max_size=4,
    )
    messages = st.builds(lambda kind, more: json.dumps({**more, "type": kind}).encode(), st.sampled_from(kinds), fields)
    for payload in data.draw(st.lists(st.binary(max_size=40) | messages | _JSON.map(lambda v: json.dumps(v).encode()))):
        for binary in (False, True):
            events, owed = on.receive(InFrame(payload, binary, 0))
            assert all(isinstance(frame, OutFrame) for frame in owed)
            assert len(events) <= 200


def test_what_no_rule_knows_is_kept_as_such() -> None:
    (strange,) = heard(client("plain_json"), {"type": "new"})
    assert strange == Unrecognised('{"type": "new"}')
