"""The example agent as a user runs it: a process of its own, spoken to over loopback."""

from __future__ import annotations

import asyncio
import math
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import aiohttp

from adapters.dialect import Setup, TargetSettings, ToolSpec
from adapters.rig_socket.client import RigSocketClient
from captures.events import AnswerEnded, AudioDelta, Event, SessionReady, TextDelta, ToolCall, TranscriptDelta
from captures.frames import InFrame, OutFrame

SETUP = Setup("Help.", (ToolSpec("escalate", "Calls a human.", {"type": "object", "properties": {}}),), 24000)


@contextmanager
def echo_agent(repo_dir: Path) -> Iterator[str]:
    """Address of a running example agent."""
    command = [sys.executable, str(repo_dir / "examples" / "echo_agent.py"), "0"]
    with Popen(command, stdout=PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"ws://127.0.0.1:{process.stdout.readline().split()[-1]}"
        finally:
            process.terminate()


def tone(amplitude: int) -> bytes:
    return b"".join(struct.pack("<h", round(amplitude * math.sin(i / 9))) for i in range(4800))


async def answer(
    half: RigSocketClient, socket: aiohttp.ClientWebSocketResponse, frames: Iterable[OutFrame]
) -> list[Event]:
    """Send a turn; its events up to the end of the answer."""
    events: list[Event] = []
    for frame in frames:
        await (socket.send_bytes(frame.payload) if frame.binary else socket.send_str(frame.payload.decode()))
    while not any(isinstance(event, AnswerEnded | SessionReady) for event in events):
        message = await socket.receive(timeout=20)
        binary = message.type is aiohttp.WSMsgType.BINARY
        assert binary or message.type is aiohttp.WSMsgType.TEXT, message
        payload = message.data if binary else message.data.encode()
        events += half.receive(InFrame(payload, binary, 0))[0]
    return events


def test_loud_callers_get_a_call_and_quiet_ones_words(repo_dir: Path) -> None:
    async def talk(url: str) -> None:
        half = RigSocketClient(TargetSettings("", url))
        async with aiohttp.ClientSession() as session, session.ws_connect(half.endpoint().url) as socket:
            assert await answer(half, socket, half.open(SETUP)) == [
                SessionReady(None, {"agent": "echo", "output_rate_hz": 24000})
            ]
            for _ in range(2):
                loud = half.encode_clip(tone(20000), 24000, 20).frames
                events = await answer(half, socket, [*half.start_turn(), *loud, *half.commit_turn()])
                calls = [event for event in events if isinstance(event, ToolCall)]
                assert [(call.name, call.arguments) for call in calls] == [("escalate", {})]
            quiet = half.encode_clip(tone(500), 24000, 20).frames
            events = await answer(half, socket, [*half.start_turn(), *quiet, *half.commit_turn()])
            assert [type(event) for event in events] == [AudioDelta, TranscriptDelta, AnswerEnded]
            assert events[0] == AudioDelta(tone(500), 24000)
            events = await answer(half, socket, half.text("Hello?"))
            assert events[0] == TextDelta("You wrote: Hello?")
            for frame in half.close():
                await socket.send_str(frame.payload.decode())

    with echo_agent(repo_dir) as url:
        asyncio.run(talk(url))


def test_it_is_short_and_imports_nothing_of_ours(repo_dir: Path) -> None:
    source = (repo_dir / "examples" / "echo_agent.py").read_text()
    assert len(source.splitlines()) < 80
    for package in ("captures", "transports", "adapters", "turn_control", "rig"):
        assert f"import {package}" not in source
        assert f"from {package}" not in source
