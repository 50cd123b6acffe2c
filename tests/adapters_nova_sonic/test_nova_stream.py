"""The transport of Nova Sonic over a fake of the SDK's stream, and over a real WebSocket to the emulator."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace

import orjson
import pytest

from adapters.dialect import TargetSettings
from adapters.nova_sonic import DIALECT
from adapters.nova_sonic.sdk import NovaTransport
from adapters.server import Reply, ReplyCall
from adapters.session import Session
from captures import events as ev
from captures.clock import MonotonicClock
from rig.agents.emulator import base_url, serve
from transports.transport import TransportError

KEY_ID, TOKEN, SECRET = "AKIA-PLANTED", "planted-token", "planted-secret"


class FakeStream:
    """As the SDK's `DuplexEventStream`: answers only after the first event it is sent; None ends it."""

    def __init__(self, *outputs):
        self.sent, self.outputs = [], asyncio.Queue()
        for output in outputs:
            self.outputs.put_nowait(output)
        self.first, self.input_closed = asyncio.Event(), False
        self.input_stream = SimpleNamespace(send=self.send, close=self.close_input)

    async def send(self, event):
        self.sent.append(event)
        self.first.set()

    async def close_input(self):
        self.input_closed = True

    async def await_output(self):
        await self.first.wait()
        return None, SimpleNamespace(receive=self.receive)

    async def receive(self):
        output = await self.outputs.get()
        if isinstance(output, Exception):
            raise output
        return output


def chunk(name, **fields):
    return SimpleNamespace(value=SimpleNamespace(bytes_=orjson.dumps({"event": {name: fields}})))


@pytest.fixture
def stream_session(client, setup_of, monkeypatch):
    """Opens a session over a fake stream, waits until `enough` says so, closes."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)

    def run(*outputs, enough):
        given = []

        async def main():
            stream = FakeStream(*outputs)

            async def open_stream(endpoint, key_id, secret, token):
                given.append((endpoint.headers["model"], key_id, secret, token))
                return stream, lambda payload: payload

            clock = MonotonicClock()
            session = Session(client(), NovaTransport(clock, open_stream), clock)
            await session.open(setup_of(), 5.0)
            async with asyncio.timeout(5):
                while not enough(session):
                    await session.wait_change()
            await session.close()
            return session, stream

        session, stream = asyncio.run(main())
        assert given == [("amazon.nova-2-sonic-v1:0", KEY_ID, SECRET, TOKEN)]
        return session, stream

    return run


def test_events_go_through_the_stream_both_ways_and_the_end_is_sent(stream_session):
    call = chunk("toolUse", toolName="forecast", toolUseId="t1", content='{"city":"Lima"}')
    session, stream = stream_session(
        call, enough=lambda session: any(isinstance(one.event, ev.ToolCall) for one in session.events)
    )
    assert isinstance(session.events[0].event, ev.SessionReady)  # nothing confirms: audio may follow at once
    names = [next(iter(orjson.loads(payload)["event"])) for payload in stream.sent]
    assert names[:2] == ["sessionStart", "promptStart"]
    assert names[-3:] == ["contentEnd", "promptEnd", "sessionEnd"]
    assert stream.input_closed
    assert not session.closed.by_peer


def test_an_exception_of_the_stream_keeps_its_name_and_hides_the_credentials(stream_session):
    class ThrottlingException:
        message = f"too fast, {KEY_ID} {TOKEN} {SECRET}"

    session, _ = stream_session(
        SimpleNamespace(value=ThrottlingException()), None, enough=lambda session: session.closed is not None
    )
    assert (session.failure.kind, session.failure.code) == (ev.FailureKind.RATE_LIMIT, "ThrottlingException")
    assert session.closed.by_peer
    for secret in (KEY_ID, TOKEN, SECRET):
        assert secret not in f"{session.failure} {session.log} {session.events}"


def test_a_stream_that_breaks_is_a_typed_failure(stream_session):
    session, _ = stream_session(
        RuntimeError(f"AWS_ERROR_HTTP_CONNECTION_CLOSED {SECRET}"), enough=lambda session: session.closed is not None
    )
    assert session.failure.kind is ev.FailureKind.TRANSIENT
    assert "CONNECTION_CLOSED" in session.failure.message
    assert SECRET not in session.failure.message


@pytest.mark.parametrize(
    ("key", "environment", "named"),
    [(None, {"AWS_ACCESS_KEY_ID": KEY_ID}, "api_key_env"), (SECRET, {}, "AWS_ACCESS_KEY_ID")],
)
def test_missing_credentials_are_named_and_refuse_the_target(client, monkeypatch, key, environment, named):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    half = client(key=key)
    with pytest.raises(TransportError, match=named) as raised:
        asyncio.run(NovaTransport(MonotonicClock()).connect(half.endpoint(), print, print))
    told = half.connect_failed(raised.value)
    assert isinstance(told, ev.Refused)
    assert KEY_ID not in repr(told)


def test_without_the_sdk_the_target_is_refused_with_what_to_do(client, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setitem(sys.modules, "aws_sdk_bedrock_runtime", None)
    half = client()
    with pytest.raises(TransportError) as raised:
        asyncio.run(NovaTransport(MonotonicClock()).connect(half.endpoint(), print, print))
    told = half.connect_failed(raised.value)
    assert (type(told), told.code) == (ev.Refused, "sdk_missing")
    assert ("Python 3.12" if sys.version_info < (3, 12) else "voice-agent-rig[nova]") in told.message


class Forecaster:
    async def reply(self, setup, pcm, rate_hz, text, earlier=None):
        return Reply((ReplyCall("forecast", {"city": text or "Lima"}),))

    def after_result(self, call):
        return Reply(text="Sunny.", pcm=bytes(4_800))


def test_the_emulator_is_reached_by_websocket(setup_of):
    async def main():
        async with serve("nova_sonic", Forecaster()) as port:
            url = base_url("nova_sonic", "127.0.0.1", port)
            clock = MonotonicClock()
            half = DIALECT.client(TargetSettings("", url, None, {"stream": "websocket"}))
            session = Session(half, DIALECT.transport(clock), clock)
            await session.open(setup_of(), 5.0)
            session.text("Rain?")
            async with asyncio.timeout(5):
                while not (calls := [one.event for one in session.events if isinstance(one.event, ev.ToolCall)]):
                    await session.wait_change()
                session.tool_result(calls[0].call_id, "ok")
                while not any(isinstance(one.event, ev.AnswerEnded) for one in session.events):
                    await session.wait_change()
            await session.close()
            return calls[0]

    assert asyncio.run(main()).arguments == {"city": "Rain?"}
