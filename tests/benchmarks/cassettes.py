"""What cassettes cost: writing them beside paced calls, and reading a thousand of them again.

Run as `python tests/benchmarks/cassettes.py`; nothing here passes or fails. Prints the processor time of writing one
call of 6 s with a reply of 2 s (every frame, the reply's sound and the line, synced), the share of a core that 100 such
calls at once take, and how late 100 streams of 20 ms ticks are with and without the writer at work beside them; then
how long `rig replay` takes over more than a thousand stored calls, beside merely unpacking their cassettes.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import orjson
import uvloop
import yaml
from anyio.from_thread import start_blocking_portal

from adapters.server import Reply, ReplyCall
from captures.capture import Capture, Condition, Ending, ReplyAudio
from captures.cassette import read_cassette
from captures.clock import MonotonicClock
from captures.frames import Direction, LoggedFrame
from captures.run_folder import RunFolder
from captures.scrub import Scrubber
from captures.writer import AttemptRecord, CaptureWriter
from rig.agents.emulator import base_url, serve
from turn_control.pacing import percentile_ns
from turn_control.quiet_gc import no_full_collections
from turn_control.ticker import Ticker

CALL_S, REPLY_S, AT_ONCE = 6.0, 2.0, 100
CHUNK_NS = 20_000_000
ROUNDS = 5


def speech(seconds: float, seed: int) -> bytes:
    """Noise: nothing compresses worse, so that real speech costs less."""
    samples: bytes = np.random.default_rng(seed).integers(-8000, 8000, round(24_000 * seconds)).astype("<i2").tobytes()
    return samples


def record(number: int) -> AttemptRecord:
    """One call as a session leaves it."""
    caller, reply = speech(CALL_S, number), speech(REPLY_S, number + 1)
    frames = []
    for at in range(0, len(caller), 960):
        payload = orjson.dumps(
            {"type": "input_audio_buffer.append", "audio": base64.b64encode(caller[at : at + 960]).decode()}
        )
        frames.append(LoggedFrame(at, Direction.SENT, payload, False))
    for at in range(0, len(reply), 4800):
        delta = base64.b64encode(reply[at : at + 4800]).decode()
        payload = orjson.dumps({"type": "response.output_audio.delta", "event_id": "e", "item_id": "i", "delta": delta})
        frames.append(LoggedFrame(at, Direction.RECEIVED, payload, False))
    capture = Capture(
        identity=f"{number:032x}", target="t", item_id="i", variant_id="v", condition=Condition.AUDIO, repeat=0,
        attempt=1, finished=True, started_ns=0, adapter="openai_realtime", wire_version=1, parser_version=1,
        ending=Ending.CALLED, reply_audio=ReplyAudio(rate_hz=24_000, received_s=REPLY_S, leading_silence_s=0.0),
    )  # fmt: skip
    return AttemptRecord(capture, tuple(frames), reply)


async def ticking(records: list[AttemptRecord], folder: Path | None, seconds: float) -> list[int]:
    """Lateness (ns) of 100 streams of ticks; with `folder`, calls are written there at the pace of 100 at once."""
    clock = MonotonicClock()
    ticker = Ticker(clock, random.Random(1))
    late: list[int] = []
    failures: list[Exception] = []
    until_ns = clock.now_ns() + round(seconds * 1e9)

    def stream(due_ns: int) -> Any:
        def tick() -> int | None:
            nonlocal due_ns
            late.append(clock.now_ns() - due_ns)
            due_ns += CHUNK_NS
            return due_ns if due_ns < until_ns else None

        return tick

    for _ in range(AT_ONCE):
        first_ns = clock.now_ns() + ticker.phase_ns(CHUNK_NS)
        ticker.add(first_ns, stream(first_ns), failures.append)
    if folder is None:
        await anyio.sleep(seconds)
    else:
        every_s = (CALL_S + REPLY_S) / AT_ONCE
        async with CaptureWriter(RunFolder.create(folder, {}), Scrubber(["a-secret-to-look-for"])) as writer:
            for number in range(int(seconds / every_s)):
                await writer.put(records[number % len(records)])
                await anyio.sleep(every_s)
    assert not failures
    return sorted(late)


def writing(scratch: Path, seconds: float) -> None:
    records = [record(number) for number in range(20)]

    async def alone() -> list[float]:
        """Processor seconds of one call: of clips that are new to the writer, and of those it has written before."""
        each_s: list[float] = []
        for name in ("warm", "alone"):
            each_s.clear()
            folder = RunFolder.create(scratch / name, {})
            queue_limit = 1  # so that `put` waits for what was put before
            async with CaptureWriter(folder, Scrubber(["a-secret-to-look-for"]), queue_limit) as writer:
                for _ in range(ROUNDS):
                    began = time.process_time()
                    for one in records:
                        await writer.put(one)
                    each_s.append((time.process_time() - began) / len(records))
        return [each_s[0], sum(each_s[1:]) / (ROUNDS - 1)]

    with no_full_collections():
        new_s, again_s = anyio.run(alone)
        before = anyio.run(ticking, records, None, seconds, backend_options={"use_uvloop": True})
        beside = anyio.run(ticking, records, scratch / "beside", seconds, backend_options={"use_uvloop": True})
    rate = AT_ONCE / (CALL_S + REPLY_S)
    size = sum(path.stat().st_size for path in (scratch / "alone").rglob("*") if path.is_file()) / len(records)
    cost = f"{again_s * 1000:.1f} ms of processor time, {new_s * 1000:.1f} ms when its clip is new"
    print(f"writing one call of {CALL_S:g} + {REPLY_S:g} s: {cost}, {size / ROUNDS / 1000:.0f} kB on disk")
    share, new_share = (100 * one_s * rate for one_s in (again_s, new_s))
    print(f"{AT_ONCE} calls at once ({rate:.1f} a second): {share:.1f} % of a core, {new_share:.1f} % of new clips")
    for name, late in (("without the writer", before), ("with it", beside)):
        p50, p99, most = (percentile_ns(late, share) / 1e6 for share in (0.5, 0.99, 1.0))
        print(f"lateness of {AT_ONCE} streams of 20 ms, {name}: p50 {p50:.2f}, p99 {p99:.2f}, largest {most:.1f} ms")


class Talker:
    """Calls the first tool, at once."""

    async def reply(self, setup: Any, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        return Reply(calls=(ReplyCall(setup.tools[0].name, {}),)) if setup.tools else Reply(text="Yes.")

    def after_result(self, call: ReplyCall | None) -> Reply:
        return Reply(text="Done.")


def replaying(scratch: Path, repeats: int) -> None:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serve("openai_realtime", Talker())) as port,
    ):
        target = {"name": "one", "adapter": "openai_realtime", "model": "m", "api_key_env": "KEY"}
        target["base_url"] = base_url("openai_realtime", "127.0.0.1", port)
        config = {
            "version": 1, "bank": "demo", "conditions": ["audio"], "pace": 0, "second_turn": False, "repeats": repeats,
            "concurrency": 16, "targets": [target],
        }  # fmt: skip
        (scratch / "config.yaml").write_text(yaml.safe_dump(config))
        command = [sys.executable, "-m", "rig", "run", "config.yaml", "--out", "run", "--json"]
        subprocess.run(
            command, cwd=scratch, check=True, capture_output=True, env={"KEY": "benchmark-key", "PATH": "/usr/bin:/bin"}
        )
    run = scratch / "run"
    captures = [json.loads(line) for line in (run / "captures.jsonl").read_text().splitlines()]
    began = time.perf_counter()
    for capture in captures:
        read_cassette(run / capture["cassette"])
    unpacked_s = time.perf_counter() - began
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "rig", "replay", str(run)], capture_output=True, text=True)
    took_s = time.perf_counter() - began
    print(f"rig replay, {len(captures)} stored calls: {took_s:.1f} s (unpacking alone: {unpacked_s:.1f} s)")
    print(done.stderr.strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="of ticking, each way")
    parser.add_argument("--repeats", type=int, default=11, help="of the demo bank's 92 clips")
    chosen = parser.parse_args()
    uvloop.install()
    sys.setswitchinterval(0.001)  # as `rig run` does
    with tempfile.TemporaryDirectory() as scratch:
        writing(Path(scratch), chosen.seconds)
        replaying(Path(scratch), chosen.repeats)


if __name__ == "__main__":
    main()
