"""Proves that a timeline is aligned: a call whose sounds begin at known times, laid out, and the sounds found again.

The caller's clip is silence and then a tone; so is what the stamping peer says. Both tones are looked for in the
finished stereo samples, without any of the rig's own marks or detectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import anyio
import numpy as np

from adapters.dialect import Setup, TargetSettings, TurnControlSettings, TurnMode
from adapters.registry import dialect
from adapters.session import Session
from captures.capture import Mark
from captures.clock import MonotonicClock
from captures.playback import play
from rig.agents.children import child
from rig.audio.reader import Clip, Samples
from rig.calibration.peer import RATE_HZ, TONE_AMPLITUDE, TONE_HZ
from rig.replay.timeline import Timeline, sent_pieces, timeline
from transports.websocket import WebSocketTransport
from turn_control.ticker import Ticker
from turn_control.turn import SpokenTurn, play_turn

CHUNK_MS = 20
LIMIT_MS = 1.0
_SILENCE_S, _TONE_S = 0.3, 0.2
_SETUP_LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Alignment:
    """Where the two tones lie in the samples, against the marks."""

    caller_ms: float
    """Tone in the left channel minus (first chunk + 0.3 s)."""
    agent_ms: float
    """Tone in the right channel minus the mark of the first audible sample."""

    @property
    def within(self) -> bool:
        """Both within 1 ms."""
        return max(abs(self.caller_ms), abs(self.agent_ms)) <= LIMIT_MS


async def self_check(log_folder: Path | None = None) -> tuple[Alignment, Timeline]:
    """Play one call with the stamping peer and find its tones. Raises ChildError, and SessionError."""
    log = None if log_folder is None else log_folder / "peer.log"
    async with child("rig.calibration.peer", [], {}, log) as ready:
        return await _check(int(ready["port"]))


async def _check(port: int) -> tuple[Alignment, Timeline]:
    clock = MonotonicClock()
    target = TargetSettings(model="self-check", base_url=f"ws://127.0.0.1:{port}/v1/realtime")
    session = Session(dialect("openai_realtime").client(target), WebSocketTransport(clock), clock)
    caller = Clip(_caller(), RATE_HZ)
    try:
        await session.open(Setup("", (), RATE_HZ, TurnControlSettings(TurnMode.MANUAL)), _SETUP_LIMIT_S)
        clip = session.encode_clip(caller.pcm, RATE_HZ, CHUNK_MS)
        record = await play_turn(session, SpokenTurn(clip), ticker=Ticker(clock), clock=clock)
    finally:
        await session.close()
    heard = await anyio.to_thread.run_sync(play, record.reply_pieces, RATE_HZ)
    assert heard.first_audible_ns is not None, "the peer always speaks"
    marks = {**record.marks, Mark.FIRST_AUDIBLE: heard.first_audible_ns}
    made = timeline(sent_pieces(session.log, clip), caller, CHUNK_MS, session.events, marks)
    caller_at = made.marks[Mark.FIRST_CHUNK] + round(_SILENCE_S * RATE_HZ)
    return Alignment(
        _ms(_onset(made.samples[:, 0]) - caller_at), _ms(_onset(made.samples[:, 1]) - made.marks[Mark.FIRST_AUDIBLE])
    ), made


def _caller() -> Samples:
    seconds = np.arange(round(_TONE_S * RATE_HZ)) / RATE_HZ
    tone = np.rint(TONE_AMPLITUDE * np.cos(2 * np.pi * TONE_HZ * seconds)).astype(np.int16)
    return np.concatenate([np.zeros(round(_SILENCE_S * RATE_HZ), np.int16), tone])


def _onset(channel: Samples) -> int:
    """First sample at half the tone's height."""
    return int(np.flatnonzero(np.abs(channel.astype(int)) >= TONE_AMPLITUDE // 2)[0])


def _ms(samples: int) -> float:
    return 1000 * samples / RATE_HZ
