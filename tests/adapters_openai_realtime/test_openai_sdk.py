"""The vendor's SDK as witness: its client holds turns with our server half, its types accept our client's frames."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, get_args

import orjson
import pytest
from aiohttp import WSMsgType, web
from openai import AsyncOpenAI
from openai.types.realtime import RealtimeClientEvent
from openai.types.realtime.realtime_server_event import RealtimeServerEvent
from pydantic import TypeAdapter

from adapters.dialect import Setup, TargetSettings, ToolSpec, TurnControlSettings, TurnMode
from adapters.openai_realtime import DIALECT
from adapters.server import AnswerCancelled, AnswerWanted, Intent, Reply, ReplyCall
from captures.frames import InFrame

SPEECH = bytes(range(256)) * 100
SERVER_EVENTS = {
    get_args(kind.model_fields["type"].annotation)[0]: kind for kind in get_args(get_args(RealtimeServerEvent)[0])
}
CLIENT_EVENTS: TypeAdapter[Any] = TypeAdapter(RealtimeClientEvent)
TOOL = {
    "type": "function",
    "name": "book_table",
    "description": "Books a table.",
    "parameters": {"type": "object", "properties": {"party": {"type": "integer"}}},
}
SESSION = {
    "type": "realtime",
    "instructions": "Be brief.",
    "tools": [TOOL],
    "output_modalities": ["audio"],
    "audio": {
        "input": {
            "format": {"type": "audio/pcm", "rate": 24000},
            "turn_detection": None,
            "transcription": {"model": "gpt-4o-transcribe"},
            "noise_reduction": {"type": "near_field"},
        },
        "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "cedar", "speed": 1.1},
    },
}


@asynccontextmanager
async def hosted(replies: list[Reply], intents: list[Intent]) -> AsyncIterator[int]:
    """The server half behind a loopback WebSocket; gives one reply per wanted answer."""

    async def serve(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        half = DIALECT.server()
        for frame in half.greeting(request.query):
            await socket.send_str(frame.payload.decode())
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                break
            step = half.receive(InFrame(message.data.encode(), False, 0))
            intents.extend(step.intents)
            for frame in step.frames:
                await socket.send_str(frame.payload.decode())
            if any(isinstance(intent, AnswerWanted) for intent in step.intents):
                for frame in half.answer(replies.pop(0)):
                    await socket.send_str(frame.payload.decode())
        return socket

    app = web.Application()
    app.router.add_get("/v1/realtime", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


Until = Callable[[str], Coroutine[Any, Any, list[Any]]]


def with_sdk(replies: list[Reply], talk: Callable[[Any, Until], Coroutine[Any, Any, None]]) -> list[Intent]:
    """Runs `talk` with the SDK's connection and a reader of events up to a type; every event is checked."""
    intents: list[Intent] = []

    async def run() -> None:
        async with (
            hosted(replies, intents) as port,
            AsyncOpenAI(api_key="TESTKEY", websocket_base_url=f"ws://127.0.0.1:{port}/v1") as sdk,
            sdk.realtime.connect(model="gpt-realtime-2.1") as connection,
        ):

            async def until(kind: str) -> list[Any]:
                events: list[Any] = []
                while not events or events[-1].type != kind:
                    events.append(await connection.recv())
                    known = SERVER_EVENTS[events[-1].type]
                    assert type(events[-1]) is known
                    known.model_validate(events[-1].to_dict(), strict=True)
                return events

            async with asyncio.timeout(20):
                await talk(connection, until)

    asyncio.run(run())
    return intents


def kinds(events: list[Any]) -> list[str]:
    """Types in order, repetitions of one type once."""
    names = [event.type for event in events]
    return [name for place, name in enumerate(names) if place == 0 or names[place - 1] != name]


async def say(connection: Any) -> None:
    for start in range(0, len(SPEECH), 960):
        await connection.input_audio_buffer.append(audio=base64.b64encode(SPEECH[start : start + 960]).decode())
    await connection.input_audio_buffer.commit()
    await connection.response.create()


def test_the_sdk_holds_a_spoken_turn() -> None:
    heard: list[Any] = []

    async def talk(connection: Any, until: Until) -> None:
        await until("session.created")
        await connection.session.update(session=SESSION)
        updated = (await until("session.updated"))[-1].session
        assert updated.tools[0].name == "book_table"
        assert updated.audio.input.turn_detection is None
        assert (updated.audio.output.voice, updated.model) == ("cedar", "gpt-realtime-2.1")
        await say(connection)
        heard.extend(await until("response.done"))

    intents = with_sdk([Reply(text="One moment.", pcm=SPEECH, input_transcript="Hello there")], talk)
    assert [type(intent).__name__ for intent in intents] == ["SetupGiven", "AudioGiven", "AnswerWanted"]
    assert intents[1].pcm == SPEECH
    audio = b"".join(base64.b64decode(e.delta) for e in heard if e.type == "response.output_audio.delta")
    assert audio == SPEECH
    done = heard[-1].response
    assert (done.status, done.output[0].content[0].transcript) == ("completed", "One moment.")
    assert done.usage.total_tokens == done.usage.input_tokens + done.usage.output_tokens > 0
    names = kinds(heard)
    assert names[:7] == [
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
        "rate_limits.updated",
        "response.output_item.added",
        "conversation.item.added",
    ]
    assert names[-7:] == [
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "conversation.item.input_audio_transcription.completed",
        "response.done",
    ]


def test_the_sdk_holds_a_tool_turn() -> None:
    async def talk(connection: Any, until: Until) -> None:
        await connection.session.update(session=SESSION)
        await until("session.updated")
        await say(connection)
        events = await until("response.done")
        done = next(event for event in events if event.type == "response.function_call_arguments.done")
        assert (done.name, orjson.loads(done.arguments)) == ("book_table", {"party": 4})
        call = events[-1].response.output[1]
        assert (call.type, call.call_id, call.arguments) == ("function_call", done.call_id, done.arguments)
        await connection.conversation.item.create(
            item={"type": "function_call_output", "call_id": done.call_id, "output": '{"ok":true}'}
        )
        await connection.response.create()
        events = await until("response.done")
        assert events[-1].response.output[0].content[0].transcript == "Booked."

    replies = [Reply((ReplyCall("book_table", {"party": 4}),), "One moment.", SPEECH), Reply(text="Booked.")]
    intents = with_sdk(replies, talk)
    assert [type(intent).__name__ for intent in intents] == [
        "SetupGiven",
        "AudioGiven",
        "AnswerWanted",
        "ToolResultGiven",
        "AnswerWanted",
    ]


def test_the_sdk_reads_text_answers_overrides_and_errors() -> None:
    async def talk(connection: Any, until: Until) -> None:
        await until("session.created")
        await connection.session.update(session={"type": "realtime", "output_modalities": ["audio", "text"]})
        error = (await until("error"))[-1].error
        assert (error.code, error.param) == ("invalid_value", "session.output_modalities")
        await connection.send({"type": "session.update", "event_id": "mine", "session": {"instructions": "x"}})
        error = (await until("error"))[-1].error
        assert (error.code, error.param, error.event_id) == ("missing_required_parameter", "session.type", "mine")
        await connection.input_audio_buffer.commit()
        assert (await until("error"))[-1].error.code == "input_audio_buffer_commit_empty"
        await connection.response.cancel()
        assert (await until("error"))[-1].error.code == "response_cancel_not_active"
        await connection.input_audio_buffer.append(audio=base64.b64encode(SPEECH).decode())
        await connection.input_audio_buffer.clear()
        await until("input_audio_buffer.cleared")
        await connection.conversation.item.create(
            item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Cancel it."}]}
        )
        await connection.response.create(
            response={"output_modalities": ["text"], "instructions": "Other.", "tools": []}
        )
        events = await until("response.done")
        assert next(event for event in events if event.type == "response.output_text.done").text == "Sure."

    intents = with_sdk([Reply(text="Sure.")], talk)
    assert intents[0].setup.instructions == "Other."
    assert intents[0].setup.tools == ()
    assert intents[1:] == [AnswerWanted("Cancel it.")]


def test_a_failed_and_a_cancelled_answer_are_of_the_sdks_types() -> None:
    half = DIALECT.server()
    half.greeting({"model": "m"})
    frames = list(half.failure("insufficient_quota", "You exceeded your quota."))
    create = InFrame(b'{"type":"response.create"}', False, 0)
    frames += half.receive(create).frames
    again = half.receive(create)
    step = half.receive(InFrame(b'{"type":"response.cancel"}', False, 0))
    frames += [*again.frames, *step.frames]
    assert step.intents == [AnswerCancelled()]
    messages = [orjson.loads(frame.payload) for frame in frames]
    for message in messages:
        SERVER_EVENTS[message["type"]].model_validate(message, strict=True)
    assert [message["type"] for message in messages] == [
        "response.created",
        "response.done",
        "response.created",
        "error",
        "response.done",
    ]
    assert messages[1]["response"]["status_details"]["error"]["code"] == "insufficient_quota"
    assert messages[3]["error"]["code"] == "conversation_already_has_active_response"
    assert messages[4]["response"]["status_details"]["reason"] == "client_cancelled"


@pytest.mark.parametrize(
    ("mode", "parameters"),
    [
        (TurnMode.MANUAL, {}),
        (TurnMode.SERVER_VAD, {"threshold": 0.4, "silence_duration_ms": 300, "prefix_padding_ms": 200}),
        (TurnMode.SEMANTIC_VAD, {"eagerness": "high", "interrupt_response": False}),
    ],
)
def test_the_clients_frames_are_of_the_sdks_types(mode: TurnMode, parameters: dict[str, Any]) -> None:
    extra = {
        "voice": {"id": "voice_1"},
        "transcription": {"model": "gpt-4o-transcribe", "language": "en"},
        "noise_reduction": "near_field",
        "reasoning_effort": "low",
        "max_output_tokens": "inf",
        "speed": 1,
        "tool_choice": {"type": "function", "name": "book_table"},
    }
    client = DIALECT.client(TargetSettings("gpt-realtime-2.1", extra=extra))
    tool = ToolSpec(TOOL["name"], TOOL["description"], TOOL["parameters"])
    frames = [*client.open(Setup("Be brief.", (tool,), 24_000, TurnControlSettings(mode, parameters)))]
    frames += [*client.start_turn(), *client.encode_clip(SPEECH, 24_000, 20).frames, client.encode_silence(24_000, 20)]
    frames += [*client.commit_turn(), *client.text("Hello"), *client.tool_result("c1", "{}"), *client.cancel()]
    client.receive(
        InFrame(b'{"type":"response.output_audio.delta","item_id":"i","content_index":0,"delta":"AAAA"}', False, 0)
    )
    frames += client.truncate(120)
    messages = [orjson.loads(frame.payload) for frame in frames]
    for message in messages:
        accepted = CLIENT_EVENTS.validate_python(message, strict=True)
        assert accepted.to_dict(exclude_unset=True) == message
    names = [message["type"] for message in messages if message["type"] != "input_audio_buffer.append"]
    committed = ["input_audio_buffer.commit", "response.create"] if mode is TurnMode.MANUAL else []
    assert names == [
        "session.update",
        *committed,
        "conversation.item.create",
        "response.create",
        "conversation.item.create",
        "response.create",
        "response.cancel",
        "conversation.item.truncate",
    ]
