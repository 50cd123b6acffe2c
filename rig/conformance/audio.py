"""Checks of the agent's speech: whole samples, PCM16, and the rate that was stated."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from adapters.foreign_json import int_of, text_of
from adapters.rig_socket import wire
from adapters.rig_socket.wire import FromAgent
from rig.conformance.caller import Limits, Scene, Turn
from rig.conformance.findings import Check, Judgement, NotSeen, broken
from rig.conformance.messages import TALKING
from rig.conformance.talk import Heard

_CONTAINERS: Final = {
    b"RIFF": "WAV",
    b"OggS": "Ogg",
    b"ID3": "MP3",
    b"fLaC": "FLAC",
    b"\xff\xfb": "MP3",
    b"\x1aE\xdf\xa3": "WebM",
}
_ROUGH: Final = 1.3
"""Mean step between neighbouring samples over mean level; speech is below 1, white noise at 1.4."""
_LOUD: Final = 300
"""Level of a step of 20 ms that counts as speech (RMS, of 32,768)."""
_SLOWEST_CHARS_PER_S, _FASTEST_CHARS_PER_S = 3.0, 32.0
"""Of speech without its pauses. English read aloud has 12 to 20; scripts of syllables or words have fewer."""
_FEWEST_CHARS, _SHORTEST_S = 15, 0.4
_STANDARD_HZ: Final = (8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
_PACED_S: Final = 1.5

_NO_SPEECH = NotSeen("the agent sent no speech")


def _spoken(scenes: list[Scene]) -> list[tuple[Scene, Turn, list[Heard]]]:
    """Answers that hold audio, with their binary messages."""
    answers = [(s, turn, [m for m in s.answer(turn) if m.binary and m.payload]) for s in scenes for turn in s.turns]
    return [answer for answer in answers if answer[2]]


def _samples(pieces: list[Heard]) -> npt.NDArray[np.float64]:
    pcm = b"".join(piece.payload for piece in pieces)
    return np.frombuffer(pcm, "<i2", count=len(pcm) // 2).astype(np.float64)


def _whole(scenes: list[Scene], _: Limits) -> Judgement:
    answers = _spoken(scenes)
    found = [
        broken("the audio of an answer ends in half a sample: send an even number of bytes in all", scene, pieces[-1])
        for scene, _turn, pieces in answers
        if sum(len(piece.payload) for piece in pieces) % 2
    ]
    return found if answers else _NO_SPEECH


def _pcm16(scenes: list[Scene], _: Limits) -> Judgement:
    answers = _spoken(scenes)
    found = []
    for scene, _turn, pieces in answers:
        first = pieces[0]
        container = next((name for magic, name in _CONTAINERS.items() if first.payload.startswith(magic)), None)
        if container is not None:
            found.append(broken(f"send raw samples: this begins as a {container} file does", scene, first))
            continue
        samples = _samples(pieces)
        if _roughness(samples) > _ROUGH:
            swapped = _roughness(samples.astype("<i2").byteswap().astype(np.float64)) < _ROUGH / 2
            why = "it looks big-endian: swap its bytes" if swapped else "it reads as noise: µ-law, float or compressed?"
            found.append(broken(f"send PCM16, little-endian, mono: {why}", scene, first))
    return found if answers else _NO_SPEECH


def _roughness(samples: npt.NDArray[Any]) -> float:
    level = float(np.mean(np.abs(samples))) if len(samples) > 1 else 0.0
    return float(np.mean(np.abs(np.diff(samples)))) / level if level > 0 else 0.0


def _rate(scenes: list[Scene], _: Limits) -> Judgement:
    answers = _spoken(scenes)
    judged = False
    found = []
    for scene, turn, pieces in answers:
        rate_hz = int_of((scene.ready.fields or {}) if scene.ready else {}, "output_rate_hz") or wire.OUTPUT_RATE_HZ
        samples = _samples(pieces)
        words = "".join(
            text_of(message.fields or {}, "text") or ""
            for message in scene.answer(turn)
            if message.type == FromAgent.TRANSCRIPT
        )
        loud_s = _loud_s(samples, rate_hz)
        kept_hz = paced_hz(pieces)
        if len(words) >= _FEWEST_CHARS and loud_s >= _SHORTEST_S:
            judged = True
            chars_per_s = len(words) / loud_s
            if not _SLOWEST_CHARS_PER_S <= chars_per_s <= _FASTEST_CHARS_PER_S:
                way = "fast" if chars_per_s > _FASTEST_CHARS_PER_S else "slow"
                found.append(
                    broken(
                        f"at the stated {rate_hz} Hz this speech is too {way} for its transcript ({chars_per_s:.0f} "
                        "characters a second): state the true output_rate_hz in session.ready",
                        scene,
                        pieces[0],
                    )
                )
        elif kept_hz is not None:
            judged = True
            if abs(kept_hz / rate_hz - 1) > 0.1:
                found.append(
                    broken(
                        f"speech comes paced at {kept_hz} samples a second, but session.ready states {rate_hz} Hz",
                        scene,
                        pieces[0],
                    )
                )
    if judged:
        return found
    return NotSeen("too little speech with a reply.transcript to tell its rate") if answers else _NO_SPEECH


def _loud_s(samples: npt.NDArray[np.float64], rate_hz: int) -> float:
    step = rate_hz // 50
    steps = samples[: len(samples) // step * step].reshape(-1, step)
    return float(np.count_nonzero(np.sqrt(np.mean(steps**2, axis=1)) > _LOUD)) / 50 if len(steps) else 0.0


def paced_hz(pieces: list[Heard]) -> int | None:
    """The standard rate that the pieces keep in both halves of a long answer; None when they are not paced."""
    if len(pieces) < 8 or (pieces[-1].t_ns - pieces[0].t_ns) / 1e9 < _PACED_S:
        return None
    middle = len(pieces) // 2
    speeds = []
    for part in (pieces[: middle + 1], pieces[middle:]):
        lasted_s = (part[-1].t_ns - part[0].t_ns) / 1e9
        if lasted_s <= 0:
            return None
        speeds.append(sum(len(piece.payload) for piece in part[:-1]) / 2 / lasted_s)
    return next((hz for hz in _STANDARD_HZ if all(abs(speed / hz - 1) < 0.04 for speed in speeds)), None)


AUDIO_CHECKS = (
    Check("whole-samples", "an answer's audio is whole samples", TALKING, _whole),
    Check("pcm16", "audio is raw PCM16, little-endian", TALKING, _pcm16),
    Check("audio-rate", "audio is at the stated rate", TALKING, _rate),
)
