"""OpenAI's own SDK talks to the emulator, and its types accept what our client half sends."""

from __future__ import annotations

import asyncio
import base64

import orjson
import pytest
from openai import AsyncOpenAI
from openai.types.live import ServerEvent
from openai.types.live.client_event import ClientEvent
from pydantic import TypeAdapter

from adapters.openai_live import DIALECT
from adapters.server import Reply, ReplyCall
from captures.frames import InFrame
from rig.agents.emulator import serve

SPEECH = bytes(range(1, 251)) * 96


class Payer:
    async def reply(self, setup, pcm, rate_hz, text, earlier=None):
        self.setup, self.heard_s = setup, len(pcm) / 2 / rate_hz
        return Reply((ReplyCall("pay_bill", {"amount": 3}),), "Paid.", SPEECH, input_transcript="pay it")

    def after_result(self, call):
        return Reply(text="Done.", pcm=SPEECH)


def test_the_sdk_understands_every_event_of_the_emulator(voice):
    agent = Payer()

    async def main():
        async with serve("openai_live", agent) as port:
            sdk = AsyncOpenAI(api_key="sk-loopback", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0)
            async with sdk, sdk.live.connect() as live:
                return await converse(live)

    async def converse(live):
        tool = {"type": "function", "name": "pay_bill", "parameters": {"type": "object", "properties": {}}}
        responses = {"model": "gpt-backend", "tools": [tool]}
        session = {"model": "gpt-live-1", "delegation": {"type": "responses", "responses": responses}}
        await live.send({"type": "session.start", "session": session})
        events = [await live.recv()]
        pcm = voice(0.5) + bytes(48_000 * 2)
        speech = b""
        for at in range(0, len(pcm), 9_600):
            audio = base64.b64encode(pcm[at : at + 9_600]).decode()
            await live.send({"type": "session.input_audio.append", "audio": audio})
            while True:
                event = await live.recv()
                events.append(event)
                if event.type == "session.output_audio.delta":
                    speech += base64.b64decode(event.delta)
                    break
        while not any(
            event.type == "response.event" and event.event["type"] == "response.completed" for event in events
        ):
            events.append(await live.recv())
        for _ in range(10):
            await live.send({"type": "session.input_audio.append", "audio": base64.b64encode(bytes(9_600)).decode()})
            while (event := await live.recv()).type != "session.output_audio.delta":
                events.append(event)
            speech += base64.b64decode(event.delta)
        await live.send({"type": "session.close"})
        while events[-1].type != "session.closed":
            events.append(await live.recv())
        return events, speech

    events, speech = asyncio.run(asyncio.wait_for(main(), 30))
    kinds = [event.type for event in events]
    assert kinds[0] == "session.started"
    assert events[0].session.audio.format.rate == 24_000
    assert "session.delegation.created" in kinds
    assert "session.output_transcript.delta" in kinds
    inner = [event.event for event in events if event.type == "response.event"]
    [done] = [one for one in inner if one["type"] == "response.function_call_arguments.done"]
    assert orjson.loads(done["arguments"]) == {"amount": 3}
    assert SPEECH in speech
    assert [tool.name for tool in agent.setup.tools] == ["pay_bill"]
    assert agent.heard_s == pytest.approx(1.5, abs=0.25)
    assert events[-1].reason == "close_requested"
    strictly = TypeAdapter(ServerEvent)
    for event in events:
        strictly.validate_python(event.to_dict())


def test_what_our_client_sends_is_what_the_sdk_would_send(client, setup):
    half = client(voice="marin", reasoning_effort="low", tool_choice="auto", acknowledgement_delay_ms=0)
    frames = [*half.open(setup), half.encode_silence(24_000, 20), *half.tool_result("c1", "ok")]
    started = {"type": "session.started", "session": {"id": "s"}}
    half.receive(InFrame(orjson.dumps(started), False, 0))
    frames += half.close()
    strictly = TypeAdapter(ClientEvent)
    kinds = [strictly.validate_python(orjson.loads(frame.payload)).type for frame in frames]
    assert kinds == [
        "session.start",
        "session.input_audio.append",
        "response.item.create",
        "response.create",
        "session.close",
    ]


def test_the_emulator_names_what_it_refuses(client, setup):
    server = DIALECT.server()

    def told(message):
        [frame] = server.receive(InFrame(orjson.dumps(message), False, 0)).frames
        return orjson.loads(frame.payload)["error"]

    assert told({"type": "session.input_audio.append", "audio": ""})["code"] == "invalid_event_order"
    assert "session.input_audio.append" in told({"type": "conversation.item.create"})["message"]
    start = orjson.loads(client().open(setup)[0].payload)
    start["session"]["turn_detection"] = None
    assert told(start)["param"] == "session.turn_detection"
