"""The SDK transport against a real HTTP server on loopback: answers, refusals, cancellation, secrecy of the key."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import openai
import pytest
from aiohttp import web

from adapters.chat_audio import DIALECT, sdk
from adapters.chat_audio.client import ChatAudioClient
from adapters.chat_audio.sdk import SdkTransport
from adapters.chat_audio.server import ChatAudioServer
from adapters.dialect import Setup, TargetSettings, ToolSpec
from adapters.server import AudioGiven, Reply, ReplyCall
from captures.clock import MonotonicClock
from captures.events import AnswerEnded, Event, Failed, FailureKind, Refused, ToolCall
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint, TransportError

KEY = "TESTKEY-not-real-7f3a9c"
HEADER = "TESTHEADER-not-real-11d0"
SETUP = Setup("Help.", (ToolSpec("refund", "Gives money back.", {"type": "object", "properties": {}}),), 24000)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(repr=False)
class Talk:
    """One attempt over the SDK transport, as the session shell would run it."""

    half: ChatAudioClient
    transport: SdkTransport = field(default_factory=lambda: DIALECT.transport(MonotonicClock()))
    frames: list[InFrame] = field(default_factory=list)
    failures: list[TransportError] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    closed: list[ClosedBy] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def connect(self) -> None:
        self.transport.on_failed = self._on_failed
        self.half.open(SETUP)
        await self.transport.connect(self.half.endpoint(), self._on_frame, self.closed.append)

    async def ask(self, frames: object) -> list[Event]:
        self.changed.clear()
        for frame in frames:  # type: ignore[attr-defined]
            self.transport.write(frame)
        await asyncio.wait_for(self.changed.wait(), 20)
        return self.events

    def _on_frame(self, frame: InFrame) -> None:
        self.frames.append(frame)
        self.events = list(self.half.receive(frame)[0])
        self.changed.set()

    def _on_failed(self, error: TransportError) -> None:
        self.failures.append(error)
        self.events = [self.half.connect_failed(error)]
        self.changed.set()


@asynccontextmanager
async def served(handler: Handler, **extra: object) -> AsyncIterator[Talk]:
    """A connected attempt against a server that answers every request with `handler`; no task outlives it."""
    app = web.Application(client_max_size=30_000_000)
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    talk = Talk(ChatAudioClient(TargetSettings("m", f"http://127.0.0.1:{port}/v1", KEY, extra)))
    try:
        await talk.connect()
        yield talk
    finally:
        await talk.transport.close()
        await talk.transport.close()
        await runner.cleanup()
    assert len(talk.closed) == 1
    assert not talk.closed[0].by_peer
    assert talk.transport.backlog_bytes() == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


def spoken_turn(half: ChatAudioClient, pcm: bytes = bytes(4800)) -> list[OutFrame]:
    half.hold(half.encode_clip(pcm, 24000, 20).frames[0])
    return list(half.commit_turn())


def answering(status: int, body: bytes, **headers: str) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        await request.read()
        return web.Response(status=status, body=body, headers=headers)

    return handler


def run(scene: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scene()

    asyncio.run(main())


def test_two_turns_and_the_exact_bytes_of_both_sides() -> None:
    requests: list[tuple[dict[str, str], bytes]] = []
    responses: list[bytes] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        payload = await request.read()
        requests.append((dict(request.headers), payload))
        server = ChatAudioServer()
        step = server.receive(InFrame(payload, False, 0))
        assert any(isinstance(intent, AudioGiven) for intent in step.intents)
        calls = () if len(requests) > 1 else (ReplyCall("refund", {"amount": 5}),)
        (frame,) = server.answer(Reply(calls, "Done.", bytes(2400)))
        responses.append(frame.payload)
        return web.Response(body=frame.payload, content_type="application/json")

    async def scene() -> None:
        async with served(handler, headers={"X-Title": "rig"}) as talk:
            turn = spoken_turn(talk.half)
            before = MonotonicClock().now_ns()
            events = await talk.ask(turn)
            assert before < talk.frames[0].t_ns <= MonotonicClock().now_ns()
            (call,) = [event for event in events if isinstance(event, ToolCall)]
            assert (call.name, call.arguments) == ("refund", {"amount": 5})
            events = await talk.ask(talk.half.tool_result(call.call_id, "paid"))
            assert isinstance(events[-1], AnswerEnded)
            assert requests[0][1] == turn[0].payload
        headers = {name.lower(): value for name, value in requests[0][0].items()}
        assert headers["authorization"] == f"Bearer {KEY}"
        assert headers["x-title"] == "rig"
        assert headers["content-type"] == "application/json"
        assert [frame.payload for frame in talk.frames] == responses

    run(scene)


def test_without_a_key_nothing_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "TESTENV-not-real")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    seen: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        await request.read()
        seen.extend([*request.headers.values(), *(name.lower() for name in request.headers)])
        return web.Response(body=b'{"choices":[{"message":{"content":"Hi"}}]}')

    async def scene() -> None:
        async with served(handler) as talk:
            talk.half = ChatAudioClient(TargetSettings("m", talk.half.endpoint().url))
            await talk.transport.close()
            talk.closed.clear()
            await talk.connect()
            assert isinstance((await talk.ask(talk.half.text("Hi")))[-1], AnswerEnded)
        assert not any("TESTENV" in value for value in seen)
        assert "authorization" not in seen

    run(scene)


def error(message: str, code: str) -> bytes:
    return json.dumps({"error": {"message": message, "code": code, "type": "t", "param": None}}).encode()


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (answering(401, error(f"bad key {KEY}", "invalid_api_key")), Refused),
        (answering(404, error("no such model", "model_not_found")), Refused),
        (answering(302, b"", Location="http://127.0.0.1:9/"), Refused),
        (answering(429, error("slow", "rate_limit_exceeded"), **{"Retry-After": "7"}), FailureKind.RATE_LIMIT),
        (answering(429, error("used up", "insufficient_quota")), FailureKind.QUOTA),
        (answering(500, error("oh", "server_error")), FailureKind.TRANSIENT),
        (answering(503, b"<html>" + b"x" * 10_000), FailureKind.TRANSIENT),
        (answering(200, b'{"error":{"code":502,"message":"upstream"}}'), FailureKind.TRANSIENT),
        (answering(200, b'{"choices":[{"mess'), FailureKind.PROTOCOL),
        (answering(200, f"Bearer {KEY}".encode()), FailureKind.PROTOCOL),
        (answering(200, b""), FailureKind.PROTOCOL),
        (answering(200, b"xx", **{"Content-Encoding": "gzip"}), FailureKind.TRANSIENT),
    ],
)
def test_failures_keep_the_key_secret(
    handler: Handler, expected: object, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)

    async def scene() -> None:
        async with served(handler, headers={"X-Secret": HEADER}) as talk:
            (event,) = await talk.ask(talk.half.text("Hi"))
            if expected is Refused:
                assert isinstance(event, Refused)
            else:
                assert isinstance(event, Failed)
                assert event.kind is expected
            if expected is FailureKind.RATE_LIMIT:
                assert event == Failed(FailureKind.RATE_LIMIT, "rate_limit_exceeded", "HTTP 429: slow", 7.0)
            said = [repr(event), *(f"{failure} {failure!r} {failure.body}" for failure in talk.failures)]
            for failure in talk.failures:
                assert failure.__cause__ is None
                assert failure.__context__ is None
                assert len(failure.body) < 2_200
            for text in [*said, repr(talk.transport), repr(vars(talk.transport)), caplog.text]:
                assert KEY not in text
                assert HEADER not in text

    run(scene)


def test_one_request_and_no_retry() -> None:
    count = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal count
        count += 1
        return web.Response(status=500)

    async def scene() -> None:
        async with served(handler) as talk:
            await talk.ask(talk.half.text("Hi"))
        assert count == 1

    run(scene)


def test_close_cancels_a_slow_answer() -> None:
    async def scene() -> None:
        arrived, released = asyncio.Event(), asyncio.Event()

        async def handler(request: web.Request) -> web.StreamResponse:
            arrived.set()
            await released.wait()
            return web.Response()

        async with served(handler) as talk:
            (frame,) = talk.half.text("Hi")
            talk.transport.write(frame)
            assert talk.transport.backlog_bytes() == len(frame.payload)
            await asyncio.wait_for(arrived.wait(), 20)
            await talk.transport.close()
            assert (talk.frames, talk.failures) == ([], [])
            assert talk.transport.backlog_bytes() == 0
            talk.transport.write(frame)
            assert talk.transport.backlog_bytes() == 0
            released.set()

    run(scene)


def test_connect_may_stand_inside_a_limit() -> None:
    async def scene() -> None:
        async with served(answering(200, b"{}")) as talk:
            with anyio.fail_after(20):
                await talk.transport.connect(talk.half.endpoint(), talk.frames.append, talk.closed.append)

    run(scene)


def test_a_dropped_connection_and_a_closed_port() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        await request.read()
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def scene() -> None:
        async with served(handler) as talk:
            (event,) = await talk.ask(talk.half.text("Hi"))
            assert isinstance(event, Failed)
            assert (event.kind, event.code) == (FailureKind.TRANSIENT, "network")
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            talk = Talk(ChatAudioClient(TargetSettings("m", f"http://127.0.0.1:{unused.getsockname()[1]}/v1", KEY)))
            await talk.connect()
            (event,) = await talk.ask(talk.half.text("Hi"))
            await talk.transport.close()
        assert isinstance(event, Failed)
        assert (event.kind, event.code) == (FailureKind.TRANSIENT, "refused")
        assert event.message.startswith("nothing listens at http://127.0.0.1:")

    run(scene)


def test_a_response_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk, "MAX_MESSAGE_BYTES", 1 << 20)

    async def handler(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(bytes(1 << 16))
        except ConnectionError:
            pass
        return response

    async def scene() -> None:
        async with served(handler) as talk:
            (event,) = await talk.ask(talk.half.text("Hi"))
            assert isinstance(event, Failed)
            assert (event.kind, event.code) == (FailureKind.PROTOCOL, "message_too_big")

    run(scene)


def test_a_fault_in_a_callback_ends_the_attempt_and_is_reported() -> None:
    async def scene() -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
        async with served(answering(200, b"{}")) as talk:

            def broken(frame: InFrame) -> None:
                raise RuntimeError("a fault of ours")

            await talk.transport.close()
            talk.closed.clear()
            await talk.transport.connect(talk.half.endpoint(), broken, talk.closed.append)
            (event,) = await talk.ask(talk.half.text("Hi"))
            assert isinstance(event, Failed)
            assert event.code == "internal"
            assert isinstance(reported[0], RuntimeError)

    run(scene)


def test_the_vendors_own_client_talks_to_the_server_half() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        server = ChatAudioServer()
        step = server.receive(InFrame(await request.read(), False, 0))
        if step.close is not None:
            return web.Response(status=step.close[0], body=step.frames[0].payload, content_type="application/json")
        (frame,) = server.answer(Reply((ReplyCall("refund", {"amount": 5}),), "Done.", bytes(2400)))
        return web.Response(body=frame.payload, content_type="application/json")

    async def scene() -> None:
        async with served(handler) as talk:
            url = talk.half.endpoint().url
            async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as vendor:
                data = json.loads(spoken_turn(talk.half)[0].payload)["messages"][-1]["content"][0]["input_audio"][
                    "data"
                ]
                answer = await vendor.chat.completions.create(
                    model="gpt-audio-1.5",
                    modalities=["text", "audio"],
                    audio={"voice": "alloy", "format": "wav"},
                    messages=[
                        {
                            "role": "user",
                            "content": [{"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}],
                        }
                    ],
                )
                message = answer.choices[0].message
                assert answer.choices[0].finish_reason == "tool_calls"
                assert message.audio is not None
                assert message.audio.transcript == "Done."
                assert message.tool_calls is not None
                assert message.tool_calls[0].function.arguments == '{"amount":5}'  # type: ignore[union-attr]
                with pytest.raises(openai.BadRequestError, match="role user"):
                    await vendor.chat.completions.create(model="m", messages=[])

    run(scene)


def test_importing_the_dialect_imports_no_sdk() -> None:
    code = "import sys, adapters.chat_audio; print('openai' in sys.modules, 'httpx2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_an_unheard_failure_is_an_error_of_the_shell() -> None:
    with pytest.raises(TransportError):
        SdkTransport(MonotonicClock()).on_failed(TransportError("text", code="timeout"))
    assert repr(Endpoint("http://h/?key=secret")) == "Endpoint(label='')"
