"""generateContent: requests and responses, both halves, Google's own SDK as a witness, and what it sends for us."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from aiohttp import web
from anyio.from_thread import start_blocking_portal
from google import genai
from google.genai import types

from adapters.chat_audio import wav
from adapters.dialect import InputTooLargeError, SettingsError, Setup, TargetSettings, ToolSpec
from adapters.gemini_file import DIALECT
from adapters.gemini_file.client import GeminiFileClient
from adapters.gemini_file.server import GeminiFileServer
from adapters.gemini_live.wire import camel
from adapters.server import AnswerWanted, AudioGiven, Reply, ReplyCall, ServerStep, SetupGiven, ToolResultGiven
from captures.clock import MonotonicClock
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    Event,
    Failed,
    FailureKind,
    Refused,
    Served,
    TextDelta,
    ToolCall,
    Usage,
)
from captures.frames import InFrame, OutFrame
from rig.agents.emulator import base_url, serve
from transports.transport import TransportError

KEY = "TESTKEY-not-real-7f3a9c"
SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer", "enum": [5, 10]}}}
SETUP = Setup("Help.", (ToolSpec("refund", "Gives money back.", SCHEMA),), 16000)
PCM = bytes(3200)


def client(url: str | None = None, **extra: Any) -> GeminiFileClient:
    half = GeminiFileClient(TargetSettings("gemini-3.8-flash", url, KEY, extra))
    half.open(SETUP)
    return half


def spoken(half: GeminiFileClient) -> bytes:
    half.hold(half.encode_clip(PCM, 16000, 20).frames[0])
    (frame,) = half.commit_turn()
    return frame.payload


def post(payload: bytes) -> tuple[GeminiFileServer, ServerStep]:
    server = GeminiFileServer()
    return server, server.receive(InFrame(payload, False, 0))


def read(half: GeminiFileClient, body: Any) -> list[Event]:
    payload = body.payload if isinstance(body, OutFrame) else json.dumps(body).encode()
    return list(half.receive(InFrame(payload, False, 0))[0])


def candidate(reason: str, *parts: Any) -> Any:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": reason}]}


def test_a_tool_turn_its_result_and_the_signature_that_goes_back() -> None:
    half = client(temperature=0)
    payload = spoken(half)
    server, step = post(payload)
    (setup, audio, wanted) = step.intents
    assert (audio, wanted) == (AudioGiven(PCM, 16000), AnswerWanted(None))
    assert isinstance(setup, SetupGiven)
    assert setup.setup.instructions == "Help."
    assert setup.setup.tools[0].parameters["properties"]["amount"]["enum"] == ["5", "10"]  # as Gemini must be shown it
    (frame,) = server.answer(Reply((ReplyCall("refund", {"amount": "5"}), ReplyCall("refund", {"amount": "10"}))))
    events = read(half, frame)
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert [call.arguments for call in calls] == [{"amount": 5}, {"amount": 10}]  # and back again
    assert next(event for event in events if isinstance(event, Served)).details == {
        "model": "rig-emulator",
        "finish_reason": "STOP",
        "temperature": "0",
    }
    assert half.tool_result(calls[0].call_id, "paid") == ()
    (later,) = half.tool_result(calls[1].call_id, "paid too")
    _, step = post(later.payload)
    assert [one.output for one in step.intents if isinstance(one, ToolResultGiven)] == ["paid", "paid too"]
    body = json.loads(later.payload)
    assert body["contents"][1]["parts"][0]["thoughtSignature"]
    del body["contents"][1]["parts"][0]["thoughtSignature"]
    assert post(json.dumps(body).encode())[1].close == (400, "INVALID_ARGUMENT")


def test_a_text_twin_differs_in_one_part() -> None:
    audio, twin = json.loads(spoken(client())), json.loads(client().text("Back!")[0].payload)
    assert twin["contents"] == [{"role": "user", "parts": [{"text": "Back!"}]}]
    assert audio | {"contents": twin["contents"]} == twin


@pytest.mark.parametrize(
    ("body", "ending"),
    [
        (candidate("STOP", {"text": "Hi"}), AnswerEnded(AnswerEnd.COMPLETED, "STOP")),
        (candidate("STOP"), AnswerEnded(AnswerEnd.COMPLETED, "STOP")),
        (candidate("MAX_TOKENS"), AnswerEnded(AnswerEnd.LENGTH, "MAX_TOKENS")),
        (candidate("SAFETY"), AnswerEnded(AnswerEnd.CONTENT_FILTER, "SAFETY")),
        (
            {"promptFeedback": {"blockReason": "OTHER"}},
            AnswerEnded(AnswerEnd.CONTENT_FILTER, "prompt blocked: OTHER"),
        ),
    ],
)
def test_endings(body: Any, ending: Event) -> None:
    half = client()
    half.text("Hi")
    assert read(half, body)[-1] == ending


def test_thoughts_are_not_said_and_a_malformed_call_is_a_wrong_one() -> None:
    half = client()
    half.text("Hi")
    events = read(half, candidate("STOP", {"text": "hm", "thought": True}, {"text": "Hi"}))
    assert [event for event in events if isinstance(event, TextDelta)] == [TextDelta("Hi")]
    half.text("Hi")
    events = read(half, candidate("MALFORMED_FUNCTION_CALL"))
    assert [(event.name, event.arguments) for event in events if isinstance(event, ToolCall)] == [(None, None)]


def test_audio_that_was_not_counted_voids_the_row() -> None:
    half = client()
    server, _ = post(spoken(half))
    (frame,) = server.answer_faults["deaf"](server.answer(Reply(text="Hi")))
    failed = read(half, frame)[-1]
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.AUDIO_NOT_HEARD


def quota(quota_id: str, *more: Any) -> str:
    details = [{"violations": [{"quotaId": quota_id}]}, *more]
    return json.dumps({"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": details}})


@pytest.mark.parametrize(
    ("status", "body", "kind", "wait_s"),
    [
        (429, quota("PerMinutePerProject", {"retryDelay": "37s"}), FailureKind.RATE_LIMIT, 37.0),
        (429, quota("RequestsPerDayPerProject", {"retryDelay": "37s"}), FailureKind.QUOTA, None),
        (503, json.dumps({"error": {"message": "overloaded", "status": "UNAVAILABLE"}}), FailureKind.TRANSIENT, None),
    ],
)
def test_failures(status: int, body: str, kind: FailureKind, wait_s: float | None) -> None:
    found = client().connect_failed(TransportError("t", code=f"http_{status}", status=status, body=body))
    assert isinstance(found, Failed)
    assert (found.kind, found.retry_after_s) == (kind, wait_s)


def test_a_bad_key_is_http_400_and_is_not_repeated() -> None:
    body = json.dumps({"error": {"message": f"API key not valid: {KEY}", "status": "INVALID_ARGUMENT"}})
    found = client().connect_failed(TransportError("t", code="http_400", status=400, body=body))
    assert isinstance(found, Refused)
    assert "check the key" in found.message
    assert KEY not in found.message


def test_settings_and_limits() -> None:
    for model, says in (("", "required"), ("gemini-3.1-flash-live-preview", "adapter: gemini_live")):
        with pytest.raises(SettingsError, match=says):
            GeminiFileClient(TargetSettings(model))
    with pytest.raises(SettingsError, match="exclude each other"):
        client(thinking_level="low", thinking_budget=3)
    with pytest.raises(InputTooLargeError, match="Gemini's limit of 34200 s"):
        client().encode_clip(bytes(2 * 34_201 * 10), 10, 20)


class Clerk:
    """Calls the tool."""

    async def reply(self, setup: Any, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        assert pcm == PCM
        return Reply((ReplyCall("refund", {"amount": 5}),), "On it.")

    def after_result(self, call: ReplyCall | None) -> Reply:
        return Reply(text="Paid.")


@pytest.fixture
def url() -> Iterator[str]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve("gemini_file", Clerk())) as port:
        yield base_url("gemini_file", "127.0.0.1", port)


def test_googles_sdk_and_a_result(url: str) -> None:
    with genai.Client(api_key="k", vertexai=False, http_options=types.HttpOptions(base_url=url)) as sdk:
        declared = types.FunctionDeclaration(name="refund", parameters_json_schema=SCHEMA)
        config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
        asked = types.Content(
            role="user", parts=[types.Part.from_bytes(data=wav.encode(PCM, 16000), mime_type="audio/wav")]
        )
        answer = sdk.models.generate_content(model="gemini-3.8-flash", contents=[asked], config=config)
        assert answer.function_calls is not None
        assert (answer.function_calls[0].name, answer.function_calls[0].args) == ("refund", {"amount": 5})
        assert answer.usage_metadata is not None
        assert answer.usage_metadata.prompt_tokens_details is not None
        assert answer.usage_metadata.prompt_tokens_details[1].token_count == 4
        called = answer.candidates[0].content if answer.candidates else None
        result = types.Content(
            role="user", parts=[types.Part.from_function_response(name="refund", response={"result": "ok"})]
        )
        later = sdk.models.generate_content(model="m", contents=[asked, called, result], config=config)  # type: ignore[list-item]
        assert later.text == "Paid."


def respelt(value: Any) -> Any:
    if isinstance(value, dict):
        return {camel(key): respelt(inner) for key, inner in value.items()}
    return [respelt(inner) for inner in value] if isinstance(value, list) else value


def test_the_sdk_sends_what_the_frame_holds_and_hands_on_what_came() -> None:
    seen: list[tuple[str, str | None, Any]] = []
    told = b'{"candidates": [{"content": {"parts": [{"text": "Hi", "unknownField": 1}]}, "finishReason": "STOP"}]}'

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.path, request.headers.get("x-goog-api-key"), await request.json()))
        return web.Response(body=told, content_type="application/json")

    async def main() -> list[bytes]:
        app = web.Application()
        app.router.add_post("/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        half = client(f"http://127.0.0.1:{runner.addresses[0][1]}", temperature=0.5, seed=3, thinking_level="low")
        transport = DIALECT.transport(MonotonicClock())
        frames: list[bytes] = []
        arrived = anyio.Event()

        def on_frame(frame: InFrame) -> None:
            frames.append(frame.payload)
            arrived.set()

        await transport.connect(half.endpoint(), on_frame, lambda _: None)
        try:
            with anyio.fail_after(20):
                payload = spoken(half)
                transport.write(OutFrame(payload))
                await arrived.wait()
        finally:
            await transport.close()
            await runner.cleanup()
        return [payload, *frames]

    sent, received = anyio.run(main)
    assert received == told
    ((path, key, body),) = seen
    assert (path, key) == ("/v1beta/models/gemini-3.8-flash:generateContent", KEY)
    assert respelt(body) == json.loads(sent)  # the SDK mixes both spellings of a key


def test_usage_is_kept_as_the_vendor_counts_it() -> None:
    half = client()
    server, _ = post(spoken(half))
    (frame,) = server.answer(Reply(text="Hi"))
    (usage,) = [event for event in read(half, frame) if isinstance(event, Usage)]
    assert usage.counts["promptTokensDetails"][1] == {"modality": "AUDIO", "tokenCount": 4}


def test_without_the_sdk_the_target_is_refused_with_the_way_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.gemini_file.sdk._installed", lambda: False)
    DIALECT.preload()
    half = client("http://127.0.0.1:1")

    async def main() -> TransportError:
        with pytest.raises(TransportError) as raised:
            await DIALECT.transport(MonotonicClock()).connect(half.endpoint(), lambda _: None, lambda _: None)
        return raised.value

    found = half.connect_failed(anyio.run(main))
    assert isinstance(found, Refused)
    assert "voice-agent-rig[google]" in found.message
