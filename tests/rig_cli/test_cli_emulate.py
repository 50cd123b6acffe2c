"""`rig emulate`: an address that a vendor's own client can use, until a signal ends it and all that it started."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable
from typing import Any

import pytest
from openai import AsyncOpenAI


def address(process: Any) -> str:
    """Where it says that it listens."""
    for line in process.stderr:
        if found := re.match(r"local-\w+ listens at (\S+) \(.*\); Ctrl-C ends it", line):
            return found[1]
    raise AssertionError(f"it ended with {process.wait()}")


async def first_call(url: str) -> tuple[str, str]:
    """Name and arguments of what the agent calls when it is asked in writing, through the vendor's client."""
    base = url.removesuffix("/realtime")
    async with (
        AsyncOpenAI(api_key="none-needed", websocket_base_url=base) as client,
        client.realtime.connect(model="local-cascade") as connection,
    ):
        await connection.session.update(
            session={
                "type": "realtime",
                "instructions": "You take bookings. Book a table when a caller asks for one.",
                "tools": [
                    {
                        "type": "function",
                        "name": "book_table",
                        "description": "Books a table.",
                        "parameters": {"type": "object", "properties": {}},
                    }
                ],
            }
        )
        words = {"type": "input_text", "text": "Book a table, please."}
        await connection.conversation.item.create(item={"type": "message", "role": "user", "content": [words]})
        await connection.response.create()
        async for event in connection:
            if event.type == "response.function_call_arguments.done":
                return event.name, event.arguments
            assert event.type not in ("error", "response.done"), event
    raise AssertionError("closed without an answer")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serves_a_client_and_ends_with_all_its_processes(
    cli: Any, ended_children: Callable[..., None], number: int
) -> None:
    process = cli.start("emulate", "openai-realtime", "--agent", "local-cascade", "--port", 0)
    url = address(process)
    assert re.fullmatch(r"ws://127\.0\.0\.1:\d+/v1/realtime", url)
    assert asyncio.run(first_call(url)) == ("book_table", "{}")
    ended_children(process, number)
    # A process that a signal ends has minus its number here, and 128 more than it in a shell.
    assert process.returncode % 256 in (128 + number, 256 - number)
    assert "Traceback" not in process.stderr.read()
    assert process.stdout.read() == ""
