"""Measures our own pacing: many paced sessions in one process, their peer in another, over real loopback sockets.

Run as `python tests/benchmarks/pacing.py`; nothing here passes or fails. Prints, per load, how late chunks left
(against first chunk + k × chunk length), the lateness of the commits, the CPU time and memory of the sending process,
and how many turns would be void for latency. Beside it, in the same run: a naive loop that sleeps after each chunk.

Chunks are PCM16 at 24 kHz as base64 JSON, in the OpenAI Realtime dialect; the peer sends canned frames, so that its own
cost is not ours. Duplex loads hold every frame of all calls until the end, as no run does; the line on memory is of
calls that end one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import picows
import psutil
import uvloop

from adapters.dialect import EncodedClip, Setup, TargetSettings, TurnControlSettings, TurnMode
from adapters.registry import dialect
from adapters.session import Session
from captures.clock import MonotonicClock
from captures.frames import Direction
from transports.websocket import WebSocketTransport
from turn_control.pacing import percentile_ns
from turn_control.quiet_gc import no_full_collections
from turn_control.ticker import Scheduled, Ticker
from turn_control.turn import SpokenTurn, TurnRecord, play_turn

RATE_HZ = 24_000
VOID_NS = 20_000_000
DUPLEX_TAIL_S = 0.5
"""How much longer than the caller the peer speaks in duplex."""


# --- the peer, in its own process


def reply_frames(kind: str, **fields: Any) -> bytes:
    return orjson.dumps({"type": kind, "event_id": "", "response_id": "r", **fields})


READY = reply_frames("session.updated", session={"type": "realtime"})
CREATED = reply_frames("response.created", response={"id": "r", "status": "in_progress"})


def delta_parts(chunk_ms: int) -> list[bytes]:
    """Around the peer's stamp of the moment it sent the chunk; both processes read the same monotonic clock."""
    audio = base64.b64encode(bytes(range(240)) * (RATE_HZ * 2 * chunk_ms // 1000 // 240)).decode()
    fields = {"item_id": "SENT_AT", "output_index": 0, "content_index": 0, "delta": audio}
    return reply_frames("response.output_audio.delta", **fields).split(b"SENT_AT")


SENT_AT = re.compile(rb'"response.output_audio.delta".{1,80}"item_id":"(\d+)"')
CALL = {
    "type": "function_call",
    "id": "f",
    "call_id": "c",
    "name": "wait",
    "arguments": "{}",
    "status": "completed",
}
ITEM = reply_frames("response.output_item.done", output_index=1, item=CALL)
DONE = reply_frames("response.done", response={"id": "r", "status": "completed", "output": [CALL]})


class Peer(picows.WSListener):
    """Confirms the settings, then speaks at real time for a number of chunks and calls a tool.

    It begins when an answer is asked for or, in duplex, with the caller's first chunk.
    """

    def __init__(self, ticker: Ticker, clock: MonotonicClock, chunks: int, chunk_ms: int, duplex: bool) -> None:
        super().__init__()
        self.chunk_ns = chunk_ms * 1_000_000
        self.head, self.tail = delta_parts(chunk_ms)
        self.ticker = ticker
        self.clock = clock
        self.chunks = chunks
        self.duplex = duplex
        self.speaking: Scheduled | None = None

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        if frame.msg_type == picows.WSMsgType.CLOSE:
            transport.send_close(picows.WSCloseCode.OK)
            transport.disconnect()
            return
        start = frame.get_payload_as_bytes()[:120]
        if b"input_audio_buffer.append" in start:
            if self.duplex and self.speaking is None:
                self.speak(transport)
        elif b"session.update" in start:
            transport.send(picows.WSMsgType.TEXT, READY)
        elif b"response.create" in start:
            self.speak(transport)

    def speak(self, transport: picows.WSTransport) -> None:
        begin_ns = self.clock.now_ns() + self.ticker.phase_ns(self.chunk_ns)
        transport.send(picows.WSMsgType.TEXT, CREATED)

        def steps() -> Iterator[int]:
            for k in range(1, self.chunks + 1):
                transport.send(picows.WSMsgType.TEXT, self.head + b"%d" % self.clock.now_ns() + self.tail)
                yield begin_ns + k * self.chunk_ns
            transport.send(picows.WSMsgType.TEXT, ITEM)
            transport.send(picows.WSMsgType.TEXT, DONE)

        step = steps()
        self.speaking = self.ticker.add(begin_ns, lambda: next(step, None), fail)

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        if self.speaking is not None:
            self.speaking.cancel()


def fail(error: Exception) -> None:
    raise error


async def serve(chunks: int, chunk_ms: int, duplex: bool) -> None:
    clock = MonotonicClock()
    ticker = Ticker(clock)
    server = await picows.ws_create_server(
        lambda request: Peer(ticker, clock, chunks, chunk_ms, duplex), "127.0.0.1", 0
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# --- the sessions


@dataclass
class Load:
    """What one load showed."""

    late_ns: list[int] = field(default_factory=list)
    commit_ns: list[int] = field(default_factory=list)
    arrival_ns: list[int] = field(default_factory=list)
    """Our stamp of a reply chunk minus the peer's: transit, and what our loop adds to it."""
    endings: list[str] = field(default_factory=list)
    replied_s: float = 0.0
    void: int = 0
    lag_max_ns: int = 0

    def take(self, session: Session, record: TurnRecord, chunk_ms: int) -> None:
        sent = [
            f.t_ns for f in session.log if f.direction is Direction.SENT and b"audio_buffer.append" in f.payload[:80]
        ]
        self.late_ns += [t_ns - sent[0] - k * chunk_ms * 1_000_000 for k, t_ns in enumerate(sent)]
        for frame in session.log:
            if frame.direction is Direction.RECEIVED and (stamp := SENT_AT.search(frame.payload, 0, 200)):
                self.arrival_ns.append(frame.t_ns - int(stamp[1]))
        self.endings.append(record.ending.value)
        self.replied_s += sum(len(pcm) for _, pcm in record.reply_pieces) / 2 / RATE_HZ
        pacing = record.pacing
        lag_ns = max((lag.lag_ns for lag in pacing.loop_lags), default=0)
        self.commit_ns += [] if pacing.commit_ns is None else [pacing.commit_ns]
        self.lag_max_ns = max(self.lag_max_ns, lag_ns)
        self.void += max(pacing.lateness_p99_ns, pacing.last_chunk_ns, pacing.commit_ns or 0, lag_ns) > VOID_NS


async def opened(port: int, clock: MonotonicClock, mode: TurnMode) -> Session:
    target = TargetSettings(model="m", base_url=f"ws://127.0.0.1:{port}/v1/realtime")
    session = Session(dialect("openai_realtime").client(target), WebSocketTransport(clock), clock)
    await session.open(Setup("Answer the caller.", (), RATE_HZ, TurnControlSettings(mode)), 10)
    return session


async def paced(port: int, sessions: int, clip: EncodedClip, mode: TurnMode, rounds: int, spread_s: float) -> Load:
    """`sessions` at once, each for `rounds` turns on a connection of its own; starts spread over `spread_s`."""
    clock, rng = MonotonicClock(), random.Random(1)
    ticker = Ticker(clock)
    played: list[tuple[Session, TurnRecord]] = []

    async def rounds_of_one() -> None:
        await asyncio.sleep(rng.uniform(0, spread_s))
        for _ in range(rounds):
            session = await opened(port, clock, mode)
            try:
                played.append(
                    (session, await play_turn(session, SpokenTurn(clip), ticker=ticker, clock=clock, mode=mode))
                )
            finally:
                await session.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(sessions):
            group.create_task(rounds_of_one())
    load = Load()
    for session, record in played:  # afterwards: adding up would hold the loop
        load.take(session, record, clip.chunk_ms)
    return load


async def naive(port: int, sessions: int, clip: EncodedClip) -> list[float]:
    """Seconds that each of `sessions` took too long for the clip when sleeping after each chunk."""
    clock, drifts = MonotonicClock(), []

    async def one() -> None:
        session = await opened(port, clock, TurnMode.SERVER_VAD)
        start_ns = clock.now_ns()
        for frame in clip.frames:
            session.send_chunk(frame)
            await asyncio.sleep(clip.chunk_ms / 1000)
        drifts.append((clock.now_ns() - start_ns) / 1e9 - len(clip.frames) * clip.chunk_ms / 1000)
        await session.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(sessions):
            group.create_task(one())
    return drifts


# --- the runs


def with_peer(
    run: Callable[[int], Coroutine[Any, Any, Any]], loop: str, speech_s: float, duplex: bool, chunk_ms: int = 20
) -> tuple[Any, float, float]:
    """The result of `run` against a fresh peer process; CPU seconds and wall seconds of this process."""
    chunks = round(speech_s * 1000 / chunk_ms)
    command = [sys.executable, "-P", __file__, "--peer", str(chunks), "--chunk-ms", str(chunk_ms), "--loop", loop]
    command += ["--duplex"] * duplex
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as peer:
        try:
            assert peer.stdout is not None
            port = int(peer.stdout.readline())
            wall_s, cpu_s = time.monotonic(), time.process_time()
            with no_full_collections(), asyncio.Runner(loop_factory=loop_factory(loop)) as runner:
                result = runner.run(run(port))
            return result, time.process_time() - cpu_s, time.monotonic() - wall_s
        finally:
            peer.terminate()


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory if name == "uvloop" else asyncio.new_event_loop


def tell(title: str, load: Load, cpu_s: float, wall_s: float) -> None:
    late, commits, arrivals = sorted(load.late_ns), sorted(load.commit_ns), sorted(load.arrival_ns)
    p50, p99, p999, top = (percentile_ns(late, share) / 1e6 for share in (0.50, 0.99, 0.999, 1.0))
    commit = f"{percentile_ns(commits, 0.99) / 1e6:.2f} ms" if commits else "none sent (the peer ends the turn)"
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{title}: lateness p50 {p50:.2f}  p99 {p99:.2f}  p99.9 {p999:.2f}  max {top:.2f} ms over {len(late)} chunks\n"
        f"    commit late p99 {commit}, largest lag while answering "
        f"{load.lag_max_ns / 1e6:.1f} ms, void {load.void} of {len(load.endings)} turns\n"
        f"    reply chunks stamped after the peer sent them: p50 {percentile_ns(arrivals, 0.50) / 1e6:.2f}  p99 "
        f"{percentile_ns(arrivals, 0.99) / 1e6:.2f}  max {percentile_ns(arrivals, 1.0) / 1e6:.2f} ms\n"
        f"    CPU {100 * cpu_s / wall_s:.0f} % of one core over {wall_s:.0f} s, peak memory {peak_mb:.0f} MB, "
        f"reply audio {load.replied_s:.0f} s, endings {', '.join(sorted(set(load.endings)))}"
    )


def clip_of(seconds: float, chunk_ms: int = 20) -> EncodedClip:
    pcm = bytes(2 * round(RATE_HZ * seconds))
    return dialect("openai_realtime").client(TargetSettings(model="m")).encode_clip(pcm, RATE_HZ, chunk_ms)


def resident_mb() -> float:
    return psutil.Process().memory_info().rss / 1e6


async def growth_mb(port: int, sessions: int, clip: EncodedClip) -> float:
    """Resident memory that `sessions` calls at once add, sampled while they go on; each is let go at its end."""
    clock = MonotonicClock()
    ticker = Ticker(clock)
    before_mb, top_mb = resident_mb(), 0.0

    async def calls_of_one() -> None:
        nonlocal top_mb
        for _ in range(3):
            session = await opened(port, clock, TurnMode.MANUAL)
            try:
                await play_turn(session, SpokenTurn(clip), ticker=ticker, clock=clock)
                top_mb = max(top_mb, resident_mb())
            finally:
                await session.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(sessions):
            group.create_task(calls_of_one())
    return top_mb - before_mb


def main() -> None:
    parser = argparse.ArgumentParser(description="How late paced chunks leave, and what it costs.")
    parser.add_argument("--loop", choices=["uvloop", "asyncio"], default="uvloop")
    parser.add_argument("--duplex-sessions", type=int, default=250, help="of 20 ms chunks")
    parser.add_argument("--long-chunk-sessions", type=int, default=700, help="duplex, of 100 ms chunks")
    parser.add_argument("--short-sessions", type=int, default=100)
    parser.add_argument("--memory-sessions", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20.0, help="length of the duplex clip")
    parser.add_argument("--turn-seconds", type=float, default=6.0, help="length of a clip with a short reply")
    parser.add_argument("--reply-seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3, help="turns of each session with short replies")
    parser.add_argument("--naive-sessions", type=int, default=60)
    parser.add_argument("--naive-seconds", type=float, default=10.0)
    parser.add_argument("--peer", type=int, metavar="CHUNKS", help=argparse.SUPPRESS)
    parser.add_argument("--chunk-ms", type=int, default=20, help=argparse.SUPPRESS)
    parser.add_argument("--duplex", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer is not None:
        with no_full_collections(), asyncio.Runner(loop_factory=loop_factory(args.loop)) as runner:
            runner.run(serve(args.peer, args.chunk_ms, args.duplex))
        return

    print(f"{args.loop}, Python {sys.version.split()[0]}")
    clip = clip_of(args.turn_seconds)
    grown_mb, _, _ = with_peer(
        lambda port: growth_mb(port, args.memory_sessions, clip), args.loop, args.reply_seconds, False
    )
    print(
        f"memory: {args.memory_sessions} calls of {args.turn_seconds:g} s with {args.reply_seconds:g} s of reply, "
        f"{grown_mb / args.memory_sessions:.2f} MB each"
    )
    for sessions, chunk_ms in ((args.duplex_sessions, 20), (args.long_chunk_sessions, 100)):
        if sessions:
            long_clip = clip_of(args.seconds, chunk_ms)
            told = with_peer(
                lambda port, n=sessions, c=long_clip: paced(port, n, c, TurnMode.SERVER_VAD, 1, 0.5),
                args.loop,
                args.seconds + DUPLEX_TAIL_S,
                True,
                chunk_ms,
            )
            tell(f"{sessions} duplex, {chunk_ms} ms chunks", *told)

    spread_s = args.turn_seconds + args.reply_seconds
    told = with_peer(
        lambda port: paced(port, args.short_sessions, clip, TurnMode.MANUAL, args.rounds, spread_s),
        args.loop,
        args.reply_seconds,
        False,
    )
    tell(f"{args.short_sessions} with replies of {args.reply_seconds:g} s", *told)

    naive_clip = clip_of(args.naive_seconds)
    drifts, _, _ = with_peer(
        lambda port: naive(port, args.naive_sessions, naive_clip), args.loop, args.naive_seconds + DUPLEX_TAIL_S, True
    )
    middle, worst = sorted(drifts)[len(drifts) // 2], max(drifts)
    print(
        f"{args.naive_sessions} duplex, naive sleep per chunk: late by {middle * 1000:.0f} ms (worst "
        f"{worst * 1000:.0f} ms) after {args.naive_seconds:g} s"
    )


if __name__ == "__main__":
    main()
