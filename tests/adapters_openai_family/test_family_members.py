"""What each member has of its own: addresses, headers, session layout, quirks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import orjson
import pytest

from adapters import registry
from adapters.dialect import SettingsError, Setup, TargetSettings, TurnControlSettings, TurnMode
from adapters.server import AudioGiven, ChecksHandshake, Handshake, Reply, ReplyCall
from adapters.session import Session, SessionError
from captures.clock import MonotonicClock
from captures.events import (
    Failed,
    FailureKind,
    InputTranscript,
    Refused,
    SessionReady,
    TextDelta,
    ToolCall,
    ToolCallStarted,
    TranscriptDelta,
    Unrecognised,
    Usage,
    Warned,
)
from captures.frames import ClosedBy, InFrame
from rig.agents.emulator import serve
from transports.websocket import WebSocketTransport

Make = Callable[..., Any]
SPEECH = bytes(range(256)) * 60


def endpoint(name: str, model: str, base_url: str | None = None, **extra: Any) -> Any:
    return registry.dialect(name).client(TargetSettings(model, base_url, "K123", extra)).endpoint()


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://r.openai.azure.com", "wss://r.openai.azure.com/openai/v1/realtime?model=my+dep"),
        ("https://r.openai.azure.com/", "wss://r.openai.azure.com/openai/v1/realtime?model=my+dep"),
        ("https://r.openai.azure.com/openai/v1", "wss://r.openai.azure.com/openai/v1/realtime?model=my+dep"),
        ("ws://127.0.0.1:9/openai/v1/realtime", "ws://127.0.0.1:9/openai/v1/realtime?model=my+dep"),
        ("ws://127.0.0.1:9/proxy", "ws://127.0.0.1:9/proxy?model=my+dep"),
    ],
)
def test_azure_address_and_key(base_url: str, url: str) -> None:
    found = endpoint("azure_realtime", "my dep", base_url)
    assert (found.url, found.headers) == (url, {"api-key": "K123"})
    token = endpoint("azure_realtime", "my dep", base_url, auth="bearer")
    assert token.headers == {"Authorization": "Bearer K123"}


def test_azure_preview_address_and_key() -> None:
    found = endpoint("azure_realtime_preview", "dep", "https://r.openai.azure.com", api_version="2024-10-01-preview")
    assert found.url == "wss://r.openai.azure.com/openai/realtime?api-version=2024-10-01-preview&deployment=dep"
    assert found.label == "wss://r.openai.azure.com/openai/realtime"
    assert found.headers == {"api-key": "K123"}


def test_other_addresses_and_keys() -> None:
    xai = endpoint("xai_realtime", "grok-voice-latest")
    assert (xai.url, xai.headers) == (
        "wss://api.x.ai/v1/realtime?model=grok-voice-latest",
        {"Authorization": "Bearer K123"},
    )
    beta = endpoint("openai_realtime_beta", "m", "ws://h/v1/realtime")
    assert beta.headers == {"OpenAI-Beta": "realtime=v1", "Authorization": "Bearer K123"}
    gateway = endpoint("vercel_gateway", "xai/grok-voice-latest")
    assert gateway.url == "wss://ai-gateway.vercel.sh/v4/ai/realtime-model?ai-model-id=xai%2Fgrok-voice-latest"


@pytest.mark.parametrize(
    ("name", "target", "words"),
    [
        ("azure_realtime", TargetSettings("m"), r"^base_url: needed"),
        ("azure_realtime", TargetSettings("m", "wss://h", extra={"reasoning_effort": "xhigh"}), r"reasoning_effort"),
        ("azure_realtime", TargetSettings("m", "wss://h", "ké"), r"^api_key_env: "),
        ("azure_realtime_preview", TargetSettings("m", "wss://h", extra={"api_version": "x"}), r"api_version"),
        ("openai_realtime_beta", TargetSettings("m", extra={"output_modalities": ["audio"]}), r"output_modalities"),
        ("xai_realtime", TargetSettings("m", extra={"speed": 0.5}), r"^settings\.speed"),
        ("xai_realtime", TargetSettings("m", extra={"output_rate_hz": 12345}), r"^settings\.output_rate_hz"),
        ("vercel_gateway", TargetSettings("grok-voice"), r"^model: must be <creator>/<model>"),
        ("vercel_gateway", TargetSettings("google/gemini"), r"^model: "),
    ],
)
def test_settings_that_are_refused_name_their_key(name: str, target: TargetSettings, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        registry.dialect(name).client(target)


def test_modes_that_a_vendor_does_not_have_are_refused(member: Make) -> None:
    for control in (
        TurnControlSettings(TurnMode.SEMANTIC_VAD),
        TurnControlSettings(TurnMode.SERVER_VAD, {"create_response": True}),
    ):
        with pytest.raises(SettingsError, match=r"^turn_control\."):
            member("xai_realtime").client.open(Setup("", (), 24_000, control))


# The session each of them sends


def opened(member: Make, label: str, mode: TurnMode = TurnMode.MANUAL, rate_hz: int = 24_000, **extra: Any) -> Any:
    both = member(label, **extra).open(mode, rate_hz)
    message = both.sent[0]
    session = message.get("session") or message["config"]
    session.pop("instructions")
    session.pop("tools")
    return both, session


def test_the_beta_shape_is_flat(member: Make) -> None:
    both, session = opened(member, "openai_realtime_beta", voice="ash", temperature=0.7, max_output_tokens=100)
    assert session == {
        "modalities": ["audio", "text"],
        "input_audio_format": "pcm16",
        "output_audio_format": "pcm16",
        "turn_detection": None,
        "voice": "ash",
        "temperature": 0.7,
        "max_response_output_tokens": 100,
    }
    (ready,) = both.of(SessionReady)
    assert (ready.echoed["voice"], ready.echoed["turn_detection"]) == ("ash", None)


@pytest.mark.parametrize(("manual_as", "written"), [("type_null", {"type": None}), ("null", None)])
def test_xai_has_voice_and_detection_at_the_top(member: Make, manual_as: str, written: Any) -> None:
    both, session = opened(
        member, "xai_realtime", rate_hz=16_000, voice="Eve", manual_as=manual_as, reasoning_effort="none", speed=1.2
    )
    assert session == {
        "voice": "Eve",
        "turn_detection": written,
        "reasoning": {"effort": "none"},
        "audio": {
            "input": {"format": {"type": "audio/pcm", "rate": 16000}},
            "output": {"format": {"type": "audio/pcm", "rate": 24000}, "speed": 1.2},
        },
    }
    (ready,) = both.of(SessionReady)
    assert (ready.echoed["voice"], ready.echoed["reasoning"]) == ("eve", {"effort": "none"})
    assert not both.of(Warned)
    both.speak(SPEECH, 16_000)
    assert AudioGiven(SPEECH, 16_000) in both.intents


def test_reasoning_effort_is_echoed_on_azure_and_through_the_gateway(member: Make) -> None:
    for label in ("azure_realtime", "openai_realtime", "vercel_gateway/openai", "vercel_gateway/xai"):
        both, _ = opened(member, label, reasoning_effort="low")
        assert both.of(SessionReady)[0].echoed["reasoning"] == {"effort": "low"}


def test_an_effort_that_the_model_lacks_is_refused_at_setup(member: Make) -> None:
    both, _ = opened(member, "vercel_gateway/xai", reasoning_effort="xhigh")
    (refused,) = both.of(Refused)
    assert refused.where == "session.reasoning.effort"
    assert "'none', 'low', 'medium' or 'high'" in refused.message


# Quirks


def test_the_emulated_beta_server_uses_the_old_names_alone(member: Make) -> None:
    for label in ("openai_realtime_beta", "azure_realtime_preview"):
        both = member(label, transcription={"model": "whisper-1"}).open()
        both.speak(SPEECH)
        both.to_client(both.server.answer(Reply((ReplyCall("book_table", {}),), "Hi.", SPEECH, 24_000, "Hello")))
        names = {message["type"] for message in both.received}
        assert {"response.audio.delta", "response.audio_transcript.done", "conversation.item.created"} <= names
        assert not {name for name in names if "output_audio" in name or name.endswith(("item.added", "item.done"))} - {
            "response.output_item.added",
            "response.output_item.done",
        }
        done = next(m for m in both.received if m["type"] == "response.function_call_arguments.done")
        assert "name" not in done
        closing = both.received[-1]["response"]
        assert closing["output"][0]["content"] == [{"type": "audio", "transcript": "Hi."}]
        assert closing["modalities"] == ["audio", "text"]
        assert both.of(ToolCall)[0].name == "book_table"
        assert both.of(InputTranscript) == [InputTranscript("Hello")]


def test_beta_text_answers(member: Make) -> None:
    both = member("openai_realtime_beta", modalities="text").open()
    both.to_server(both.client.text("Hi"))
    both.to_client(both.server.answer(Reply(text="Sure, done.")))
    assert "response.text.delta" in {message["type"] for message in both.received}
    assert "".join(event.text for event in both.of(TextDelta)) == "Sure, done."


def test_the_beta_servers_refuse_speech_without_text_and_todays_shape(member: Make) -> None:
    server = member("azure_realtime_preview").server
    for session, code, param in (
        ({"modalities": ["audio"]}, "invalid_value", "session.modalities"),
        ({"type": "realtime"}, "unknown_parameter", "session.type"),
    ):
        step = server.receive(InFrame(orjson.dumps({"type": "session.update", "session": session}), False, 0))
        error = orjson.loads(step.frames[0].payload)["error"]
        assert (error["code"], error["param"]) == (code, param)


def test_xai_repeats_and_accumulates_and_each_thing_counts_once(member: Make) -> None:
    both = member("xai_realtime", transcription={}).open()
    both.speak(SPEECH)
    both.to_client(
        both.server.answer(Reply((ReplyCall("book_table", {"party": 2}),), "Hi.", SPEECH, 24_000, "a table please"))
    )
    names = [message["type"] for message in both.received]
    assert names[:2] == ["session.created", "conversation.created"]
    assert names.count("conversation.item.input_audio_transcription.completed") == 3
    assert names.count("conversation.item.input_audio_transcription.updated") == 3
    assert "ping" in names
    heard = both.of(InputTranscript)
    assert "".join(event.text for event in heard if not event.final) == "a table please"
    assert [event.text for event in heard if event.final] == ["a table please"]
    assert len(both.of(ToolCallStarted)) == len(both.of(ToolCall)) == 1
    assert both.received[-1]["usage"] == both.of(Usage)[0].counts
    assert not both.of(Unrecognised)


def test_xai_races_are_benign_by_their_words(member: Make) -> None:
    both = member("xai_realtime").open()
    both.speak(SPEECH)
    both.to_server([frame for frame in both.client.commit_turn() if b"response.create" in frame.payload])
    (warned,) = both.of(Warned)
    assert (warned.code, "already has an active response" in warned.message) == ("invalid_request", True)
    assert not both.of(Failed)


@pytest.mark.parametrize("prefix", ["response.text", "response.output_text"])
def test_xai_text_under_either_name(member: Make, prefix: str) -> None:
    both = member("xai_realtime").open()
    both.to_server(both.client.text("Hi"))
    assert both.hear({"type": f"{prefix}.delta", "response_id": "resp_000001", "delta": "yes"}) == [TextDelta("yes")]


def test_an_answer_cancelled_by_its_own_event_has_ended(member: Make, label: str) -> None:
    both = member(label).open()
    both.to_server(both.client.text("Hi"))
    events = both.hear({"type": "response.cancelled", "response_id": "resp_000001"})
    assert [type(event).__name__ for event in events] == ["AnswerEnded"]


def test_the_gateways_route_is_recorded_and_doubled_events_count_once(member: Make) -> None:
    for label in ("vercel_gateway/openai", "vercel_gateway/xai"):
        both = member(label, transcription=True).open()
        assert both.sent[0]["config"]["turnDetection"] == {"type": "disabled"}
        assert both.of(SessionReady)[0].echoed["route"] == "vercel_ai_gateway"
        both.speak(SPEECH)
        both.to_client(both.server.answer(Reply(text="One, two, three.", pcm=SPEECH)))
        raws = [orjson.dumps(message["raw"]) for message in both.received]
        assert len(set(raws)) < len(raws)
        assert "".join(event.text for event in both.of(TranscriptDelta)) == "One, two, three."


def test_gateway_detection_is_written_as_the_ai_sdk_does(member: Make) -> None:
    both = member("vercel_gateway/openai").open(TurnMode.SEMANTIC_VAD, eagerness="high", interrupt_response=False)
    assert both.sent[0]["config"]["turnDetection"] == {
        "type": "semantic-vad",
        "eagerness": "high",
        "interruptResponse": False,
    }
    assert both.intents[0].setup.turn_control.mode is TurnMode.SEMANTIC_VAD


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Insufficient credits to go on", Failed(FailureKind.QUOTA, "x", "Insufficient credits to go on")),
        ("rate limit: try again in 2s", Failed(FailureKind.RATE_LIMIT, "x", "rate limit: try again in 2s", 2.0)),
        ("not supported in realtime mode", Refused("x", "not supported in realtime mode")),
    ],
)
def test_the_gateways_own_errors(member: Make, message: str, expected: Any) -> None:
    both = member("vercel_gateway/openai")
    both.client.open(Setup("", (), 24_000))
    assert both.hear({"type": "error", "code": "x", "message": message}) == [expected]


def test_too_large_a_message_is_refused_by_the_gateway(member: Make) -> None:
    both = member("vercel_gateway/openai").open()
    both.to_server(both.client.encode_clip(bytes(400_000), 24_000, 10_000).frames)
    assert both.received[-1]["code"] == "message_too_large"


@pytest.mark.parametrize(
    ("name", "query", "status"),
    [
        ("azure_realtime", {"model": "d"}, None),
        ("azure_realtime", {"model": "d", "api-version": "2025-04-01-preview"}, 400),
        ("azure_realtime", {}, 400),
        ("azure_realtime_preview", {"deployment": "d", "api-version": "2025-04-01-preview"}, None),
        ("azure_realtime_preview", {"deployment": "d"}, 400),
        ("vercel_gateway", {"ai-model-id": "openai/m"}, None),
        ("vercel_gateway", {"ai-model-id": "m"}, 400),
        ("openai_realtime", {}, None),
    ],
)
def test_handshakes_that_the_emulators_refuse(name: str, query: dict[str, str], status: int | None) -> None:
    server = registry.dialect(name).server()
    assert isinstance(server, ChecksHandshake)
    denied = server.denied(Handshake("/", query, {}))
    assert (denied.status if denied else None) == status
    if denied is not None:
        assert orjson.loads(denied.body)["error"]["message"]


# A peer that never confirms


class Quiet:
    """A transport whose peer says one thing and no more."""

    def __init__(self, said: bytes | None) -> None:
        self.said = said

    async def connect(self, endpoint: Any, on_frame: Callable[[InFrame], None], on_closed: Any) -> None:
        if self.said is not None:
            on_frame(InFrame(self.said, False, 0))

    def write(self, frame: Any) -> None: ...

    def backlog_bytes(self) -> int:
        return 0

    async def close(self, code: int = 1000, reason: str = "") -> None: ...


class Stopped:
    def now_ns(self) -> int:
        return 0


@pytest.mark.parametrize("opening", ["session.created", "conversation.created", None])
def test_xai_goes_on_without_a_confirmation_once_it_has_opened(
    member: Make, opening: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = member("xai_realtime")
    assert both.client.capabilities.ready_grace_s == 3.0
    from dataclasses import replace

    both.client.capabilities = replace(both.client.capabilities, ready_grace_s=0.01)
    said = None if opening is None else orjson.dumps({"type": opening})
    session = Session(both.client, Quiet(said), Stopped())  # type: ignore[arg-type]

    async def run() -> None:
        await session.open(Setup("", (), 24_000), 0.1)

    if opening is None:
        with pytest.raises(SessionError, match="not_ready"):
            anyio.run(run)
    else:
        anyio.run(run)
        assert session.ready == SessionReady(None, {"note": "not confirmed within 0.01 s"})
        session.start_turn()
        error = {"type": "error", "error": {"code": "odd", "message": "Later."}}
        assert both.hear(error) == [Warned("odd", "Later.", spoils_turn=True)]


# Ends of sessions, and refused handshakes over a real socket


@pytest.mark.parametrize(
    ("label", "code", "reason", "kind"),
    [
        ("azure_realtime", 1001, "session_expired: maximum duration of 30 minutes", FailureKind.TRANSIENT),
        ("xai_realtime", 1001, "", FailureKind.TRANSIENT),
        ("xai_realtime", 1011, "Your team has run out of credits", FailureKind.QUOTA),
        ("vercel_gateway/openai", 1008, "payment required", FailureKind.QUOTA),
        ("openai_realtime_beta", 1008, "policy", FailureKind.PROTOCOL),
    ],
)
def test_closes_during_a_turn(member: Make, label: str, code: int, reason: str, kind: FailureKind) -> None:
    both = member(label).open()
    both.speak(SPEECH)
    event = both.client.closed(ClosedBy(0, code, reason, True))
    assert isinstance(event, Failed)
    assert event.kind is kind


def test_the_emulator_refuses_a_handshake_and_our_client_says_why() -> None:
    async def run() -> Any:
        async with serve("azure_realtime", Nobody()) as port:
            url = f"ws://127.0.0.1:{port}/openai/v1/realtime?api-version=2025-04-01-preview"
            client = registry.dialect("azure_realtime").client(TargetSettings("dep", url))
            session = Session(client, WebSocketTransport(MonotonicClock()), MonotonicClock())
            with pytest.raises(SessionError) as refused:
                await session.open(Setup("", (), 24_000), 5.0)
            await session.close()
            return refused.value.event

    event = anyio.run(run)
    assert isinstance(event, Refused)
    assert event.code == "BadRequest"
    assert "api-version query parameter is not allowed" in event.message


class Nobody:
    async def reply(self, setup: Setup, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        raise AssertionError("nobody asks")

    def after_result(self, call: ReplyCall | None) -> Reply:
        raise AssertionError("nobody asks")
