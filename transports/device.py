"""A pair of sound devices as a transport: caller audio out of one, the agent's in from the other (PyAudio).

PortAudio's threads do nothing but move bytes; received blocks are stamped there and handed to the event loop. A block's
stamp is when it had arrived whole, less the pair's measured latency (`latency_ns`), if there is one.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import orjson

from captures.clock import Clock
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.device_streams import Streams
from transports.playout import Playout
from transports.transport import Endpoint, TransportError

STATUS: Final = "rig.device_status"
"""`event` of the text frame that says what the devices did wrong: how often each, since the start."""
GATHERED_MS: Final = 60
"""Of caller audio before the first of it plays."""
_MOST_WAITING_S: Final = 5
_MOST_BLOCKS_UNREAD: Final = 1_000
_STOPPED_NS: Final = 200_000_000
"""A device that moved nothing for so long has stopped: blocks of 10 ms came with gaps of up to 17 ms as measured. With
what follows, shorter than any silence that ends an answer, so that a dead device is not taken for a silent agent."""
_SURE_NS: Final = 50_000_000
"""And did not for so long after that was seen: when the whole machine stood still, the first to wake may be we."""
_CLOSING_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class DeviceEndpoint(Endpoint):
    """Which devices, by name or number as PortAudio has them (`rig device list`)."""

    output: str = ""
    input: str = ""
    rate_hz: int = 48_000
    latency_ns: int = 0
    """Measured from writing a piece to receiving it back, on a loop of these devices; 0: not measured."""


class DeviceTransport:
    """Meets `transports.transport.Transport`. Binary frames are PCM16 mono at the endpoint's rate, both ways."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_frame: Callable[[InFrame], None] | None = None
        self._on_closed: Callable[[ClosedBy], None] | None = None
        self._playout: Playout | None = None
        self._opened: Streams | None = None
        self._unread = 0
        self._counts: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._latency_ns = 0
        self._took_ns = 0
        self._heard_ns = 0
        self._suspected_ns: int | None = None

    async def connect(
        self,
        endpoint: Endpoint,
        on_frame: Callable[[InFrame], None],
        on_closed: Callable[[ClosedBy], None],
    ) -> None:
        """Open both devices, in a thread: it takes them a while. See `Transport.connect`."""
        assert isinstance(endpoint, DeviceEndpoint)
        self._loop = asyncio.get_running_loop()
        self._on_frame, self._on_closed = on_frame, on_closed
        self._latency_ns = endpoint.latency_ns
        a_second = 2 * endpoint.rate_hz
        self._playout = Playout(a_second * GATHERED_MS // 1000, a_second * _MOST_WAITING_S)
        streams = Streams(endpoint.output, endpoint.input, endpoint.rate_hz, self._taken, self._heard)
        try:
            await _in_thread(streams.open)
        except asyncio.CancelledError:
            # The thread cannot be stopped: what it may have opened is closed behind it.
            streams.give_up()
            threading.Thread(target=streams.close, name="device-close", daemon=True).start()
            raise
        self._took_ns = self._heard_ns = self._clock.now_ns()
        self._opened = streams

    def write(self, frame: OutFrame) -> None:
        """See `Transport.write`; text has no place on a sound card."""
        if self._playout is not None and frame.binary:
            self._playout.write(frame.payload)
            self._count("ran_dry", self._playout.ran_dry)
            self._count("dropped", self._playout.dropped_bytes)
            self._look_for_life()

    def backlog_bytes(self) -> int:
        """0: what waits for the card is no sign of a slow peer."""
        return 0

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `Transport.close`. Devices that do not let go are left to their thread after a while."""
        streams, self._opened = self._opened, None
        if streams is None:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_in_thread(streams.close), _CLOSING_S)
        if self._on_closed is not None:
            self._on_closed(ClosedBy(self._clock.now_ns(), None, "closed by us", by_peer=False))

    def _taken(self, size: int) -> bytes:
        """A block of output, in PortAudio's thread."""
        self._took_ns = self._clock.now_ns()
        return bytes(size) if self._playout is None else self._playout.read(size)

    def _heard(self, pcm: bytes, flawed: bool) -> None:
        """A block of input, in PortAudio's thread."""
        self._heard_ns = self._clock.now_ns()
        t_ns = self._heard_ns - self._latency_ns
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        if self._unread >= _MOST_BLOCKS_UNREAD:
            flawed, pcm = True, b""
        self._unread += 1
        with contextlib.suppress(RuntimeError):  # closed meanwhile
            loop.call_soon_threadsafe(self._deliver, pcm, flawed, t_ns)

    def _deliver(self, pcm: bytes, flawed: bool, t_ns: int) -> None:
        self._unread -= 1
        if flawed:
            self._count("input_lost", self._counts.get("input_lost", 0) + 1)
        self._tell(t_ns)
        if pcm and self._opened is not None and self._on_frame is not None:
            self._on_frame(InFrame(pcm, True, t_ns))

    def _look_for_life(self) -> None:
        """A device that was unplugged calls us no more, and nothing else would say so."""
        now_ns = self._clock.now_ns()
        last = {"output_stopped": self._took_ns, "input_stopped": self._heard_ns}
        still = [name for name, last_ns in last.items() if now_ns - last_ns > _STOPPED_NS]
        if not still:
            self._suspected_ns = None
        elif self._suspected_ns is None:
            self._suspected_ns = now_ns
        elif now_ns - self._suspected_ns > _SURE_NS and self._loop is not None:
            for name in still:
                self._count(name, 1)
            self._loop.call_soon(self._tell, now_ns)

    def _tell(self, t_ns: int) -> None:
        """Say what went wrong, if anything has that was not said."""
        if self._opened is None or self._on_frame is None or self._counts == self._told:
            return
        self._told = dict(self._counts)
        self._on_frame(InFrame(orjson.dumps({"event": STATUS, **self._told}), False, t_ns))

    def _count(self, what: str, value: int) -> None:
        if value:
            self._counts[what] = value


async def _in_thread(work: Callable[[], None]) -> None:
    """Run `work` in a thread that holds up neither the loop's end nor the process's, should it never come back.

    Raises:
        TransportError: from `work`.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: TransportError | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        failed: TransportError | None = None
        try:
            work()
        except TransportError as error:
            failed = error
        except (OSError, ValueError, RuntimeError) as error:
            failed = TransportError(f"PortAudio: {error}"[:200], code="device_busy")
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, failed)

    threading.Thread(target=run, name="device", daemon=True).start()
    await done
