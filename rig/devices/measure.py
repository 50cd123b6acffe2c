"""Plays chirps on one device and finds them on another: the delay of the pair, as turns would have it.

The same transport, pieces and stamps as in a call, so that what is measured is what has to be taken off. The devices
are opened several times, as every call opens them: the delay may be another each time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final

import anyio
import numpy as np

from captures.clock import Clock, MonotonicClock
from captures.frames import InFrame, OutFrame
from captures.playback import laid_out
from rig.devices.chirp import chirp, delay, found_at
from rig.devices.errors import DelayError
from rig.devices.record import MeasuredPair
from transports.device import BLOCK_MS, STATUS, DeviceEndpoint, DeviceTransport

PERIOD_S: Final = 2.0
"""From one chirp to the next: the longest delay that can be told."""
OPENINGS: Final = 3
_PIECE_MS: Final = 20
_SETTLE_S: Final = 0.5


async def measured(
    output: str, loop_input: str, rate_hz: int, chirps: int, on_chirp: Callable[[int], None]
) -> MeasuredPair:
    """Play `chirps`, shared out over `OPENINGS` openings of the devices, and find them again.

    Raises:
        TransportError: a device is not there, busy, or has no such rate.
        DelayError: the chirps were not heard.
    """
    found_s: list[float] = []
    drifts: list[float] = []
    shares = [chirps // OPENINGS + (number < chirps % OPENINGS) for number in range(OPENINGS)]
    for number, share in enumerate(shares):
        before = sum(shares[:number])
        heard = await _opening(output, loop_input, rate_hz, share, partial(_told, on_chirp, before))
        found_s += heard[0]
        drifts += heard[1]
    result = delay(found_s, chirps, BLOCK_MS / 1000)
    if result is None:
        heard_of = f"{len(found_s)} of {chirps} chirps played on {output!r} were heard on {loop_input!r}"
        raise DelayError(f"{heard_of}; connect the two (a cable, or a sink's monitor), and look at their volume")
    return MeasuredPair(
        output=output,
        input=loop_input,
        rate_hz=rate_hz,
        median_s=round(result.median_s, 6),
        uncertainty_s=round(result.uncertainty_s, 6),
        found=result.found,
        played=result.played,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        drift_ppm=round(statistics.median(drifts), 1) if drifts else None,
    )


def _told(on_chirp: Callable[[int], None], before: int, number: int) -> None:
    on_chirp(before + number)


async def _opening(
    output: str, loop_input: str, rate_hz: int, chirps: int, on_chirp: Callable[[int], None]
) -> tuple[list[float], list[float]]:
    """Delays (seconds) of the chirps of one opening, and the input's drift where it can be told."""
    clock = MonotonicClock()
    heard: list[tuple[int, bytes]] = []
    flaws: list[bytes] = []

    def take(frame: InFrame) -> None:
        if frame.binary:
            heard.append((frame.t_ns, frame.payload))
        elif STATUS.encode() in frame.payload:
            flaws.append(frame.payload)

    transport = DeviceTransport(clock)
    await transport.connect(DeviceEndpoint("", output=output, input=loop_input, rate_hz=rate_hz), take, lambda _: None)
    try:
        played_ns = await _play(transport, clock, rate_hz, chirps, on_chirp)
    finally:
        await transport.close()
    line = laid_out(heard, rate_hz)
    if line is None:
        raise DelayError(f"nothing came from {loop_input!r}; is it the device on which {output!r} can be heard?")
    found_s = []
    for at_ns in played_ns:
        begin = max(0, round((at_ns - line[0]) * rate_hz / 1e9))
        piece = line[1][begin : begin + round(PERIOD_S * 0.95 * rate_hz)]
        offset_s = found_at(piece.tobytes(), rate_hz)
        if offset_s is not None:
            found_s.append(begin / rate_hz + (line[0] - at_ns) / 1e9 + offset_s)
    if flaws:
        raise DelayError(
            f"the devices lost audio meanwhile ({flaws[-1].decode()[:120]}); try again on a quieter machine"
        )
    drift = drift_ppm(heard, rate_hz)
    return found_s, [] if drift is None else [drift]


async def _play(
    transport: DeviceTransport, clock: Clock, rate_hz: int, chirps: int, on_chirp: Callable[[int], None]
) -> list[int]:
    """Pieces of 20 ms at their times, a chirp at the start of each period; when each chirp was written (ns)."""
    size = 2 * rate_hz * _PIECE_MS // 1000
    period = chirp(rate_hz).ljust(2 * round(rate_hz * PERIOD_S), b"\0")
    settle = bytes(2 * round(rate_hz * _SETTLE_S))
    sound = settle + period * chirps
    pieces = [sound[start : start + size] for start in range(0, len(sound), size)]
    firsts = {(len(settle) + number * len(period)) // size for number in range(chirps)}
    started_ns = clock.now_ns()
    played_ns: list[int] = []
    for number, piece in enumerate(pieces):
        wait_s = (started_ns + number * _PIECE_MS * 1_000_000 - clock.now_ns()) / 1e9
        if wait_s > 0:
            await anyio.sleep(wait_s)
        if number in firsts:
            played_ns.append(clock.now_ns())
            on_chirp(len(played_ns))
        transport.write(OutFrame(piece, binary=True))
    return played_ns


def drift_ppm(heard: list[tuple[int, bytes]], rate_hz: int) -> float | None:
    """How much faster than ours the clock of the input runs, parts per million, by a line through the blocks' stamps.

    `heard` are blocks without a gap, each (stamp in ns, PCM16). None for less than five seconds.
    """
    if len(heard) < 3 or heard[-1][0] - heard[0][0] < 5_000_000_000:
        return None
    ends_s = np.cumsum([len(pcm) // 2 for _, pcm in heard]) / rate_hz
    stamps_s = np.array([t_ns - heard[0][0] for t_ns, _ in heard]) / 1e9
    slope = float(np.polyfit(stamps_s, ends_s, 1)[0])
    return round((slope - 1) * 1e6, 1)
