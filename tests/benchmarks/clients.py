"""Which WebSocket client paces best: the sessions, ticker and peer of `pacing.py` over picows, aiohttp and websockets.

Run as `python tests/benchmarks/clients.py [--sessions N]`; nothing here passes or fails. aiohttp and websockets are
wrapped as thinly as our transport's interface allows: a task that reads, and one that sends what was written.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import websockets.asyncio.client
from websockets.exceptions import ConnectionClosed

sys.path.insert(0, str(Path(__file__).parent))
import pacing

from captures.clock import Clock
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import MAX_MESSAGE_BYTES, Endpoint
from transports.websocket import WebSocketTransport
from turn_control.pacing import percentile_ns


class _Reading:
    """What both wrappers share: a task that reads, and another that sends what was written."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting: asyncio.Queue[OutFrame] = asyncio.Queue()

    def write(self, frame: OutFrame) -> None:
        self._waiting.put_nowait(frame)

    def backlog_bytes(self) -> int:
        return 0

    def _start(self, *work: Coroutine[Any, Any, None]) -> None:
        self._tasks = [asyncio.ensure_future(one) for one in work]

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class AiohttpTransport(_Reading):
    async def connect(
        self, endpoint: Endpoint, on_frame: Callable[[InFrame], None], on_closed: Callable[[ClosedBy], None]
    ) -> None:
        self._session = aiohttp.ClientSession()
        self._ws = await self._session.ws_connect(endpoint.url, compress=0, max_msg_size=MAX_MESSAGE_BYTES)

        async def read() -> None:
            async for message in self._ws:
                on_frame(InFrame(message.data.encode(), False, self._clock.now_ns()))

        async def send() -> None:
            while True:
                await self._ws.send_str((await self._waiting.get()).payload.decode())

        self._start(read(), send())

    async def close(self, code: int = 1000, reason: str = "") -> None:
        await self._stop()
        await self._ws.close()
        await self._session.close()


class WebsocketsTransport(_Reading):
    async def connect(
        self, endpoint: Endpoint, on_frame: Callable[[InFrame], None], on_closed: Callable[[ClosedBy], None]
    ) -> None:
        self._ws = await websockets.asyncio.client.connect(
            endpoint.url, compression=None, ping_interval=None, max_size=MAX_MESSAGE_BYTES, proxy=None
        )

        async def read() -> None:
            try:
                while True:
                    on_frame(InFrame(await self._ws.recv(decode=False), False, self._clock.now_ns()))
            except ConnectionClosed:
                return

        async def send() -> None:
            while True:
                await self._ws.send((await self._waiting.get()).payload, text=True)

        self._start(read(), send())

    async def close(self, code: int = 1000, reason: str = "") -> None:
        await self._stop()
        await self._ws.close()


CLIENTS: dict[str, Callable[[Clock], Any]] = {
    "picows": WebSocketTransport,
    "aiohttp": AiohttpTransport,
    "websockets": WebsocketsTransport,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Lateness and processor time of three WebSocket clients.")
    parser.add_argument("--sessions", default="50,100,200", help="duplex sessions of 20 ms chunks at once")
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    clip = pacing.clip_of(args.seconds)
    print(f"uvloop, Python {sys.version.split()[0]}, duplex, 20 ms chunks, {args.seconds:g} s")
    for sessions in map(int, args.sessions.split(",")):
        for name, made in CLIENTS.items():
            pacing.WebSocketTransport = made  # type: ignore[misc, assignment]

            async def run(port: int, n: int = sessions) -> pacing.Load:
                return await pacing.paced(port, n, clip, pacing.TurnMode.SERVER_VAD, 1, 0.5)

            started_s = time.monotonic()
            load, cpu_s, wall_s = pacing.with_peer(run, "uvloop", args.seconds + pacing.DUPLEX_TAIL_S, True)
            late, arrivals = sorted(load.late_ns), sorted(load.arrival_ns)
            print(
                f"{sessions:4d} {name:<10} lateness p99 {percentile_ns(late, 0.99) / 1e6:7.2f} ms, arrivals p99 "
                f"{percentile_ns(arrivals, 0.99) / 1e6:7.2f} ms, CPU {100 * cpu_s / wall_s:3.0f} %, "
                f"void {load.void}/{len(load.endings)}, {time.monotonic() - started_s:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
