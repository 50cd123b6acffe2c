"""Webhooks and logs as an agent meets them: real requests to a real server, lines in a real file."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from captures.clock import MonotonicClock
from captures.frames import InFrame
from rig.agents.children import ChildError
from rig.tool_channels.hub import MAX_REQUESTS, Hub
from rig.tool_channels.running import Channels, channels

pytestmark = pytest.mark.anyio

FREE = {"listen": "127.0.0.1:0"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def webhook(folder: Path, **more: Any) -> AsyncIterator[tuple[Channels, str]]:
    async with channels({"mine": {"webhook": {**FREE, **more}}}, folder, MonotonicClock()) as running:
        yield running, running.addresses["mine"]


async def post(address: str, body: Any, **more: Any) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with aiohttp.ClientSession() as client, client.post(address, data=data, **more) as response:
        return response.status, await response.json()


def request_in(frame: InFrame) -> dict[str, Any]:
    fields = json.loads(frame.payload)
    assert fields["event"] == "rig.tool_request"
    request: dict[str, Any] = fields["request"]
    return request


async def test_a_request_reaches_the_session_of_its_call_alone(tmp_path: Path) -> None:
    async with webhook(tmp_path, results={"pay": {"paid": 40}}) as (running, address):
        mine: list[InFrame] = []
        others: list[InFrame] = []
        hub = running.of["mine"]
        hub.attach("CA1", mine.append)
        hub.attach("CA2", others.append)
        before_ns = MonotonicClock().now_ns()
        answer = await post(address, {"name": "pay", "arguments": {"amount": 40}, "call_sid": "CA1"})
        assert answer == (200, {"paid": 40})
        assert others == []
        (frame,) = mine
        assert before_ns <= frame.t_ns <= MonotonicClock().now_ns()
        assert request_in(frame)["body"] == {"name": "pay", "arguments": {"amount": 40}, "call_sid": "CA1"}
        assert json.loads(frame.payload)["answer"] == {"paid": 40}
        assert running.notes() == []


async def test_the_tool_may_stand_in_the_address(tmp_path: Path) -> None:
    async with webhook(tmp_path) as (running, address):
        frames: list[InFrame] = []
        running.of["mine"].attach("CA1", frames.append)
        assert await post(address + "/hang_up?CallSid=CA1", b"") == (200, {"status": "ok"})
        request = request_in(frames[0])
        assert (request["below"], request["query"], request["body"]) == ("hang_up", {"CallSid": "CA1"}, None)


async def test_one_open_call_needs_no_name_and_two_do(tmp_path: Path) -> None:
    async with webhook(tmp_path) as (running, address):
        hub = running.of["mine"]
        frames: list[InFrame] = []
        hub.attach("CA1", frames.append)
        assert (await post(address, {"name": "pay"}))[0] == 200
        assert len(frames) == 1
        hub.attach("CA2", frames.append)
        status, said = await post(address, {"name": "pay"})
        assert (status, "say which one" in said["error"]) == (409, True)
        assert len(frames) == 1


async def test_what_belongs_to_no_call_is_refused_and_told_of(tmp_path: Path) -> None:
    async with webhook(tmp_path) as (running, address):
        hub = running.of["mine"]
        hub.attach("CA1", lambda frame: None)
        hub.detach("CA1")
        for _ in range(2):
            status, said = await post(address, {"name": "pay", "call_sid": "CA1"})
            assert (status, said) == (404, {"error": "no call of this id is open here"})
        (note,) = running.notes()
        assert note.endswith("2 tool requests belonged to no open call; the first: pay for call CA1: no open call")


async def test_a_token_is_asked_for_and_kept_out_of_the_record(tmp_path: Path) -> None:
    async with webhook(tmp_path, token="planted-token-1") as (running, address):
        frames: list[InFrame] = []
        running.of["mine"].attach("CA1", frames.append)
        body = {"name": "pay"}
        assert (await post(address, body))[0] == 401
        assert (await post(address, body, headers={"X-Rig-Token": "wrong"}))[0] == 401
        assert frames == []
        assert (await post(address, body, headers={"X-Rig-Token": "planted-token-1", "X-Trace": "7"}))[0] == 200
        assert (await post(address, body, headers={"Authorization": "Bearer planted-token-1"}))[0] == 200
        assert (await post(address + "?token=planted-token-1", body, headers={"X-Rig-Token": "planted-token-1"}))[
            0
        ] == 200
        assert len(frames) == 3
        assert all(b"planted-token-1" not in frame.payload for frame in frames)
        assert request_in(frames[0])["headers"]["x-trace"] == "7"


async def test_what_is_no_json_or_too_much_is_refused(tmp_path: Path) -> None:
    async with webhook(tmp_path) as (running, address):
        running.of["mine"].attach("CA1", lambda frame: None)
        assert await post(address, b"amount=40") == (400, {"error": "the body is not JSON"})
        assert await post(address, b"\xff\xfe") == (400, {"error": "the body is not JSON"})
        deep = b'{"a":' * 80 + b"1" + b"}" * 80
        assert await post(address, deep) == (400, {"error": "the body nests too deeply"})
        async with (
            aiohttp.ClientSession() as client,
            client.post(address, data=io.BytesIO(b" " * (2 << 20))) as response,
        ):
            assert response.status == 413


async def test_a_flood_of_one_call_is_bounded(tmp_path: Path) -> None:
    async with webhook(tmp_path) as (running, _):
        frames: list[InFrame] = []
        hub = running.of["mine"]
        hub.attach("CA1", frames.append)
        for _ in range(MAX_REQUESTS + 1):
            hub.deliver("webhook", {"body": {"name": "pay"}}, None, 1)
        assert len(frames) == MAX_REQUESTS
        assert "too many" in running.notes()[0]


async def test_targets_share_a_server_and_must_agree_on_it(tmp_path: Path) -> None:
    clock = MonotonicClock()
    same = {"webhook": FREE}
    async with channels({"a": same, "b": same, "c": {"none": True}}, tmp_path, clock) as running:
        assert running.of["a"] is running.of["b"]
        assert "c" not in running.of
    other = {"webhook": {**FREE, "results": {"*": 1}}}
    with pytest.raises(ChildError, match="targets a and b give it different settings"):
        async with channels({"a": same, "b": other}, tmp_path, clock):
            pass
    apart = {"webhook": {**FREE, "path": "/other"}}
    async with channels({"a": same, "b": apart}, tmp_path, clock) as running:
        assert running.addresses["b"] == running.addresses["a"].removesuffix("/tools") + "/other"


async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    async with webhook(tmp_path) as (_, address):
        listen = address.removeprefix("http://").removesuffix("/tools")
        with pytest.raises(ChildError) as error:
            async with channels({"mine": {"webhook": {"listen": listen}}}, tmp_path, MonotonicClock()):
                pass
        assert f"webhook {listen}: cannot listen" in str(error.value)
        assert "choose another tool_calls.webhook.listen" in str(error.value)


async def test_a_call_is_attached_once() -> None:
    from adapters.tool_requests import ToolRequests

    hub = Hub(ToolRequests({"webhook": {}}), "here")
    hub.attach("CA1", lambda frame: None)
    with pytest.raises(ValueError, match="attached already"):
        hub.attach("CA1", lambda frame: None)


LOG = {"path": "agent.jsonl", "name": "tool", "call_id": "call", "arguments": "args"}


async def test_new_lines_of_a_log_are_calls_and_old_ones_are_not(tmp_path: Path) -> None:
    path = tmp_path / "agent.jsonl"
    path.write_text('{"tool": "old", "call": "CA1"}\n')
    async with channels({"mine": {"log": LOG}}, tmp_path, MonotonicClock()) as running:
        arrived = anyio.Event()
        frames: list[InFrame] = []

        def take(frame: InFrame) -> None:
            frames.append(frame)
            arrived.set()

        running.of["mine"].attach("CA1", take)
        with path.open("a") as file:
            file.write('{"level": "info"}\nno json\n{"tool": "pay", "call": "CA1", "args"')
            file.flush()
            await anyio.sleep(0.05)
            assert frames == []
            file.write(': {"amount": 2}}\n')
        with anyio.fail_after(5):
            await arrived.wait()
        assert [request_in(frame)["body"] for frame in frames] == [
            {"tool": "pay", "call": "CA1", "args": {"amount": 2}}
        ]
        assert running.notes() == [f"{path}: 1 line was no JSON object, and left out"]


async def test_a_log_that_comes_later_or_is_begun_anew_is_read(tmp_path: Path) -> None:
    path = tmp_path / "agent.jsonl"
    async with channels({"mine": {"log": LOG}}, tmp_path, MonotonicClock()) as running:
        (tail,) = running.tails
        frames: list[InFrame] = []
        running.of["mine"].attach("CA1", frames.append)
        path.write_text('{"tool": "first", "call": "CA1"}\n')
        tail.look()
        path.write_text('{"tool": "2nd", "call": "CA1"}\n')
        tail.look()
        assert [request_in(frame)["body"]["tool"] for frame in frames] == ["first", "2nd"]


async def test_a_line_without_end_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "agent.jsonl"
    async with channels({"mine": {"log": LOG}}, tmp_path, MonotonicClock()) as running:
        (tail,) = running.tails
        frames: list[InFrame] = []
        running.of["mine"].attach("CA1", frames.append)
        with path.open("wb") as file:
            for _ in range(3):
                file.write(b"x" * (1 << 20))
                file.flush()
                tail.look()
            file.write(b'\n{"tool": "pay", "call": "CA1"}\n')
        tail.look()
        assert [request_in(frame)["body"]["tool"] for frame in frames] == ["pay"]
        assert tail.unread == 1
