"""PortAudio: which devices there are, and a pair of its streams. All of it blocks; none of it knows an event loop.

PortAudio is not made for two threads that open or close at once, so one lock is round all of that.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from transports.transport import TransportError

BLOCK_MS: Final = 10
_PORTAUDIO: Final = threading.Lock()


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
    with _PORTAUDIO, _portaudio() as (_, audio):
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


class Streams:
    """PortAudio's two streams, PCM16 mono. `open` and `close` may take for ever where a sound server hangs."""

    def __init__(
        self,
        output: str,
        input_: str,
        rate_hz: int,
        take: Callable[[int], bytes],
        heard: Callable[[bytes, bool], None],
    ) -> None:
        """`take` gives so many bytes to play; `heard` is given a block, and whether input was lost before it."""
        self._output = output
        self._input = input_
        self._rate_hz = rate_hz
        self._take = take
        self._heard = heard
        self._stack = contextlib.ExitStack()
        self._given_up = False

    def open(self) -> None:
        """Raises TransportError."""
        with _PORTAUDIO, contextlib.ExitStack() as stack:
            if self._given_up:
                return
            pyaudio, audio = stack.enter_context(_portaudio())
            found = _listed(audio)
            speaker = chosen(found, self._output, output=True)
            microphone = chosen(found, self._input, output=False)

            def out(_: bytes | None, frames: int, __: Any, ___: int) -> tuple[bytes, int]:
                return self._take(2 * frames), pyaudio.paContinue

            def came(pcm: bytes | None, _: int, __: Any, flags: int) -> tuple[None, int]:
                self._heard(pcm or b"", bool(flags & pyaudio.paInputOverflow))
                return None, pyaudio.paContinue

            common = {
                "format": pyaudio.paInt16,
                "channels": 1,
                "rate": self._rate_hz,
                "frames_per_buffer": self._rate_hz * BLOCK_MS // 1000,
            }
            for device, options in (
                (microphone, {"input": True, "input_device_index": microphone.number, "stream_callback": came}),
                (speaker, {"output": True, "output_device_index": speaker.number, "stream_callback": out}),
            ):
                with _STDERR:
                    stream = _opened(audio, device, {**common, **options}, self._rate_hz)
                stack.callback(stream.close)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Close both; safe to call twice."""
        with _PORTAUDIO:
            self._stack.close()

    def give_up(self) -> None:
        """Nobody waits for `open` any longer: let it come to nothing, and let errors be seen again meanwhile."""
        self._given_up = True
        _STDERR.restore()


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
    with _STDERR:
        audio = pyaudio.PyAudio()
    try:
        yield pyaudio, audio
    finally:
        audio.terminate()


class _QuietStderr:
    """ALSA and JACK print from C about every device that they do not find: the process's stderr goes nowhere meanwhile.

    Entered under `_PORTAUDIO` alone; `restore` may come from another thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: int | None = None

    def __enter__(self) -> None:
        with self._lock, contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
            self._kept = os.dup(2)
            os.dup2(nowhere.fileno(), 2)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()

    def restore(self) -> None:
        """Safe to call twice."""
        with self._lock:
            kept, self._kept = self._kept, None
            if kept is not None:
                os.dup2(kept, 2)
                os.close(kept)


_STDERR: Final = _QuietStderr()
