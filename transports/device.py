"""A pair of sound devices as a transport: caller audio out of one, the agent's in from the other (PyAudio).

PortAudio's threads do nothing but move bytes; received blocks are stamped there and handed to the event loop. A block's
stamp is when it had arrived whole, less the pair's measured latency (`latency_ns`), if there is one.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from captures.clock import Clock
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.playout import Playout
from transports.transport import Endpoint, TransportError

STATUS: Final = "rig.device_status"
"""`event` of the text frame that says what the devices did wrong: how often each, since the start."""
BLOCK_MS: Final = 10
GATHERED_MS: Final = 60
"""Of caller audio before the first of it plays."""
_MOST_WAITING_S: Final = 5
_MOST_BLOCKS_UNREAD: Final = 1_000


@dataclass(frozen=True, slots=True)
class DeviceEndpoint(Endpoint):
    """Which devices, by name or number as PortAudio has them (`rig device list`)."""

    output: str = ""
    input: str = ""
    rate_hz: int = 48_000
    latency_ns: int = 0
    """Measured from writing a piece to receiving it back, on a loop of these devices; 0: not measured."""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device as PortAudio lists it."""

    number: int
    name: str
    inputs: int
    """Channels."""
    outputs: int
    rate_hz: int


def devices() -> list[DeviceInfo]:
    """All devices. Raises TransportError without PyAudio."""
    with _portaudio() as (_, audio):
        return _listed(audio)


def _listed(audio: Any) -> list[DeviceInfo]:
    found = []
    for number in range(audio.get_device_count()):
        told: Mapping[str, Any] = audio.get_device_info_by_index(number)
        found.append(
            DeviceInfo(
                number,
                str(told["name"]),
                int(told["maxInputChannels"]),
                int(told["maxOutputChannels"]),
                round(float(told["defaultSampleRate"])),
            )
        )
    return found


def chosen(found: list[DeviceInfo], wanted: str, *, output: bool) -> DeviceInfo:
    """The device of that number or name; the whole name before a part of one.

    Raises:
        TransportError: there is none, or several; the text names them.
    """
    kind = "output" if output else "input"
    able = [one for one in found if (one.outputs if output else one.inputs)]
    exact = [one for one in able if wanted in (str(one.number), one.name)]
    partly = [one for one in able if wanted.lower() in one.name.lower()]
    hits = exact or partly
    if len(hits) == 1:
        return hits[0]
    listed = ", ".join(f"{one.number} {one.name!r}" for one in (hits or able)) or "none at all"
    said = "is not the name of one" if hits else "is not there"
    raise TransportError(f"{kind} device {wanted!r} {said}; there are: {listed} (rig device list)", code="no_device")


class DeviceTransport:
    """Meets `transports.transport.Transport`. Binary frames are PCM16 mono at the endpoint's rate, both ways."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_frame: Callable[[InFrame], None] | None = None
        self._on_closed: Callable[[ClosedBy], None] | None = None
        self._playout: Playout | None = None
        self._opened: _Streams | None = None
        self._unread = 0
        self._counts: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._latency_ns = 0

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
        streams = _Streams(endpoint, self._playout.read, self._heard)
        opening = asyncio.ensure_future(asyncio.to_thread(streams.open))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            # The thread cannot be stopped: what it opens is closed as soon as it has.
            with contextlib.suppress(TransportError):
                await opening
            await asyncio.to_thread(streams.close)
            raise
        self._opened = streams

    def write(self, frame: OutFrame) -> None:
        """See `Transport.write`; text has no place on a sound card."""
        if self._playout is not None and frame.binary:
            self._playout.write(frame.payload)
            self._count("ran_dry", self._playout.ran_dry)
            self._count("dropped", self._playout.dropped_bytes)

    def backlog_bytes(self) -> int:
        """0: what waits for the card is no sign of a slow peer."""
        return 0

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `Transport.close`."""
        streams, self._opened = self._opened, None
        if streams is None:
            return
        await asyncio.to_thread(streams.close)
        if self._on_closed is not None:
            self._on_closed(ClosedBy(self._clock.now_ns(), None, "closed by us", by_peer=False))

    def _heard(self, pcm: bytes, flawed: bool) -> None:
        """A block of input, in PortAudio's thread."""
        t_ns = self._clock.now_ns() - self._latency_ns
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
        if self._opened is None or self._on_frame is None:
            return
        if flawed:
            self._count("input_lost", self._counts.get("input_lost", 0) + 1)
        if self._counts != self._told:
            self._told = dict(self._counts)
            self._on_frame(InFrame(orjson.dumps({"event": STATUS, **self._told}), False, t_ns))
        if pcm:
            self._on_frame(InFrame(pcm, True, t_ns))

    def _count(self, what: str, value: int) -> None:
        if value:
            self._counts[what] = value


class _Streams:
    """PortAudio's two streams. `open` and `close` block; each is called from a thread."""

    def __init__(
        self, endpoint: DeviceEndpoint, take: Callable[[int], bytes], heard: Callable[[bytes, bool], None]
    ) -> None:
        self._endpoint = endpoint
        self._take = take
        self._heard = heard
        self._stack = contextlib.ExitStack()
        self._lock = threading.Lock()

    def open(self) -> None:
        """Raises TransportError."""
        with self._lock, contextlib.ExitStack() as stack:
            pyaudio, audio = stack.enter_context(_portaudio())
            found = _listed(audio)
            speaker = chosen(found, self._endpoint.output, output=True)
            microphone = chosen(found, self._endpoint.input, output=False)
            block = self._endpoint.rate_hz * BLOCK_MS // 1000

            def out(_: bytes | None, frames: int, __: Any, ___: int) -> tuple[bytes, int]:
                return self._take(2 * frames), pyaudio.paContinue

            def came(pcm: bytes | None, _: int, __: Any, flags: int) -> tuple[None, int]:
                self._heard(pcm or b"", bool(flags & pyaudio.paInputOverflow))
                return None, pyaudio.paContinue

            common = {
                "format": pyaudio.paInt16,
                "channels": 1,
                "rate": self._endpoint.rate_hz,
                "frames_per_buffer": block,
            }
            for device, options in (
                (microphone, {"input": True, "input_device_index": microphone.number, "stream_callback": came}),
                (speaker, {"output": True, "output_device_index": speaker.number, "stream_callback": out}),
            ):
                with _quiet_stderr():
                    stream = _opened(audio, device, {**common, **options}, self._endpoint.rate_hz)
                stack.callback(stream.close)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Close both; safe to call twice."""
        with self._lock:
            self._stack.close()


def _opened(audio: Any, device: DeviceInfo, options: Mapping[str, Any], rate_hz: int) -> Any:
    try:
        return audio.open(**options)
    except (OSError, ValueError) as error:
        said = str(error.args[-1] if isinstance(error, OSError) and error.args else error)
        code = "device_rate" if "sample rate" in said.lower() else "device_busy"
        raise TransportError(
            f"device {device.name!r} cannot be opened at {rate_hz} Hz: {said[:200]}", code=code
        ) from None


@contextlib.contextmanager
def _portaudio() -> Iterator[tuple[Any, Any]]:
    """PyAudio's module and a session of PortAudio. Raises TransportError without PyAudio."""
    try:
        pyaudio = importlib.import_module("pyaudio")
    except ImportError:
        message = "PyAudio is not installed: apt-get install portaudio19-dev, pip install 'voice-agent-rig[device]'"
        raise TransportError(message, code="no_pyaudio") from None
    with _quiet_stderr():
        audio = pyaudio.PyAudio()
    try:
        yield pyaudio, audio
    finally:
        audio.terminate()


@contextlib.contextmanager
def _quiet_stderr() -> Iterator[None]:
    """ALSA and JACK print from C about every device that they do not find."""
    try:
        kept = os.dup(2)
    except OSError:
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
