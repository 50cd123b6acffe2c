"""Agents with a prompt and tools of their own, and full-duplex agents without turn events, in real runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from captures.capture import Condition, Ending
from rig.bank.loader import load_bank
from rig.config import ConfigError, parse_config
from rig.engine.prepare import prepare

ITEM = "demo-banking-01"
AGENT = """
import asyncio, json
from websockets.asyncio.server import serve
async def agent(socket):
    spoke = False
    async for text in socket:
        if isinstance(text, bytes):
            if DUPLEX:
                await socket.send(bytes(960))
                if any(text):
                    spoke = True
                elif spoke:
                    spoke = False
                    call = {"call_id": "a", "name": "release_transfer", "arguments": {}}
                    await socket.send(json.dumps({"type": "tool.call", **call}))
            continue
        message = json.loads(text)
        if message["type"] == "session.setup":
            print(json.dumps([message["instructions"], message["tools"]]), flush=True)
            await socket.send(json.dumps({"type": "session.ready", "version": 1}))
        elif message["type"] in ("turn.commit", "turn.text"):
            call = {"call_id": "a", "name": "release_transfer", "arguments": {}}
            await socket.send(json.dumps({"type": "tool.call", **call}))
            await socket.send(json.dumps({"type": "turn.end"}))
async def main():
    async with serve(agent, "127.0.0.1", 0) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()
asyncio.run(main())
"""


@pytest.fixture(params=[False, True], ids=["turns", "duplex"])
def agent(request: pytest.FixtureRequest) -> Iterator[tuple[bool, str, Any]]:
    """(full duplex?, address, its output)."""
    with Popen([sys.executable, "-c", f"DUPLEX = {request.param}\n{AGENT}"], stdout=PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield request.param, f"ws://127.0.0.1:{process.stdout.readline().strip()}/", process.stdout
        finally:
            process.terminate()


def own_tools() -> list[str]:
    bank = load_bank("demo")
    return [tool.name for tool in bank.menu(next(item for item in bank.items if item.id == ITEM))]


def config(address: str, settings: dict[str, Any], **more: Any) -> dict[str, Any]:
    target = {"name": "mine", "adapter": "rig_socket", "base_url": address, "settings": settings, "role": "contestant"}
    given = {"version": 1, "bank": "demo", "items": [ITEM], "conditions": ["audio", "text_twin", "probe"]}
    return {**given, "targets": [target], **more}


def test_only_items_whose_tools_it_declares(tmp_path: Path) -> None:
    """Said before any call, with the items and what is lacking; nothing listens at this address."""
    for items, tools, told in (
        ([ITEM], ["release_transfer"], rf"lacks tools of 1 of 1 items: {ITEM} \(keep_hold_for_scam_review, "),
        (["*"], own_tools(), r"lacks tools of \d+ of \d+ items: demo-betting-01 .*; and \d+ more; choose others with"),
    ):
        given = config("ws://127.0.0.1:1/", {"takes_setup": False, "tools": tools}, items=items)
        with pytest.raises(ConfigError, match=told):
            prepare(parse_config(json.dumps(given), "config", tmp_path, {}))


def test_its_probes_are_not_planned_and_nothing_else_is_left_out(tmp_path: Path) -> None:
    given = config("ws://127.0.0.1:1/", {"takes_setup": False, "tools": own_tools()})
    plan = prepare(parse_config(json.dumps(given), "config", tmp_path, {})).plan
    assert {cell.condition for cell in plan.cells} == {Condition.AUDIO, Condition.TEXT_TWIN}
    (left,) = plan.not_planned
    assert (left.condition, left.reason) == (Condition.PROBE, "the agent takes no instructions of ours")


def test_it_is_run_and_scored_without_our_prompt(agent: tuple[bool, str, Any], rig: Any) -> None:
    duplex, address, output = agent
    settings: dict[str, Any] = {"takes_setup": False, "tools": own_tools()}
    more: dict[str, Any] = {}
    if duplex:
        settings |= {"end_silence_s": 0.4, "continuous_audio": True, "text_turns": False}
        more = {"turn_control": {"mode": "server_vad"}}
    done = rig.run(config(address, settings, **more))
    assert json.loads(output.readline()) == ["", []]
    conditions = {capture.condition for capture in done.captures}
    assert conditions == ({Condition.AUDIO} if duplex else {Condition.AUDIO, Condition.TEXT_TWIN})
    assert {capture.ending for capture in done.captures} == {Ending.CALLED}
    assert {capture.calls[0].name for capture in done.captures} == {"release_transfer"}
    if duplex:
        assert all("0.4 s of silence" in capture.ending_detail for capture in done.captures)
