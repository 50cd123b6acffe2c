"""Plays silence into `to_agent` until the devices say that something is wrong, then hangs up; prints what was said.

A process of its own, as the tests end the sound server behind it.
"""

from __future__ import annotations

import asyncio
import sys

import orjson

from captures.clock import MonotonicClock
from captures.frames import InFrame, OutFrame
from transports.device import DeviceEndpoint, DeviceTransport
from transports.transport import TransportError


async def call(rate_hz: int) -> None:
    told = asyncio.Event()

    def take(frame: InFrame) -> None:
        if not frame.binary:
            print(frame.payload.decode(), flush=True)
            if any(name.endswith("_stopped") for name in orjson.loads(frame.payload)):
                told.set()

    transport = DeviceTransport(MonotonicClock())
    endpoint = DeviceEndpoint("", output="to_agent", input="from_agent_monitor", rate_hz=rate_hz)
    try:
        await transport.connect(endpoint, take, lambda closed: print(closed.reason, flush=True))
    except TransportError as error:
        print(error.code, error)
        return
    print("open", flush=True)
    while not told.is_set():
        transport.write(OutFrame(bytes(rate_hz // 50 * 2), binary=True))
        await asyncio.sleep(0.02)
    await transport.close()


asyncio.run(call(int(sys.argv[1])))
