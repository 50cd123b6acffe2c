"""Members of the chat-completions family: what each changes on the wire, and both halves against each other."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from adapters.chat_audio import ChatDialect, wav
from adapters.dialect import InputTooLargeError, SettingsError, Setup, TargetSettings, ToolSpec
from adapters.registry import dialect
from adapters.server import AnswerWanted, AudioGiven, Reply, ReplyCall, ServerStep, SetupGiven, ToolResultGiven
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Event,
    Failed,
    FailureKind,
    Served,
    TextDelta,
    ToolCall,
    ToolCallArguments,
    ToolCallStarted,
    TranscriptDelta,
    Usage,
    Warned,
)
from captures.frames import InFrame, OutFrame

TOOL = ToolSpec("refund", "Gives money back.", {"type": "object", "properties": {"amount": {"type": "integer"}}})
MEMBERS = ("openai_chat", "openrouter", "dashscope", "mistral", "stepfun_chat", "groq", "llamacpp", "vllm")
PCM = bytes(3200)


class Pair:
    """A member's client half and, for each request, a fresh server half."""

    def __init__(self, name: str, **extra: Any) -> None:
        self.info: Any = dialect(name)
        self.client = self.info.client(TargetSettings("m", None, None, extra))
        self.rate_hz = self.client.capabilities.input_rates_hz[0]
        self.setup = Setup("Help.", (TOOL,), self.rate_hz)
        self.client.open(self.setup)
        self.server = self.info.server()
        self.body: Any = None

    def post(self, frames: Any) -> ServerStep:
        (frame,) = frames
        self.body = json.loads(frame.payload)
        self.server = self.info.server()
        step: ServerStep = self.server.receive(InFrame(frame.payload, False, 0))
        return step

    def speak(self) -> ServerStep:
        self.client.hold(self.client.encode_clip(PCM, self.rate_hz, 20).frames[0])
        return self.post(self.client.commit_turn())

    def answer(self, reply: Reply, fault: str = "") -> list[Event]:
        frames = self.server.answer(reply)
        return self.read(self.server.answer_faults[fault](frames) if fault else frames)

    def read(self, frames: Any) -> list[Event]:
        events: list[Event] = []
        for frame in frames:
            payload = frame.payload.removeprefix(b"data: ") if frame.payload.startswith(b"data: ") else frame.payload
            events += self.client.receive(InFrame(payload.strip(), False, 0))[0]
        return events


def kinds(events: list[Event], *wanted: type) -> list[Any]:
    return [event for event in events if isinstance(event, wanted)]


@pytest.mark.parametrize("name", MEMBERS)
def test_a_tool_turn_and_its_result(name: str) -> None:
    pair = Pair(name)
    assert pair.speak().intents == [SetupGiven(pair.setup), AudioGiven(PCM, pair.rate_hz), AnswerWanted(None)]
    events = pair.answer(Reply((ReplyCall("refund", {"amount": 5}), ReplyCall("refund", {})), "On it."))
    calls = kinds(events, ToolCall)
    assert [(call.name, call.arguments, call.output_index) for call in calls] == [
        ("refund", {"amount": 5}, 0),
        ("refund", {}, 1),
    ]
    assert len({call.call_id for call in calls}) == 2
    assert [event.call_id for event in kinds(events, ToolCallStarted)] == [call.call_id for call in calls]
    assert "".join(event.text for event in kinds(events, TextDelta)) == "On it."
    assert isinstance(events[-1], AnswerEnded)
    (usage,) = kinds(events, Usage)
    assert usage.counts["total_tokens"] > 200
    (served,) = kinds(events, Served)
    assert served.details["finish_reason"] == "tool_calls"
    assert served.details["temperature"] == "vendor default"
    assert pair.client.tool_result(calls[0].call_id, "paid") == ()
    intents = pair.post(pair.client.tool_result(calls[1].call_id, "paid")).intents
    assert [intent.output for intent in intents if isinstance(intent, ToolResultGiven)] == ["paid", "paid"]
    assert kinds(pair.answer(Reply(text="Done.")), AnswerEnded) == [AnswerEnded(AnswerEnd.COMPLETED, "stop")]


@pytest.mark.parametrize("name", MEMBERS[1:])
def test_a_text_twin_differs_in_the_caller_turn_alone(name: str) -> None:
    pair = Pair(name)
    assert pair.client.capabilities.text_twin
    pair.speak()
    spoken = pair.body
    twin = Pair(name)
    assert twin.post(twin.client.text("Money back!")).intents[-1] == AnswerWanted("Money back!")
    spoken["messages"][-1] = twin.body["messages"][-1]
    assert twin.body == spoken


def test_gpt_audio_has_no_text_twin() -> None:
    pair = Pair("openai_chat", modalities=["text"])
    assert not pair.client.capabilities.text_twin
    step = pair.post(pair.client.text("Money back!"))
    assert step.close == (400, "invalid_request_error")
    assert b"contain audio" in step.frames[0].payload


def audio_part(pair: Pair) -> Any:
    pair.speak()
    (part,) = pair.body["messages"][-1]["content"]
    assert part["type"] == "input_audio"
    return part["input_audio"]


class TestRequests:
    def test_bare_base64_a_data_uri_and_a_plain_string(self) -> None:
        wanted = base64.b64encode(wav.encode(PCM, 16000)).decode()
        assert audio_part(Pair("llamacpp")) == {"data": wanted, "format": "wav"}
        assert audio_part(Pair("dashscope")) == {"data": f"data:;base64,{wanted}", "format": "wav"}
        assert audio_part(Pair("mistral")) == wanted
        assert audio_part(Pair("stepfun_chat"))["data"] == f"data:audio/wav;base64,{wanted}"

    def test_each_server_refuses_the_other_form(self) -> None:
        bare, uri = Pair("openai_chat"), Pair("dashscope")
        bare.speak()
        uri.speak()
        for body, name in ((bare.body, "dashscope"), (uri.body, "openai_chat"), (bare.body, "mistral")):
            body |= {"stream": True} if name == "dashscope" else {}
            server: Any = dialect(name)
            step = server.server().receive(InFrame(json.dumps(body).encode(), False, 0))
            assert step.close == (400, "invalid_request_error")

    def test_dashscope_streams_with_usage_and_text_alone(self) -> None:
        pair = Pair("dashscope", enable_thinking=False, region="ap-southeast-1")
        pair.speak()
        assert pair.body["stream"] is True
        assert pair.body["stream_options"] == {"include_usage": True}
        assert (pair.body["modalities"], pair.body["enable_thinking"]) == (["text"], False)
        assert "region" not in pair.body
        assert pair.client.endpoint().url == "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"
        del pair.body["stream"]
        step = pair.info.server().receive(InFrame(json.dumps(pair.body).encode(), False, 0))
        assert b"only support stream mode" in step.frames[0].payload

    def test_mistral_seed_and_greedy_sampling(self) -> None:
        pair = Pair("mistral", temperature=0, seed=7)
        assert pair.speak().close is None
        assert (pair.body["random_seed"], pair.body["temperature"], pair.body["top_p"]) == (7, 0, 1)
        assert "seed" not in pair.body
        pair.body["top_p"] = 0.5
        step = pair.info.server().receive(InFrame(json.dumps(pair.body).encode(), False, 0))
        assert b"greedy sampling" in step.frames[0].payload

    def test_openrouter_pins_its_host_and_says_who_answered(self) -> None:
        pair = Pair("openrouter", upstream="rig")
        pair.speak()
        assert pair.body["provider"] == {"order": ["rig"], "allow_fallbacks": False}
        events = pair.answer(Reply(text="Hi"))
        assert kinds(events, Served)[0].details["upstream"] == "Rig Emulator"
        assert kinds(events, Warned) == []
        other = Pair("openrouter", upstream="mistral")
        other.speak()
        assert kinds(other.answer(Reply(text="Hi")), Warned)[0].code == "other_upstream"
        with pytest.raises(SettingsError, match="exclude each other"):
            Pair("openrouter", upstream="mistral", provider={"order": ["groq"]})

    def test_a_temperature_is_recorded(self) -> None:
        pair = Pair("vllm", temperature=0.5)
        pair.speak()
        assert kinds(pair.answer(Reply(text="Hi")), Served)[0].details["temperature"] == "0.5"

    def test_clips_past_a_limit_name_it_before_any_request(self) -> None:
        with pytest.raises(InputTooLargeError, match=r"lasts 2401\.0 s, more than Mistral's limit of 2400 s"):
            Pair("mistral").client.encode_clip(bytes(2401 * 2 * 1000), 1000, 20)
        with pytest.raises(InputTooLargeError, match="more than DashScope's limit of 10,000,000"):
            Pair("dashscope").client.encode_clip(bytes(8_000_000), 16000, 20)


class TestStreams:
    def spoken(self, **extra: Any) -> Pair:
        pair = Pair("dashscope", **extra)
        pair.speak()
        return pair

    def test_fragments_join_to_what_was_called(self) -> None:
        pair = self.spoken()
        events = pair.answer(Reply((ReplyCall("refund", {"amount": 12345}),)))
        (call,) = kinds(events, ToolCall)
        pieces = [event.delta for event in kinds(events, ToolCallArguments)]
        assert "".join(pieces) == call.arguments_json == '{"amount":12345}'
        assert len(kinds(events, Usage)) == 1

    def test_speech_is_bare_pcm_however_it_is_cut(self) -> None:
        pair = self.spoken(modalities=["text", "audio"], voice="Cherry")
        assert pair.body["audio"] == {"voice": "Cherry", "format": "wav"}
        pcm = bytes(range(250)) * 4
        frames = [json.loads(frame.payload[6:]) for frame in list(pair.server.answer(Reply((), "Hey.", pcm)))[:-1]]
        (data,) = [part for body in frames for part in [_delta(body).get("audio", {}).get("data")] if part]
        chunk = next(body for body in frames if _delta(body).get("audio", {}).get("data"))
        cut = [{**chunk, "choices": [{"delta": {"audio": {"data": piece}}}]} for piece in (data[:5], data[5:333])]
        cut.append({**chunk, "choices": [{"delta": {"audio": {"data": data[333:]}}}]})
        rest = [body for body in frames if body is not chunk]
        events = pair.read([OutFrame(json.dumps(body).encode()) for body in (*cut, *rest)] + [OutFrame(b"[DONE]")])
        assert b"".join(event.pcm for event in kinds(events, AudioDelta)) == pcm
        assert "".join(event.text for event in kinds(events, TranscriptDelta)) == "Hey."

    def test_an_error_inside_the_stream(self) -> None:
        pair = self.spoken()
        (first, *_) = pair.server.answer(Reply(text="Hi"))
        error = {"error": {"code": "limit_requests", "message": "slow down"}}
        assert kinds(pair.read([first, OutFrame(json.dumps(error).encode())]), Failed)[0].code == "limit_requests"

    def test_a_stream_of_nothing_is_no_silence(self) -> None:
        assert self.spoken().read([OutFrame(b"[DONE]")])[0].kind is FailureKind.PROTOCOL  # type: ignore[union-attr]

    def test_a_cut_call_is_a_wrong_one(self) -> None:
        pair = self.spoken()
        events = pair.answer(Reply((ReplyCall("refund", {"amount": 5}),)), "cut-arguments")
        assert [(call.name, call.arguments) for call in kinds(events, ToolCall)] == [("refund", None)]


def _delta(body: Any) -> Any:
    return body["choices"][0]["delta"] if body["choices"] else {}


@pytest.mark.parametrize("name", ["openai_chat", "openrouter", "dashscope", "mistral"])
def test_audio_that_was_not_counted_voids_the_row(name: str) -> None:
    pair = Pair(name)
    pair.speak()
    events = pair.answer(Reply((ReplyCall("refund", {}),)), "deaf")
    (failed,) = kinds(events, Failed)
    assert (failed.kind, failed.code) == (FailureKind.AUDIO_NOT_HEARD, "audio_not_heard")
    assert not kinds(events, AnswerEnded)
    trusting = Pair(name, usage_tells_hearing=False)
    trusting.speak()
    assert not kinds(trusting.answer(Reply((ReplyCall("refund", {}),)), "deaf"), Failed)
    twin = Pair(name, **({"modalities": ["text", "audio"]} if name == "openai_chat" else {}))
    twin.post(twin.client.text("Back!"))
    assert not kinds(twin.answer(Reply(text="Hi")), Failed)


def test_a_model_that_could_not_be_parsed_made_a_wrong_call() -> None:
    for body in (
        {"error": {"code": "tool_use_failed", "message": "Failed to call a function", "failed_generation": "<fn"}},
        {"error": {"code": 500, "type": "server_error", "message": "Failed to parse input at pos 7: <fn"}},
    ):
        pair = Pair("groq")
        pair.speak()
        events = pair.read([OutFrame(json.dumps(body).encode())])
        assert [(call.name, call.arguments) for call in kinds(events, ToolCall)] == [(None, None)]
        assert isinstance(events[-1], AnswerEnded)


def test_every_member_names_its_key_and_takes_no_foreign_setting() -> None:
    for name in MEMBERS:
        info = dialect(name)
        assert isinstance(info, ChatDialect)
        assert info.name == name
        assert info.default_key_env is None or info.default_key_env.endswith("_API_KEY")
        with pytest.raises(SettingsError, match=r"settings\.temprature"):
            info.client(TargetSettings("m", None, None, {"temprature": 0}))
        with pytest.raises(SettingsError, match="model: required"):
            info.client(TargetSettings(""))
