"""The vendor's SDK as witness: it talks with our emulators over loopback, and our client sends what it sends.

`OmniRealtimeConversation` is threads and callbacks; it runs in a worker thread beside the emulator's event loop.
"""

from __future__ import annotations

import asyncio
import base64
import queue
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import orjson
import pytest
from aiohttp import WSMsgType, web
from dashscope.audio.qwen_omni import MultiModality, OmniRealtimeCallback, OmniRealtimeConversation

from adapters import registry
from adapters.dialect import Setup, TargetSettings, ToolSpec, TurnControlSettings, TurnMode
from adapters.server import Reply, ReplyCall
from captures.frames import InFrame
from rig.agents.emulator import base_url, serve

OMNI, AUDIO = "qwen_omni_realtime", "qwen_audio_realtime"
MODELS = {OMNI: "qwen3.5-omni-plus-realtime", AUDIO: "qwen-audio-3.0-realtime-plus"}
KEY = "planted-key-0123456789"
SPEECH = bytes(range(256)) * 100
TOOL = ToolSpec("book_table", "Books a table.", {"type": "object", "properties": {"party": {"type": "integer"}}})
NESTED = {
    "type": "function",
    "function": {"name": TOOL.name, "description": TOOL.description, "parameters": dict(TOOL.parameters)},
}
SPOKEN = [MultiModality.TEXT, MultiModality.AUDIO]
WAIT_S = 20.0


class Scripted:
    """An agent with one answer to each turn and one to the results of calls."""

    def __init__(self, reply: Reply, after_result: Reply | None = None) -> None:
        self.answer, self.afterwards = reply, after_result or reply
        self.asked: list[tuple[Setup, bytes, int, str | None]] = []

    async def reply(self, setup: Setup, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        self.asked.append((setup, pcm, rate_hz, text))
        return self.answer

    def after_result(self, call: ReplyCall | None) -> Reply:
        return self.afterwards


class Sdk(OmniRealtimeCallback):  # type: ignore[misc]
    """The SDK's conversation, with a reader of events up to a type."""

    def __init__(self, url: str, model: str, workspace: str | None = None) -> None:
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.talk = OmniRealtimeConversation(model=model, callback=self, url=url, api_key=KEY, workspace=workspace)

    def on_event(self, message: Any) -> None:
        self._events.put(message)

    def until(self, kind: str) -> list[dict[str, Any]]:
        events = [self._events.get(timeout=WAIT_S)]
        while events[-1]["type"] != kind:
            assert events[-1]["type"] != "error" or kind == "error", events[-1]
            events.append(self._events.get(timeout=WAIT_S))
        return events

    def say(self) -> None:
        for start in range(0, len(SPEECH), 3200):
            self.talk.append_audio(base64.b64encode(SPEECH[start : start + 3200]).decode())
        self.talk.commit()

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Connected for a while. The end cuts the socket: after a `close` the SDK's thread waits for 10 s."""
        self.talk.connect()
        connection = self.talk.ws.sock.sock
        try:
            yield
        finally:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            self.talk.thread.join(WAIT_S)
            connection.close()
        assert not self.talk.thread.is_alive()


def with_sdk(name: str, agent: Scripted, talk: Callable[[Sdk], None]) -> None:
    """Runs `talk` with the SDK connected to an emulator."""

    def converse(url: str) -> None:
        sdk = Sdk(url, MODELS[name])
        with sdk.connected():
            talk(sdk)

    async def run() -> None:
        async with serve(name, agent) as port:
            await asyncio.to_thread(converse, base_url(name, "127.0.0.1", port))

    asyncio.run(run())


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """Types in order, repetitions of one type once."""
    names = [event["type"] for event in events]
    return [name for place, name in enumerate(names) if place == 0 or names[place - 1] != name]


def test_the_sdk_holds_a_spoken_turn_with_a_call_and_its_result() -> None:
    heard: list[dict[str, Any]] = []

    def talk(sdk: Sdk) -> None:
        (created,) = sdk.until("session.created")
        assert sdk.talk.get_session_id() == created["session"]["id"]
        assert created["session"]["model"] == MODELS[OMNI]
        sdk.talk.update_session(
            output_modalities=SPOKEN,
            voice="Tina",
            enable_turn_detection=False,
            instructions="Be brief.",
            tools=[NESTED],
        )
        (updated,) = sdk.until("session.updated")
        assert updated["session"]["tools"] == [NESTED]
        assert updated["session"]["turn_detection"] is None
        sdk.say()
        sdk.talk.create_response()
        heard.extend(sdk.until("response.done"))
        call = next(event for event in heard if event["type"] == "response.function_call_arguments.done")
        assert (call["name"], orjson.loads(call["arguments"])) == ("book_table", {"party": 4})
        sdk.talk.create_item({"type": "function_call_output", "call_id": call["call_id"], "output": '{"ok":true}'})
        sdk.talk.create_response()
        done = sdk.until("response.done")[-1]["response"]
        assert (done["status"], done["output"][0]["content"][0]["transcript"]) == ("completed", "Booked.")
        assert sdk.talk.get_last_response_id() == done["id"]
        assert sdk.talk.get_last_first_audio_delay() >= 0

    first = Reply((ReplyCall("book_table", {"party": 4}),), "One moment.", SPEECH, input_transcript="Four, please.")
    agent = Scripted(first, Reply(text="Booked.", pcm=SPEECH))
    with_sdk(OMNI, agent, talk)
    ((setup, pcm, rate_hz, text),) = agent.asked
    assert (setup.instructions, setup.tools, pcm, rate_hz, text) == ("Be brief.", (TOOL,), SPEECH, 16_000, None)
    audio = b"".join(base64.b64decode(event["delta"]) for event in heard if event["type"] == "response.audio.delta")
    assert audio == SPEECH
    assert kinds(heard)[:6] == [
        "input_audio_buffer.committed",
        "conversation.item.created",
        "response.created",
        "response.output_item.added",
        "conversation.item.created",
        "response.content_part.added",
    ]
    assert "conversation.item.input_audio_transcription.completed" in kinds(heard)
    assert heard[-1]["response"]["usage"]["total_tokens"] > 0


def test_the_sdks_defaults_leave_the_turn_to_the_server() -> None:
    def talk(sdk: Sdk) -> None:
        sdk.until("session.created")
        sdk.talk.update_session(output_modalities=SPOKEN, voice="Tina")
        detection = sdk.until("session.updated")[-1]["session"]["turn_detection"]
        assert (detection["type"], detection["threshold"], detection["silence_duration_ms"]) == ("server_vad", 0.2, 800)
        sdk.talk.append_audio(base64.b64encode((b"\x00\x20" * 12 + b"\x00\xe0" * 12) * 400).decode())
        for _ in range(10):
            sdk.talk.append_audio(base64.b64encode(bytes(3200)).decode())
        names = kinds(sdk.until("response.done"))
        assert names[:4] == [
            "input_audio_buffer.speech_started",
            "input_audio_buffer.speech_stopped",
            "input_audio_buffer.committed",
            "conversation.item.created",
        ]

    with_sdk(OMNI, Scripted(Reply(text="Yes.", pcm=SPEECH)), talk)


def test_the_sdk_reads_refusals() -> None:
    def talk(sdk: Sdk) -> None:
        sdk.until("session.created")
        sdk.talk.update_session(output_modalities=[MultiModality.AUDIO])
        error = sdk.until("error")[-1]["error"]
        assert (error["code"], error["param"]) == ("invalid_value", "session.modalities")
        sdk.talk.cancel_response()
        assert sdk.until("error")[-1]["error"]["message"] == "Conversation has none active response"
        sdk.talk.create_response()
        assert sdk.until("error")[-1]["error"]["message"].startswith("Cannot create response without input")
        sdk.talk.end_session_async()
        assert "session.finish" in sdk.until("error")[-1]["error"]["message"]

    with_sdk(OMNI, Scripted(Reply()), talk)


def test_the_sdk_holds_a_text_turn_with_qwen_audio() -> None:
    def talk(sdk: Sdk) -> None:
        sdk.until("session.created")
        sdk.talk.update_session(output_modalities=SPOKEN, voice="longanlingxin", enable_turn_detection=False)
        assert sdk.until("session.updated")[-1]["session"]["voice"] == "longanlingxin"
        words = [{"type": "input_text", "text": "Book for four."}]
        sdk.talk.create_item({"type": "message", "role": "user", "content": words})
        sdk.talk.create_response()
        events = sdk.until("response.done")
        assert "response.audio_transcript.delta" not in kinds(events)
        done = next(event for event in events if event["type"] == "response.audio_transcript.done")
        assert done["transcript"] == "One moment."

    agent = Scripted(Reply(text="One moment.", pcm=SPEECH))
    with_sdk(AUDIO, agent, talk)
    assert [text for *_, text in agent.asked] == ["Book for four."]


# What our client sends against what the SDK sends


@asynccontextmanager
async def recorder(frames: list[dict[str, Any]], handshakes: list[web.Request]) -> AsyncIterator[str]:
    """A server that writes down what it is sent and answers the settings, and the last message of the test."""

    async def listen(request: web.Request) -> web.WebSocketResponse:
        handshakes.append(request)
        response = web.WebSocketResponse(max_msg_size=0)
        await response.prepare(request)
        half = registry.dialect(OMNI).server()
        half.greeting(request.query)
        async for message in response:
            if message.type is not WSMsgType.TEXT:
                break
            frames.append(orjson.loads(message.data))
            if frames[-1]["type"] == "session.update":
                for frame in half.receive(InFrame(message.data.encode(), False, 0)).frames:
                    await response.send_str(frame.payload.decode())
            if frames[-1]["type"] == "response.cancel":
                await response.send_json({"type": "recorded"})
        return response

    app = web.Application()
    app.router.add_get("/api-ws/v1/realtime", listen)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}/api-ws/v1/realtime"
    finally:
        await runner.cleanup()


def plain(frame: dict[str, Any]) -> dict[str, Any]:
    """A message without ids and without what is null; the SDK spells the page's `pcm` `pcm16`."""
    frame = {key: value for key, value in frame.items() if key != "event_id"}
    session = {key: value for key, value in frame.pop("session", {}).items() if value is not None}
    detection = dict(session.get("turn_detection", {}))
    # The SDK cannot leave it out; it is no parameter of ours.
    assert detection.pop("prefix_padding_ms", 300) == 300
    if detection:
        session["turn_detection"] = detection
    session |= {key: "pcm" for key in ("input_audio_format", "output_audio_format") if session.get(key) == "pcm16"}
    response = {key: value for key, value in frame.pop("response", {}).items() if value is not None}
    return frame | ({"session": session} if session else {}) | ({"response": response} if response else {})


@pytest.mark.parametrize(
    ("mode", "parameters"),
    [
        (TurnMode.MANUAL, {}),
        (TurnMode.SERVER_VAD, {"threshold": 0.4, "silence_duration_ms": 600, "interrupt_response": False}),
        (TurnMode.SEMANTIC_VAD, {"threshold": 0.4, "silence_duration_ms": 600}),
    ],
)
def test_our_client_sends_what_the_sdk_sends(mode: TurnMode, parameters: dict[str, Any]) -> None:
    extra = {
        "voice": "Tina",
        "workspace": "llm-7",
        "transcription_model": "qwen3-asr-flash-realtime",
        "temperature": 0.5,
        "seed": 7,
    }
    theirs: list[dict[str, Any]] = []
    handshakes: list[web.Request] = []

    def converse(url: str) -> None:
        sdk = Sdk(url, MODELS[OMNI], workspace="llm-7")
        with sdk.connected():
            detects = mode is not TurnMode.MANUAL
            others = {"create_response": True} | {key: parameters[key] for key in parameters if key[:3] == "int"}
            sdk.talk.update_session(
                output_modalities=SPOKEN,
                voice="Tina",
                input_audio_transcription_model="qwen3-asr-flash-realtime",
                enable_turn_detection=detects,
                turn_detection_type=mode.value,
                turn_detection_threshold=parameters.get("threshold"),
                turn_detection_silence_duration_ms=parameters.get("silence_duration_ms"),
                turn_detection_param=others,
                instructions="Be brief.",
                tools=[NESTED],
                temperature=0.5,
                seed=7,
            )
            sdk.until("session.updated")
            for start in range(0, 6400, 640):
                sdk.talk.append_audio(base64.b64encode(SPEECH[start : start + 640]).decode())
            if not detects:
                sdk.talk.commit()
                sdk.talk.create_response()
            sdk.talk.create_item({"type": "function_call_output", "call_id": "call_1", "output": "{}"})
            sdk.talk.cancel_response()
            sdk.until("recorded")

    async def run() -> None:
        async with recorder(theirs, handshakes) as url:
            await asyncio.to_thread(converse, url)

    asyncio.run(run())
    client = registry.dialect(OMNI).client(TargetSettings(MODELS[OMNI], None, KEY, extra))
    frames = [*client.open(Setup("Be brief.", (TOOL,), 16_000, TurnControlSettings(mode, parameters)))]
    frames += [*client.start_turn(), *client.encode_clip(SPEECH[:6400], 16_000, 20).frames, *client.commit_turn()]
    frames += [client.tool_result("call_1", "{}")[0], *client.cancel()]
    ours = [orjson.loads(frame.payload) for frame in frames]
    assert [plain(frame) for frame in ours] == [plain(frame) for frame in theirs]
    (handshake,) = handshakes
    endpoint = client.endpoint()
    assert endpoint.url.endswith(handshake.path_qs)
    assert {name: handshake.headers[name] for name in endpoint.headers} == dict(endpoint.headers)
