"""The peer of a calibration: speaks canned frames of the OpenAI Realtime dialect, and stamps each as it sends it.

The stamp, monotonic nanoseconds, stands in the frame's `event_id`; all processes of a machine share that clock. The
peer decodes nothing and answers every turn alike, so that its own cost is small: silence, then a tone, then a call.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import math
from array import array
from collections.abc import Callable, Iterator

import anyio
import orjson
import picows

from captures.clock import MonotonicClock
from rig.agents import parent
from turn_control.quiet_gc import no_full_collections
from turn_control.ticker import Scheduled, Ticker

RATE_HZ = 24_000
PIECE_MS = 20
SILENT_PIECES = 10
"""0.2 s of silence before the tone."""
TONE_PIECES = 10
SEND_EVERY_MS = 15
"""Faster than it is heard, as vendors do: so the onset is where the silence ends and nothing runs dry."""
TONE_HZ = 500.0
TONE_AMPLITUDE = 8000

_STAMP = b"@STAMP@"


def _tone() -> bytes:
    samples = (
        round(TONE_AMPLITUDE * math.cos(2 * math.pi * TONE_HZ * n / RATE_HZ)) for n in range(PIECE_MS * RATE_HZ // 1000)
    )
    return array("h", samples).tobytes()


def _split(kind: str, **fields: object) -> tuple[bytes, bytes]:
    """A frame around its stamp."""
    frame = orjson.dumps({"type": kind, "event_id": _STAMP.decode(), "response_id": "r", **fields})
    head, tail = frame.split(_STAMP)
    return head, tail


def _audio(pcm: bytes) -> tuple[bytes, bytes]:
    delta = base64.b64encode(pcm).decode()
    return _split("response.output_audio.delta", item_id="a", output_index=0, content_index=0, delta=delta)


_CALL = {"type": "function_call", "id": "f", "call_id": "c", "name": "wait", "arguments": "{}", "status": "completed"}
READY = _split("session.updated", session={"type": "realtime"})
CREATED = _split("response.created", response={"id": "r", "status": "in_progress"})
SILENCE = _audio(bytes(2 * PIECE_MS * RATE_HZ // 1000))
TONE = _audio(_tone())
CALL = _split("response.output_item.done", output_index=1, item=_CALL)
DONE = _split("response.done", response={"id": "r", "status": "completed", "output": [_CALL]})


class Peer(picows.WSListener):
    """One connection."""

    def __init__(self, ticker: Ticker, clock: MonotonicClock) -> None:
        super().__init__()
        self._ticker = ticker
        self._clock = clock
        self._speaking: Scheduled | None = None

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        """Audio is let pass unread; an answer begins when one is asked for."""
        read_ns = self._clock.now_ns()
        if frame.msg_type == picows.WSMsgType.CLOSE:
            transport.send_close(picows.WSCloseCode.OK)
            transport.disconnect()
            return
        start = frame.get_payload_as_bytes()[:120]
        if b"input_audio_buffer.append" in start:
            return
        if b"session.update" in start:
            self._send(transport, READY, read_ns)
        elif b"response.create" in start and self._speaking is None:
            self._send(transport, CREATED, read_ns)
            self._speak(transport)

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        """Nothing more is sent."""
        if self._speaking is not None:
            self._speaking.cancel()

    def _send(self, transport: picows.WSTransport, frame: tuple[bytes, bytes], stamp_ns: int) -> None:
        transport.send(picows.WSMsgType.TEXT, b"%b%d%b" % (frame[0], stamp_ns, frame[1]))

    def _speak(self, transport: picows.WSTransport) -> None:
        begin_ns = self._clock.now_ns() + self._ticker.phase_ns(SEND_EVERY_MS * 1_000_000)

        def steps() -> Iterator[int]:
            pieces = [SILENCE] * SILENT_PIECES + [TONE] * TONE_PIECES
            for number, piece in enumerate(pieces, start=1):
                self._send(transport, piece, self._clock.now_ns())
                yield begin_ns + number * SEND_EVERY_MS * 1_000_000
            self._send(transport, CALL, self._clock.now_ns())
            self._send(transport, DONE, self._clock.now_ns())

        step = steps()
        self._speaking = self._ticker.add(begin_ns, lambda: next(step, None), _fail)


def _fail(error: Exception) -> None:
    raise error


async def serve(on_port: Callable[[int], None]) -> None:
    """Serve on a free loopback port until stopped."""
    clock = MonotonicClock()
    ticker = Ticker(clock)
    server = await picows.ws_create_server(lambda request: Peer(ticker, clock), "127.0.0.1", 0)
    async with server:
        on_port(int(server.sockets[0].getsockname()[1]))
        await parent.until_stopped()


def main() -> None:
    """Entry of the process."""
    argparse.ArgumentParser(prog="rig.calibration.peer", description=__doc__).parse_args()
    with no_full_collections():
        anyio.run(
            serve,
            lambda port: parent.announce({"port": port}),
            backend_options={"use_uvloop": importlib.util.find_spec("uvloop") is not None},
        )


if __name__ == "__main__":
    main()
