"""Emulated agents as a stranger's client meets them: real processes, real WebSockets, real HTTP."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
import anyio
import psutil
import pytest
import soundfile

from adapters.dialect import Setup, ToolSpec
from adapters.server import Reply, ReplyCall
from rig.agents.agent import WORDS_ALONE, Earlier, EmbeddedAgent
from rig.agents.brain_client import BrainError
from rig.agents.brain_wire import Impression
from rig.agents.emulator import EmulatorError, emulate, serve
from rig.agents.fleet import Spec, fleet
from rig.prompts.templates import instructions, probe_instructions

TOOL = {
    "name": "hold_the_line",
    "description": "Wait one moment while the caller does something.",
    "parameters": {"type": "object", "properties": {}, "required": []},
}
PROMPT = instructions("You are a voice agent.", "Policy: wait when the caller asks for a moment.")
OPTIONS = ["a calm voice, nobody else", "a burst of static over a word"]
PROBE = probe_instructions("You are a voice agent.", "What do you hear?", OPTIONS)


def _realtime_setup(prompt: str, tools: bool = True) -> dict[str, Any]:
    session = {
        "type": "realtime",
        "instructions": prompt,
        "tools": [{"type": "function", **TOOL}] if tools else [],
        "audio": {"input": {"format": {"type": "audio/pcm", "rate": 24000}, "turn_detection": None}},
    }
    return {"type": "session.update", "session": session}


async def _realtime_turn(socket: aiohttp.ClientWebSocketResponse, pcm: bytes) -> list[dict[str, Any]]:
    for start in range(0, len(pcm), 4800):
        piece = base64.b64encode(pcm[start : start + 4800]).decode()
        await socket.send_json({"type": "input_audio_buffer.append", "audio": piece})
    await socket.send_json({"type": "input_audio_buffer.commit"})
    await socket.send_json({"type": "response.create"})
    return await _until(socket, "response.done")


async def _until(socket: aiohttp.ClientWebSocketResponse, kind: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    with anyio.fail_after(30):
        while not events or events[-1]["type"] != kind:
            message = await socket.receive()
            if message.type is aiohttp.WSMsgType.BINARY:
                events.append({"type": "audio", "bytes": len(message.data)})
            else:
                assert message.type is aiohttp.WSMsgType.TEXT, message
                events.append(json.loads(message.data))
            assert events[-1]["type"] != "error", events[-1]
    return events


async def _rig_turn(url: str, pcm: bytes, prompt: str, tools: bool = True) -> list[dict[str, Any]]:
    setup = {
        "type": "session.setup",
        "version": 1,
        "instructions": prompt,
        "tools": [TOOL] if tools else [],
        "audio": {"encoding": "pcm16", "input_rate_hz": 24000, "output_rate_hz": 24000},
        "turn": {"mode": "manual", "parameters": {}},
    }
    async with aiohttp.ClientSession() as http, http.ws_connect(url) as socket:
        await socket.send_json(setup)
        await socket.send_json({"type": "turn.start"})
        await socket.send_bytes(pcm)
        await socket.send_json({"type": "turn.commit"})
        return await _until(socket, "turn.end")


def test_realtime_tool_turn_then_its_result_then_a_spoken_turn(
    running_fleet: Mapping[Spec, str], caller_pcm: bytes
) -> None:
    async def talk() -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
        url = running_fleet["openai_realtime", "local-acoustic"] + "?model=m"
        async with aiohttp.ClientSession() as http, http.ws_connect(url) as socket:
            await socket.send_json(_realtime_setup(PROMPT))
            called = await _realtime_turn(socket, caller_pcm)
            item = called[-1]["response"]["output"][0]
            result = {"type": "function_call_output", "call_id": item["call_id"], "output": "done"}
            await socket.send_json({"type": "conversation.item.create", "item": result})
            await socket.send_json({"type": "response.create"})
            told = await _until(socket, "response.done")
            await socket.send_json(_realtime_setup("You are a voice agent.", tools=False))
            return called, told, await _realtime_turn(socket, caller_pcm)

    called, told, spoken = anyio.run(talk)
    call = called[-1]["response"]["output"][0]
    assert (call["type"], call["name"], json.loads(call["arguments"])) == ("function_call", "hold_the_line", {})
    assert not any(event["type"] == "response.output_audio.delta" for event in called)
    assert told[-1]["response"]["output"][0]["content"][0]["transcript"] == "One moment while I do that for you."
    said = spoken[-1]["response"]["output"][0]["content"][0]["transcript"]
    assert said == "All right, nothing more is needed."
    heard = [base64.b64decode(event["delta"]) for event in spoken if event["type"] == "response.output_audio.delta"]
    assert len(b"".join(heard)) > 24_000


def test_rig_socket_calls_and_answers_probes(running_fleet: Mapping[Spec, str], caller_pcm: bytes) -> None:
    acoustic, cascade = (running_fleet["rig_socket", f"local-{name}"] for name in ("acoustic", "cascade"))
    for url in (acoustic, acoustic + "agent", cascade):
        call = next(event for event in anyio.run(_rig_turn, url, caller_pcm, PROMPT) if event["type"] == "tool.call")
        assert (call["name"], call["arguments"]) == ("hold_the_line", {})
    answers = [
        next(event["text"] for event in anyio.run(_rig_turn, url, caller_pcm, PROBE, False) if "reply" in event["type"])
        for url in (acoustic, cascade)
    ]
    assert answers == [OPTIONS[0], WORDS_ALONE]
    assert not any(option in WORDS_ALONE for option in OPTIONS)


def test_file_mode_call_and_refusal(running_fleet: Mapping[Spec, str], caller_pcm: bytes) -> None:
    wav = io.BytesIO()
    soundfile.write(wav, memoryview(caller_pcm).cast("h"), 24_000, format="WAV", subtype="PCM_16")
    clip = {"data": base64.b64encode(wav.getvalue()).decode(), "format": "wav"}
    body = {
        "model": "m",
        "modalities": ["text", "audio"],
        "audio": {"voice": "alloy", "format": "wav"},
        "messages": [
            {"role": "system", "content": PROMPT},
            {"role": "user", "content": [{"type": "input_audio", "input_audio": clip}]},
        ],
        "tools": [{"type": "function", "function": TOOL}],
    }

    async def post() -> list[tuple[int, dict[str, Any]]]:
        url = running_fleet["chat_audio", "local-acoustic"] + "/chat/completions"
        answers = []
        async with aiohttp.ClientSession() as http:
            for sent in (body, {"model": "m", "messages": "no"}):
                async with http.post(url, json=sent) as response:
                    answers.append((response.status, await response.json()))
        return answers

    (status, answer), (refused, error) = anyio.run(post)
    assert status == 200
    assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "hold_the_line"
    assert refused == 400
    assert "error" in error


def test_a_client_that_leaves_in_its_turn_harms_nobody(running_fleet: Mapping[Spec, str], caller_pcm: bytes) -> None:
    async def leave() -> None:
        url = running_fleet["openai_realtime", "local-acoustic"]
        async with aiohttp.ClientSession() as http:
            for _ in range(3):
                socket = await http.ws_connect(url)
                await socket.send_json(_realtime_setup(PROMPT))
                piece = base64.b64encode(caller_pcm[9600:]).decode()
                await socket.send_json({"type": "input_audio_buffer.append", "audio": piece})
                await socket.send_json({"type": "input_audio_buffer.commit"})
                await socket.send_json({"type": "response.create"})
                await socket.close()
            async with http.ws_connect(url) as socket:
                await socket.send_json(_realtime_setup(PROMPT))
                assert await _realtime_turn(socket, caller_pcm)

    anyio.run(leave)


class _SlowAgent:
    """Says when it is asked and when its answer is given up."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.given_up = anyio.Event()
        self.pcm = b""

    async def reply(self, setup: Setup, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        self.pcm = pcm
        if text is not None:
            raise BrainError("no brain")
        self.asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.given_up.set()

    def after_result(self, call: ReplyCall | None) -> Reply:
        raise AssertionError("no call was made")


@pytest.mark.parametrize("ending", ["close", "cancel"])
def test_an_answer_is_given_up_with_its_client(ending: str) -> None:
    async def talk() -> bytes:
        agent = _SlowAgent()
        async with serve("openai_realtime", agent) as port, aiohttp.ClientSession() as http:
            socket = await http.ws_connect(f"ws://127.0.0.1:{port}/v1/realtime")
            await socket.send_json(_realtime_setup(PROMPT))
            append = {"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(9600)).decode()}
            await socket.send_json(append)
            assert not agent.asked.is_set()
            await socket.send_json({"type": "input_audio_buffer.commit"})
            await socket.send_json({"type": "response.create"})
            with anyio.fail_after(10):
                await agent.asked.wait()
                if ending == "cancel":
                    await socket.send_json({"type": "response.cancel"})
                else:
                    await socket.close()
                await agent.given_up.wait()
            await socket.close()
        return agent.pcm

    assert anyio.run(talk) == bytes(9600)


def test_a_failing_brain_is_the_vendors_failure() -> None:
    async def talk() -> dict[str, Any]:
        async with (
            serve("rig_socket", _SlowAgent()) as port,
            aiohttp.ClientSession() as http,
            http.ws_connect(f"ws://127.0.0.1:{port}/") as socket,
        ):
            audio = {"encoding": "pcm16", "input_rate_hz": 24000, "output_rate_hz": 24000}
            setup = {"type": "session.setup", "version": 1, "instructions": PROMPT, "tools": [], "audio": audio}
            await socket.send_json({**setup, "turn": {"mode": "manual", "parameters": {}}})
            await socket.send_json({"type": "turn.text", "text": "hello"})
            with anyio.fail_after(10):
                while True:
                    event = await socket.receive_json()
                    if event["type"] == "error":
                        return dict(event)

    failed = anyio.run(talk)
    assert failed["message"] == "no brain"


def test_what_cannot_be_served_is_said() -> None:
    async def taken() -> None:
        async with serve("rig_socket", _SlowAgent()) as port, serve("rig_socket", _SlowAgent(), port=port):
            pass

    with pytest.raises(EmulatorError, match="cannot listen on"):
        anyio.run(taken)
    with pytest.raises(EmulatorError, match="no dialect 'telegraph'"):
        anyio.run(emulate, "telegraph", "local-cascade", "127.0.0.1", 0, print)
    with pytest.raises(EmulatorError, match="no agent 'oracle'"):
        anyio.run(emulate, "rig-socket", "oracle", "127.0.0.1", 0, print)


def test_emulate_is_ready_and_ends(caller_pcm: bytes) -> None:
    async def run() -> list[dict[str, Any]]:
        ready = anyio.Event()
        urls: list[str] = []

        def on_ready(url: str) -> None:
            urls.append(url)
            ready.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(emulate, "rig-socket", "local-acoustic", "127.0.0.1", 0, on_ready)
            with anyio.fail_after(30):
                await ready.wait()
            events = await _rig_turn(urls[0], caller_pcm, PROMPT)
            tasks.cancel_scope.cancel()
        return events

    assert any(event["type"] == "tool.call" for event in anyio.run(run))


def test_a_fleet_leaves_no_process_behind() -> None:
    async def run() -> list[psutil.Process]:
        before = set(psutil.Process().children(recursive=True))
        async with fleet([("rig_socket", "local-cascade"), ("chat_audio", "local-acoustic")]) as urls:
            started = set(psutil.Process().children(recursive=True)) - before
            assert len(started) == 2
            assert sum(process.memory_info().rss for process in started) < 400e6
            assert [url.split(":")[0] for url in urls.values()] == ["ws", "http"]
        return [process for process in started if process.is_running()]

    assert anyio.run(run) == []


class _Ears:
    def __init__(self, words: str, *tags: str) -> None:
        self._heard = Impression(words, dict.fromkeys(tags, 1.0))

    async def hear(self, pcm: bytes, rate_hz: int) -> Impression:
        return self._heard


def test_only_the_acoustic_agent_is_told_tags() -> None:
    policy = "Policy: hold the line when asked. If the caller whispers, call the guard."
    guard = ToolSpec("call_guard", "Send the guard.", {"type": "object", "properties": {}})
    hold = ToolSpec("hold_the_line", "Wait one moment.", {"type": "object", "properties": {}})
    setup = Setup(instructions("You are an agent.", policy), (guard, hold), 24_000)
    ears = _Ears("one moment please hold the line", "whispered")

    async def ask(name: str, text: str | None) -> Reply:
        return await EmbeddedAgent(name, ears).reply(setup, b"", 24_000, text)

    names = [
        anyio.run(ask, name, text).calls[0].name
        for name, text in (
            ("local-acoustic", None),
            ("local-cascade", None),
            ("local-acoustic", "one moment please hold the line"),
        )
    ]
    assert names == ["call_guard", "hold_the_line", "hold_the_line"]
    with pytest.raises(ValueError, match="no agent 'gold'"):
        EmbeddedAgent("gold", ears)


def test_unheard_words_are_said_to_be_so() -> None:
    async def ask() -> Reply:
        setup = Setup("You are an agent.", (), 24_000)
        return await EmbeddedAgent("local-cascade", _Ears("")).reply(setup, b"", 24_000, None)

    reply = anyio.run(ask)
    assert reply.text == "I did not catch that."
    assert len(reply.pcm) > 24_000


class _DeafEars:
    async def hear(self, pcm: bytes, rate_hz: int) -> Impression:
        raise AssertionError("nothing was said")


def test_an_answer_to_a_question_completes_the_words_before_it() -> None:
    tools = (
        ToolSpec("ask_clarifying_question", "Ask the caller one question about the amount.", {}),
        ToolSpec(
            "set_monthly_payment",
            "Change the monthly payment to a new amount.",
            {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]},
        ),
        ToolSpec("close_account", "Close the account for good.", {}),
    )
    asked = Earlier("put my monthly payment up to two", ReplyCall("ask_clarifying_question", {}))
    agent = EmbeddedAgent("local-cascade", _DeafEars())

    async def answer() -> Reply:
        return await agent.reply(Setup("", tools, 24_000), b"", 24_000, "the question was the amount: ninety", asked)

    assert anyio.run(answer).calls == (ReplyCall("set_monthly_payment", {"amount": 90}),)
