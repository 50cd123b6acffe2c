"""The vendor's SDK as witness for Azure and the beta shape: its clients hold turns with our server halves, its types
accept our clients' frames."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, get_args

import orjson
import pytest
from aiohttp import WSMsgType, web
from openai import AsyncAzureOpenAI, AsyncOpenAI
from openai.types.beta.realtime.realtime_client_event import RealtimeClientEvent as BetaClientEvent
from openai.types.beta.realtime.realtime_server_event import RealtimeServerEvent as BetaServerEvent
from openai.types.realtime import RealtimeClientEvent
from openai.types.realtime.realtime_server_event import RealtimeServerEvent
from pydantic import TypeAdapter
from websockets.exceptions import InvalidStatus

from adapters import registry
from adapters.dialect import Setup, TargetSettings, TurnControlSettings, TurnMode
from adapters.server import AnswerWanted, AudioGiven, Denied, Handshake, Intent, Reply, ReplyCall, ToolResultGiven
from captures.frames import InFrame

SPEECH = bytes(range(256)) * 100
PARAMETERS = {"type": "object", "properties": {"party": {"type": "integer"}}}
TOOL = {"type": "function", "name": "book_table", "description": "Books a table.", "parameters": PARAMETERS}
Talk = Callable[[Any], Coroutine[Any, Any, None]]


def server_events(union: Any) -> dict[str, Any]:
    return {
        get_args(kind.model_fields["type"].annotation)[0]: kind
        for kind in get_args(get_args(union)[0])
        if "type" in kind.model_fields
    }


@asynccontextmanager
async def hosted(
    name: str, path: str, replies: list[Reply], intents: list[Intent], requests: list[web.Request]
) -> AsyncIterator[int]:
    """A server half behind a loopback WebSocket; gives one reply per wanted answer."""

    async def serve(request: web.Request) -> web.StreamResponse:
        requests.append(request)
        half: Any = registry.dialect(name).server()
        denied: Denied | None = half.denied(Handshake(request.path, dict(request.query), {}))
        if denied is not None:
            return web.Response(status=denied.status, body=denied.body, content_type="application/json")
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        for frame in half.greeting(dict(request.query)):
            await socket.send_str(frame.payload.decode())
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                break
            step = half.receive(InFrame(message.data.encode(), False, 0))
            intents.extend(step.intents)
            frames = list(step.frames)
            if any(isinstance(intent, AnswerWanted) for intent in step.intents):
                frames += half.answer(replies.pop(0))
            for frame in frames:
                await socket.send_str(frame.payload.decode())
        return socket

    app = web.Application()
    app.router.add_get(path, serve)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def until(connection: Any, kind: str, known: dict[str, Any]) -> list[Any]:
    events: list[Any] = []
    while not events or events[-1].type != kind:
        events.append(await connection.recv())
        model = known[events[-1].type]
        assert type(events[-1]) is model
        model.model_validate(events[-1].to_dict(), strict=True)
    return events


async def tool_turn(connection: Any, session: dict[str, Any], known: dict[str, Any], prefix: str) -> None:
    """A spoken turn with words and a call, its result, and the answer after it."""
    await until(connection, "session.created", known)
    await connection.session.update(session=session)
    updated = (await until(connection, "session.updated", known))[-1].session
    assert updated.tools[0].name == "book_table"
    for start in range(0, len(SPEECH), 960):
        await connection.input_audio_buffer.append(audio=base64.b64encode(SPEECH[start : start + 960]).decode())
    await connection.input_audio_buffer.commit()
    await connection.response.create()
    heard = await until(connection, "response.done", known)
    audio = b"".join(base64.b64decode(event.delta) for event in heard if event.type == f"{prefix}.delta")
    assert audio == SPEECH
    (completed,) = [e for e in heard if e.type == "conversation.item.input_audio_transcription.completed"]
    assert completed.transcript == "A table for four"
    response = heard[-1].response
    assert response.status == "completed"
    assert response.usage.total_tokens > 0
    message, call = response.output
    assert (message.content[0].transcript, call.name) == ("One moment.", "book_table")
    assert orjson.loads(call.arguments) == {"party": 4}
    await connection.conversation.item.create(
        item={"type": "function_call_output", "call_id": call.call_id, "output": '{"ok":true}'}
    )
    await connection.response.create()
    heard = await until(connection, "response.done", known)
    assert heard[-1].response.output[0].content[0].transcript == "Booked."


REPLIES = (
    Reply((ReplyCall("book_table", {"party": 4}),), "One moment.", SPEECH, 24_000, "A table for four"),
    Reply(text="Booked."),
)


def with_server(name: str, path: str, talk: Callable[[int], Coroutine[Any, Any, None]]) -> web.Request:
    """Runs `talk` with the port, checks what arrived, and gives the handshake."""
    intents: list[Intent] = []
    requests: list[web.Request] = []

    async def run() -> None:
        async with hosted(name, path, list(REPLIES), intents, requests) as port, asyncio.timeout(20):
            await talk(port)

    asyncio.run(run())
    assert AudioGiven(SPEECH, 24_000) in intents
    assert [intent.output for intent in intents if isinstance(intent, ToolResultGiven)] == ['{"ok":true}']
    return requests[0]


GA_SESSION = {
    "type": "realtime",
    "instructions": "Be brief.",
    "tools": [TOOL],
    "output_modalities": ["audio"],
    "reasoning": {"effort": "low"},
    "audio": {"input": {"turn_detection": None, "transcription": {"model": "my-transcriber"}}},
}
BETA_MODEL = "gpt-4o-realtime-preview"
"""The SDK's beta types list the models."""
BETA_SESSION = {
    "instructions": "Be brief.",
    "modalities": ["audio", "text"],
    "input_audio_format": "pcm16",
    "input_audio_transcription": {"model": "whisper-1"},
    "turn_detection": None,
    "tools": [TOOL],
    "voice": "alloy",
    "temperature": 0.7,
}


def test_the_sdk_with_an_azure_base_url_holds_a_tool_turn() -> None:
    async def talk(port: int) -> None:
        sdk = AsyncOpenAI(
            api_key="TESTKEY",
            base_url=f"http://127.0.0.1:{port}/openai/v1",
            default_headers={"api-key": "TESTKEY"},
        )
        async with sdk, sdk.realtime.connect(model="my-deployment") as connection:
            await tool_turn(connection, GA_SESSION, server_events(RealtimeServerEvent), "response.output_audio")

    request = with_server("azure_realtime", "/openai/v1/realtime", talk)
    assert (dict(request.query), request.headers["api-key"]) == ({"model": "my-deployment"}, "TESTKEY")


def test_the_azure_sdk_holds_a_tool_turn_on_the_preview_path() -> None:
    async def talk(port: int) -> None:
        sdk = AsyncAzureOpenAI(
            api_key="TESTKEY",
            azure_endpoint=f"http://127.0.0.1:{port}",
            websocket_base_url=f"ws://127.0.0.1:{port}/openai",
            api_version="2025-04-01-preview",
        )
        async with sdk, sdk.beta.realtime.connect(model=BETA_MODEL) as connection:
            await tool_turn(connection, BETA_SESSION, server_events(BetaServerEvent), "response.audio")

    request = with_server("azure_realtime_preview", "/openai/realtime", talk)
    assert dict(request.query) == {"deployment": BETA_MODEL, "api-version": "2025-04-01-preview"}
    assert request.headers["api-key"] == "TESTKEY"


def test_the_beta_sdk_holds_a_tool_turn() -> None:
    async def talk(port: int) -> None:
        sdk = AsyncOpenAI(api_key="TESTKEY", websocket_base_url=f"ws://127.0.0.1:{port}/v1")
        async with sdk, sdk.beta.realtime.connect(model=BETA_MODEL) as connection:
            await tool_turn(connection, BETA_SESSION, server_events(BetaServerEvent), "response.audio")

    request = with_server("openai_realtime_beta", "/v1/realtime", talk)
    assert request.headers["OpenAI-Beta"] == "realtime=v1"


def test_an_api_version_on_azures_ga_path_is_refused() -> None:
    async def run() -> int:
        async with hosted("azure_realtime", "/openai/v1/realtime", [], [], []) as port:
            sdk = AsyncAzureOpenAI(
                api_key="TESTKEY",
                azure_endpoint=f"http://127.0.0.1:{port}",
                websocket_base_url=f"ws://127.0.0.1:{port}/openai/v1",
                api_version="2025-04-01-preview",
            )
            with pytest.raises(InvalidStatus) as refused:
                async with sdk, sdk.realtime.connect(model="my-deployment"):
                    pass
            return int(refused.value.response.status_code)

    assert asyncio.run(run()) == 400


VAD = {"threshold": 0.4, "silence_duration_ms": 300, "prefix_padding_ms": 200}


@pytest.mark.parametrize(
    ("name", "union", "extra"),
    [
        (
            "azure_realtime",
            RealtimeClientEvent,
            {"voice": "marin", "reasoning_effort": "high", "transcription": {"model": "d"}, "speed": 1.1},
        ),
        (
            "azure_realtime_preview",
            BetaClientEvent,
            {"voice": "alloy", "temperature": 0.8, "transcription": {"model": "d"}, "max_output_tokens": "inf"},
        ),
        (
            "openai_realtime_beta",
            BetaClientEvent,
            {"voice": "ash", "noise_reduction": "near_field", "speed": 1.1, "tool_choice": "required"},
        ),
    ],
)
@pytest.mark.parametrize(
    ("mode", "parameters"),
    [(TurnMode.MANUAL, {}), (TurnMode.SERVER_VAD, VAD), (TurnMode.SEMANTIC_VAD, {"eagerness": "high"})],
)
def test_our_clients_frames_are_of_the_sdks_types(
    name: str, union: Any, extra: dict[str, Any], mode: TurnMode, parameters: dict[str, Any], tools: Any
) -> None:
    client = registry.dialect(name).client(TargetSettings("m", "ws://127.0.0.1:1", extra=extra))
    frames = [*client.open(Setup("Be brief.", tools, 24_000, TurnControlSettings(mode, parameters)))]
    frames += [*client.start_turn(), *client.encode_clip(SPEECH, 24_000, 20).frames, client.encode_silence(24_000, 20)]
    frames += [*client.commit_turn(), *client.text("Hello"), *client.tool_result("c1", "{}"), *client.cancel()]
    client.receive(InFrame(b'{"type":"response.audio.delta","item_id":"i","content_index":0,"delta":"AAAA"}', False, 0))
    frames += client.truncate(120)
    adapter: TypeAdapter[Any] = TypeAdapter(union)
    for frame in frames:
        message = orjson.loads(frame.payload)
        accepted = adapter.validate_python(message, strict=True)
        assert accepted.to_dict(exclude_unset=True) == message
