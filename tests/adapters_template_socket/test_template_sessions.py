"""Sessions that are made over HTTP first: signed addresses, and calls with the items' own instructions and tools."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from adapters.dialect import Setup, TargetSettings
from adapters.template_socket.client import TemplateClient
from adapters.template_socket.emulated.voice import agent_name
from adapters.template_socket.template import read_template
from captures.clock import MonotonicClock
from captures.events import Failed, FailureKind, Refused
from captures.run_folder import RunFolder
from rig.bank.loader import load_bank
from rig.prompts.templates import instructions
from transports.transport import TransportError
from transports.websocket import WebSocketTransport

ITEM = "demo-betting-01"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def platform(routes: dict[str, Handler]) -> AsyncIterator[str]:
    app = web.Application()
    for path, handler in routes.items():
        app.router.add_route("*", path, handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def ultravox(base_url: str | None) -> TemplateClient:
    told = {"template": "ultravox", "declared": read_template("ultravox", Path())}
    client = TemplateClient(TargetSettings("any", base_url, "key-of-mine", told), {})
    client.open(Setup("Be kind.", (), 16_000))
    return client


async def connected(client: TemplateClient) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await WebSocketTransport(MonotonicClock()).connect(client.endpoint(), lambda _: None, lambda _: None)
    return caught.value


def test_a_key_makes_sessions_and_none_takes_the_address() -> None:
    made = ultravox(None)
    assert made.capabilities.takes_setup
    assert made.endpoint().label == "https://api.ultravox.ai/api/calls"
    assert "key-of-mine" not in repr(made.endpoint())
    told = {"template": "ultravox", "declared": read_template("ultravox", Path()), "tools": ["pay"]}
    joined = TemplateClient(TargetSettings("any", "wss://host/join?token=abcd", None, told), {})
    assert joined.endpoint().url == "wss://host/join?token=abcd"
    assert not joined.capabilities.takes_setup


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, b'{"detail": "bad key key-of-mine"}', Refused),
        (429, b"{}", FailureKind.RATE_LIMIT),
        (503, b"{}", FailureKind.TRANSIENT),
        (201, b'{"joinUrl": "http://elsewhere/"}', "bad_answer"),
        (201, b"not json", "bad_answer"),
        (201, b"x" * 300_000, "bad_answer"),
        (302, b"", Refused),
    ],
)
def test_a_session_that_was_not_made_is_typed(status: int, body: bytes, expected: object) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers={"Location": "http://127.0.0.1:1/"})

    async def run() -> None:
        async with platform({"/api/calls": answer}) as base:
            client = ultravox(base)
            error = await connected(client)
            event = client.connect_failed(error)
            assert isinstance(event, Refused | Failed)
            assert "key-of-mine" not in event.message
            assert expected in (type(event), event.code, getattr(event, "kind", None)), event

    anyio.run(run)


def test_calls_go_through_sessions_made_first(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bank = load_bank("demo")
    item = next(item for item in bank.items if item.id == ITEM)
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.json_schema()}
        for tool in bank.menu(item)
    ]
    agent = agent_name(instructions(item.scenario, item.explicit_policy), tools)
    monkeypatch.setenv("PLATFORM_KEY", "key-of-the-platform")
    keys = []

    async def signed(request: web.Request) -> web.Response:
        keys.append(request.headers["xi-api-key"])
        assert request.query["agent_id"] == "agent-7"
        return web.json_response({"signed_url": f"{address}/v1/convai/conversation?agent_id={agent}"})

    async def call(request: web.Request) -> web.Response:
        keys.append(request.headers["X-API-Key"])
        body = await request.json()
        assert body["medium"]["serverWebSocket"]["inputSampleRate"] == 16_000
        made = agent_name(body["systemPrompt"], [_tool(given["temporaryTool"]) for given in body["selectedTools"]])
        return web.json_response({"callId": "c", "joinUrl": f"{address}/ultravox?call={made}"}, status=201)

    async def measured() -> None:
        async with platform({"/v1/convai/conversation/get-signed-url": signed, "/api/calls": call}) as base:
            common = {
                "adapter": "template_socket",
                "base_url": base,
                "api_key_env": "PLATFORM_KEY",
                "turn_control": {"mode": "server_vad"},
            }
            own = {"values": {"agent_id": "agent-7"}, "tools": [tool["name"] for tool in tools]}
            targets = [
                {"name": "elevenlabs", "settings": {"template": "elevenlabs_agents"} | own} | common,
                {"name": "ultravox", "settings": {"template": "ultravox"}} | common,
            ]
            config = {"version": 1, "bank": "demo", "items": [ITEM], "conditions": ["text_twin"], "targets": targets}
            path = tmp_path / "config.json"
            path.write_text(json.dumps(config | {"concurrency": 4}))
            command = [sys.executable, "-m", "rig", "run", str(path), "--out", str(tmp_path / "run")]
            done = await anyio.run_process(command, check=False)
            assert done.returncode == 0, done.stderr.decode()

    anyio.run(measured)
    acted: dict[str, dict[str | None, Any]] = {"elevenlabs": {}, "ultravox": {}}
    for capture in RunFolder.open(tmp_path / "run").read_captures():
        acted[capture.target][capture.variant_id] = [(one.name, one.arguments) for one in capture.calls]
    assert acted["ultravox"] == acted["elevenlabs"]
    assert all(acted["ultravox"].values())
    assert set(keys) == {"key-of-the-platform"}
    assert "key-of-the-platform" not in (tmp_path / "run" / "run.json").read_text()


def _tool(given: dict[str, Any]) -> dict[str, Any]:
    """A tool as Ultravox has it, as we have it."""
    assert given["client"] == {}
    assert {one["location"] for one in given["dynamicParameters"]} <= {"PARAMETER_LOCATION_BODY"}
    schema = {
        "type": "object",
        "properties": {one["name"]: one["schema"] for one in given["dynamicParameters"]},
        "required": [one["name"] for one in given["dynamicParameters"] if one["required"]],
    }
    return {"name": given["modelToolName"], "description": given["description"], "parameters": schema}
