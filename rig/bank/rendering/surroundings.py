"""Sounds around the caller, computed: alarms, vehicles, animals, water, machines, people. None of them is a recording.

Each takes seconds and a seeded generator and returns that many samples at `RATE_HZ`; levels are the scene's business.
Tones with a standard behind them (alarms) are what they claim; the others only suggest their source and say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rig.bank.rendering import sounds
from rig.bank.rendering.levels import RATE_HZ, Samples

Make = Callable[[float, np.random.Generator], Samples]


@dataclass(frozen=True, slots=True)
class Sound:
    """A sound of a scene, and what it can be told by."""

    make: Make
    tone_hz: float | None = None
    """The one frequency that it has, where it has one."""
    reason: str | None = None
    """Why it only suggests its source; None for a tone that is what it claims."""


def smoke_alarm(seconds: float, rng: np.random.Generator) -> Samples:
    """A smoke alarm: 3.1 kHz in temporal-three pattern, three pulses of 0.5 s, 0.5 s apart, then 1.5 s of silence.

    Pattern: ISO 8201 and NFPA 72 (T3), 4 s from the first pulse of a group to the first of the next.
    """
    groups_s = np.arange(0.0, seconds, 4.0)
    pulses = [(float(at) + pulse, float(at) + pulse + 0.5) for at in groups_s for pulse in range(3)]
    return sounds.gate(sounds.tone(sounds.ALARM_HZ, seconds), pulses)


def reversing_alarm(seconds: float, rng: np.random.Generator) -> Samples:
    """A reversing lorry: 1.25 kHz, 0.5 s on and 0.5 s off."""
    pulses = [(float(at), float(at) + 0.5) for at in np.arange(0.0, seconds, 1.0)]
    return sounds.gate(sounds.tone(_REVERSING_HZ, seconds), pulses)


def siren(seconds: float, rng: np.random.Generator) -> Samples:
    """An emergency vehicle's wail: a horn that sweeps from 650 to 1500 Hz and back in 3.2 s."""
    times_s = _times_s(seconds)
    sweep = 0.5 - 0.5 * np.cos(2 * np.pi * times_s / 3.2)
    return _harmonics(650.0 * (1500.0 / 650.0) ** sweep, [1.0, 0.45, 0.3, 0.12])


def car_horn(seconds: float, rng: np.random.Generator) -> Samples:
    """Two horns at 405 and 495 Hz: a short blast, a long one, and again every 2.5 s."""
    strengths = [1.0, 0.8, 0.7, 0.5, 0.45, 0.3, 0.25, 0.15]
    both = _harmonics(np.full(_size(seconds), 405.0), strengths) + _harmonics(np.full(_size(seconds), 495.0), strengths)
    starts_s = np.arange(0.0, seconds, 2.5)
    return sounds.gate(both, [span for at in starts_s for span in ((at, at + 0.25), (at + 0.4, at + 1.3))])


def phone_ring(seconds: float, rng: np.random.Generator) -> Samples:
    """A telephone nearby: 1000 and 1250 Hz by turns, 20 times a second, 1 s on and 2 s off."""
    times_s = _times_s(seconds)
    warble = np.where((times_s * 20) % 1.0 < 0.5, 1000.0, 1250.0)
    return sounds.gate(_harmonics(warble, [1.0, 0.3, 0.2]), [(at, at + 1.0) for at in np.arange(0.0, seconds, 3.0)])


def doorbell(seconds: float, rng: np.random.Generator) -> Samples:
    """Two struck chimes, 660 and 524 Hz, every 4 s."""
    out = np.zeros(_size(seconds))
    for at in np.arange(0.0, seconds, 4.0):
        for delay_s, chime_hz in ((0.0, 660.0), (0.55, 524.0)):
            ring = sum(_struck(chime_hz * ratio, 0.9 / ratio, 1.6) / ratio for ratio in (1.0, 2.76, 5.4))
            _add(out, np.asarray(ring), float(at) + delay_s)
    return out


def glass_break(seconds: float, rng: np.random.Generator) -> Samples:
    """A pane that breaks at once: a burst of noise, then shards that ring between 2 and 9 kHz and settle in 1.3 s."""
    out = np.zeros(_size(seconds))
    burst = rng.standard_normal(round(0.06 * RATE_HZ))
    _add(out, burst * np.exp(-np.arange(burst.size) / (0.012 * RATE_HZ)) * 1.5, 0.0)
    for _ in range(90):
        start_s = float(rng.exponential(0.22))
        shard = _struck(float(rng.uniform(2000, 9000)), float(rng.uniform(0.01, 0.09)), 0.4)
        _add(out, shard * float(rng.uniform(0.1, 0.6)) * np.exp(-start_s / 0.6), start_s)
    return out


def baby_cry(seconds: float, rng: np.random.Generator) -> Samples:
    """A baby: cries of about 1 s whose pitch rises to some 480 Hz and falls, with a short gasp before the next."""
    out = np.zeros(_size(seconds))
    at_s = 0.0
    while at_s < seconds:
        length_s = float(rng.uniform(0.8, 1.15))
        share = np.linspace(0.0, 1.0, _size(length_s))
        peak_hz = float(rng.uniform(450, 510))
        pitch_hz = (
            330.0
            + (peak_hz - 330.0) * np.sin(np.pi * share**0.6)
            + 9.0 * rng.standard_normal() * np.sin(2 * np.pi * 9 * share * length_s)
        )
        strengths = [_resonance(peak_hz * k, (1150.0, 3400.0), 500.0) for k in range(1, 18)]
        cry = _harmonics(pitch_hz, strengths) + 0.05 * rng.standard_normal(share.size)
        _add(out, cry * np.sin(np.pi * share) ** 0.35, at_s)
        gasp = _band(rng.standard_normal(_size(0.12)), 800.0, 5000.0) * np.hanning(_size(0.12)) * 0.25
        _add(out, gasp, at_s + length_s + 0.1)
        at_s += length_s + float(rng.uniform(0.28, 0.4))
    return out


def dog_bark(seconds: float, rng: np.random.Generator) -> Samples:
    """A dog of middle size: pairs of barks of 0.17 s, each falling from about 620 to 380 Hz, every 1.3 s."""
    out = np.zeros(_size(seconds))
    for group_s in np.arange(0.0, seconds, 1.3):
        for delay_s in (0.0, 0.32):
            share = np.linspace(0.0, 1.0, _size(0.17))
            pitch_hz = (620.0 - 240.0 * share) * float(rng.uniform(0.94, 1.06))
            voice = _harmonics(pitch_hz, [_resonance(500.0 * k, (900.0, 1900.0), 600.0) for k in range(1, 12)])
            rasp = _band(rng.standard_normal(share.size), 500.0, 4000.0) * 0.5
            attack = np.minimum(1.0, share / 0.08) * (1.0 - share) ** 0.8
            _add(out, (voice + rasp) * attack, float(group_s) + delay_s)
    return out


def water_running(seconds: float, rng: np.random.Generator) -> Samples:
    """A tap into a basin: steady noise of 400 Hz to 9 kHz with bubbles, short rising tones, all through."""
    flow = _band(rng.standard_normal(_size(seconds)), 400.0, 9000.0)
    out = flow / np.std(flow) * 0.6
    for _ in range(round(seconds * 40)):
        share = np.linspace(0.0, 1.0, _size(0.04))
        bubble_hz = float(rng.uniform(500, 1600)) * (1.0 + 0.3 * share)
        bubble = np.sin(2 * np.pi * np.cumsum(bubble_hz) / RATE_HZ) * np.exp(-4 * share) * share**0.2
        _add(out, bubble * float(rng.uniform(0.3, 1.2)), float(rng.uniform(0, seconds)))
    return out


def machine_hum(seconds: float, rng: np.random.Generator) -> Samples:
    """A running machine: 120 Hz and its multiples, a whir of air, and a knock four times a second."""
    hum = _harmonics(np.full(_size(seconds), 120.0), [1.0, 0.7, 0.35, 0.5, 0.2, 0.25, 0.1, 0.1])
    whir = _band(rng.standard_normal(hum.size), 300.0, 2500.0)
    out = hum / np.std(hum) + 0.3 * whir / np.std(whir)
    for at in np.arange(0.0, seconds, 0.25):
        _add(out, _struck(310.0, 0.02, 0.12) * 3.0, float(at))
    return out


def crowd(seconds: float, rng: np.random.Generator) -> Samples:
    """Many people talking at once: sixteen voices of vowel-like sounds in the rhythm of syllables, no words."""
    out = np.zeros(_size(seconds))
    for _ in range(16):
        pitch_hz = float(rng.uniform(95, 240))
        at_s = -float(rng.uniform(0, 0.3))
        voice = np.zeros(out.size)
        while at_s < seconds:
            length_s = float(rng.uniform(0.1, 0.28))
            share = np.linspace(0.0, 1.0, _size(length_s))
            formants_hz = (float(rng.uniform(300, 800)), float(rng.uniform(900, 2300)), 2700.0)
            glide_hz = pitch_hz * (1.0 + float(rng.uniform(-0.2, 0.2)) * share)
            strengths = [_resonance(pitch_hz * k, formants_hz, 120.0) / k**0.3 for k in range(1, 26)]
            _add(voice, _harmonics(glide_hz, strengths) * np.hanning(share.size), max(0.0, at_s))
            if rng.random() < 0.4:
                hiss = _band(rng.standard_normal(_size(0.07)), 3000.0, 7000.0) * np.hanning(_size(0.07))
                _add(voice, hiss * 0.4, max(0.0, at_s + length_s))
            at_s += length_s + float(rng.choice([0.02, 0.06, 0.45], p=[0.5, 0.4, 0.1]))
        out += voice / max(float(np.std(voice)), 1e-9) * float(rng.uniform(0.5, 1.0))
    return out


_REVERSING_HZ = 1250.0
_COMPUTED = "a computed {}, not a recorded one"

SOUNDS: dict[str, Sound] = {
    "monitor_beep": Sound(lambda seconds, _: sounds.monitor_beep(seconds), sounds.MONITOR_BEEP_HZ),
    "co_alarm": Sound(lambda seconds, _: sounds.co_alarm(seconds), sounds.ALARM_HZ),
    "smoke_alarm": Sound(smoke_alarm, sounds.ALARM_HZ),
    "reversing_alarm": Sound(reversing_alarm, _REVERSING_HZ),
    "siren": Sound(siren, reason=_COMPUTED.format("siren")),
    "car_horn": Sound(car_horn, reason=_COMPUTED.format("car horn")),
    "phone_ring": Sound(phone_ring, reason=_COMPUTED.format("telephone bell")),
    "doorbell": Sound(doorbell, reason=_COMPUTED.format("doorbell")),
    "glass_break": Sound(glass_break, reason=_COMPUTED.format("breaking pane")),
    "baby_cry": Sound(baby_cry, reason=_COMPUTED.format("baby's cry")),
    "dog_bark": Sound(dog_bark, reason=_COMPUTED.format("bark")),
    "water_running": Sound(water_running, reason=_COMPUTED.format("flow of water")),
    "machine_hum": Sound(machine_hum, reason=_COMPUTED.format("machine")),
    "crowd": Sound(crowd, reason="a computed babble of vowels, not recorded people"),
}
"""What `synth:<name>` may name in a background scene, besides `synth:dtmf:<digits>` (`synth:keypad:<digits>`)."""


def _size(seconds: float) -> int:
    return round(seconds * RATE_HZ)


def _times_s(seconds: float) -> Samples:
    return np.arange(_size(seconds)) / RATE_HZ


def _harmonics(pitch_hz: Samples, strengths: list[float]) -> Samples:
    """A tone of moving pitch with these strengths of its harmonics; those above 11 kHz are left out."""
    phase = 2 * np.pi * np.cumsum(pitch_hz) / RATE_HZ
    parts = [s * np.sin(k * phase) for k, s in enumerate(strengths, start=1) if k * pitch_hz.max(initial=0) < 11_000]
    return np.asarray(sum(parts, np.zeros(pitch_hz.size)))


def _resonance(frequency_hz: float, centers_hz: tuple[float, ...], width_hz: float) -> float:
    """Strength at a frequency of resonances that weaken with their order."""
    gains = [1.0 / (1.0 + ((frequency_hz - at) / width_hz) ** 2) / order for order, at in enumerate(centers_hz, 1)]
    return float(sum(gains))


def _struck(frequency_hz: float, decay_s: float, seconds: float) -> Samples:
    """A struck body: a sine that decays by 8.7 dB every `decay_s`."""
    times_s = _times_s(seconds)
    return np.asarray(np.sin(2 * np.pi * frequency_hz * times_s) * np.exp(-times_s / decay_s))


def _band(noise: Samples, low_hz: float, high_hz: float) -> Samples:
    """Only what lies within the band, with a gentle fall towards its upper end."""
    spectrum = np.fft.rfft(noise)
    frequencies_hz = np.fft.rfftfreq(noise.size, 1 / RATE_HZ)
    inside = (frequencies_hz >= low_hz) & (frequencies_hz <= high_hz)
    return np.asarray(np.fft.irfft(spectrum * inside / np.sqrt(np.maximum(frequencies_hz, low_hz)), noise.size))


def _add(out: Samples, piece: Samples, at_s: float) -> None:
    """Add a piece in place where it fits."""
    start = _size(at_s)
    room = out[start : start + piece.size]
    room += piece[: room.size]
