"""The brain process: hears one utterance at a time for all emulated agents, and remembers what it heard.

A process of its own, since the recogniser holds the interpreter lock. It sees PCM and nothing else, over loopback TCP
with a one-time token, and only after the caller's turn has ended. Started by `rig.agents.fleet`.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import logging
import os
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import anyio
import numpy as np
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from rig.agents import brain_wire, parent
from rig.agents.brain_wire import Impression
from rig.agents.hearing import hear
from rig.agents.recogniser import LexiconError, Recogniser

MAX_REMEMBERED = 1024
MAX_WAITING = 512
RATES_HZ = range(8000, 48_001)
MAX_SPEECH_S = 120.0
LEAST_SPEECH_S = 0.1
SILENT_PEAK = 0.001
"""Shorter or softer (-60 dBFS) is taken for silence."""
_REQUEST_TIMEOUT_S = 30.0

Listen = Callable[[bytes, int], Impression]
_LOG = logging.getLogger(__name__)


class BusyError(RuntimeError):
    """Too many requests wait already."""


class Memory:
    """Impressions by PCM and rate: each utterance is decoded once, even when several ask for it at the same time."""

    def __init__(self, listen: Listen) -> None:
        self._listen = listen
        self._known: OrderedDict[bytes, Impression] = OrderedDict()
        self._coming: dict[bytes, anyio.Event] = {}
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self.decoded = 0
        """How many utterances were decoded so far."""

    async def impression(self, pcm: bytes, rate_hz: int) -> Impression:
        """What is heard in PCM16 mono. Raises BusyError, and what `listen` raises."""
        key = hashlib.sha256(rate_hz.to_bytes(4, "big") + pcm).digest()
        while key not in self._known:
            if key in self._coming:
                await self._coming[key].wait()
                continue
            if len(self._coming) >= MAX_WAITING:
                raise BusyError(f"{MAX_WAITING} utterances wait already")
            done = self._coming[key] = anyio.Event()
            try:
                self._known[key] = await anyio.to_thread.run_sync(
                    self._listen, pcm, rate_hz, limiter=self._one_at_a_time
                )
                self.decoded += 1
            finally:
                del self._coming[key]
                done.set()
            if len(self._known) > MAX_REMEMBERED:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]


def listener(recogniser: Recogniser) -> Listen:
    """Hears words with the recogniser and tags with `rig.agents.hearing`."""

    def listen(pcm: bytes, rate_hz: int) -> Impression:
        if len(pcm) < 2 * rate_hz * LEAST_SPEECH_S:
            return Impression()
        samples = np.frombuffer(pcm, dtype="<i2").astype(np.float64) / 32768.0
        # The recogniser finds words in digital silence too.
        if np.max(np.abs(samples)) < SILENT_PEAK:
            return Impression()
        return Impression(recogniser.words(samples, rate_hz), hear(samples, rate_hz).confidence)

    return listen


async def handle(stream: SocketStream, memory: Memory, token: str) -> None:
    """Answer the one request of a connection; what is wrong with it becomes its answer."""
    async with stream:
        try:
            with anyio.fail_after(_REQUEST_TIMEOUT_S):
                pcm, rate_hz = await _request(stream, token)
            heard = await memory.impression(pcm, rate_hz)
        except (TimeoutError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            return  # an unfinished request: there is nobody to answer
        except (ValueError, RuntimeError) as error:
            await _send(stream, {"error": str(error)})
            return
        except Exception as error:  # noqa: BLE001 - whatever it was
            # One utterance that cannot be heard must not take the brain from all the others.
            _LOG.exception("an utterance could not be heard")
            await _send(stream, {"error": f"{type(error).__name__} while hearing: {error}"})
            return
        await _send(stream, {"words": heard.words, "confidence": dict(heard.confidence)})


async def _send(stream: SocketStream, body: dict[str, object]) -> None:
    try:
        await stream.send(brain_wire.answer(body))
    except anyio.BrokenResourceError:
        return  # the client has gone; nobody waits for it


async def _request(stream: SocketStream, token: str) -> tuple[bytes, int]:
    """PCM and rate of a request. Raises ValueError for one that is refused."""
    buffered = BufferedByteReceiveStream(stream)
    header_bytes, pcm_bytes = brain_wire.LENGTHS.unpack(await buffered.receive_exactly(brain_wire.LENGTHS.size))
    if header_bytes > brain_wire.MAX_HEADER_BYTES:
        raise ValueError(f"header longer than {brain_wire.MAX_HEADER_BYTES} bytes")
    try:
        header = json.loads(await buffered.receive_exactly(header_bytes))
    except (ValueError, RecursionError):
        raise ValueError("header is not JSON") from None
    given = header.get("token") if isinstance(header, dict) else None
    # Checked before any audio is read.
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), token.encode()):
        raise ValueError("wrong token")
    rate_hz = header.get("rate_hz")
    if not isinstance(rate_hz, int) or rate_hz not in RATES_HZ:
        raise ValueError(f"rate_hz is not from {RATES_HZ.start} to {RATES_HZ.stop - 1}")
    if pcm_bytes > min(brain_wire.MAX_PCM_BYTES, int(2 * rate_hz * MAX_SPEECH_S)):
        raise ValueError(f"longer than {MAX_SPEECH_S:g} s")
    if pcm_bytes % 2:
        raise ValueError("not a whole number of 16-bit samples")
    return (await buffered.receive_exactly(pcm_bytes) if pcm_bytes else b""), rate_hz


async def run(token: str, lexicon: Path | None) -> None:
    """Serve on a free loopback port until stopped. Raises LexiconError."""
    memory = Memory(listener(Recogniser(lexicon)))
    listeners = await anyio.create_tcp_listener(local_host="127.0.0.1")

    async def serve(stream: SocketStream) -> None:
        await handle(stream, memory, token)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listeners.serve, serve)
        parent.announce({"port": listeners.extra(SocketAttribute.local_port)})
        await parent.until_stopped()
        tasks.cancel_scope.cancel()


def main() -> None:
    """Entry of the process; the token comes in the environment."""
    parser = argparse.ArgumentParser(prog="rig.agents.brain", description=__doc__)
    parser.add_argument("--lexicon", type=Path, help="more words, as lines `word PHONE PHONE…`")
    chosen = parser.parse_args()
    token = os.environ.pop(brain_wire.TOKEN_ENV, "")
    if not token:
        sys.exit(f"{brain_wire.TOKEN_ENV} is not set")
    parent.be_nice()
    try:
        anyio.run(run, token, chosen.lexicon)
    except LexiconError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
