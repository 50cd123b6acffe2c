"""How the caller's words sound: each delivery as a rate, a pitch, a gain and plain signal processing.

Synthesis gives no acting: except for `neutral`, a delivery here only suggests what its name says, and says why it falls
short. Pure functions of samples and a seeded generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rig.bank.rendering.levels import RATE_HZ, Samples, audible
from rig.bank.rendering.voices import resampled

CHILD_PITCH = 1.35
CHILD_REASON = "an adult voice with pitch and formants raised by resampling, not a recorded child"

Process = Callable[[Samples, np.random.Generator], Samples]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What is done to the neutral voice."""

    rate: float = 1.0
    """Speaking rate, times the neutral one."""
    pitch: float = 1.0
    """Pitch and formants, times the neutral ones."""
    gain_db: float = 0.0
    """Level of the speech against the neutral one."""
    process: Process | None = None
    reason: str | None = None
    """Why this is only an approximation; None for neutral."""


def whispered(samples: Samples, rng: np.random.Generator) -> Samples:
    """Unvoiced speech: white noise through the linear-prediction envelope (order 26) of each 20 ms of speech.

    The envelope keeps the words; voicing and pitch are gone. Its low end is turned down by up to 12 dB below 700 Hz, as
    a whisper has hardly any energy at the first harmonics.
    """
    order, width = 26, 480
    hop = width // 2
    window = np.hanning(width + 1)[:-1]
    noise = rng.standard_normal(samples.size + 2 * width)
    speech = np.pad(samples, width)
    out = np.zeros(speech.size)
    frequencies_hz = np.fft.rfftfreq(2 * width, 1 / RATE_HZ)
    tilt = np.clip(frequencies_hz / 700.0, 0.25, 1.0)
    for start in range(0, speech.size - width, hop):
        frame = speech[start : start + width] * window
        energy = float(np.sum(np.square(frame)))
        if energy < 1e-7:
            continue
        lags = np.fft.irfft(np.square(np.abs(np.fft.rfft(frame, 2 * width))))[: order + 1]
        envelope = 1.0 / np.abs(np.fft.rfft(_predictor(lags), 2 * width))
        spectrum = np.fft.rfft(noise[start : start + width] * window, 2 * width) * envelope * tilt
        filtered = np.fft.irfft(spectrum)[:width]
        # Matched per frame: the noise's own fluctuations would otherwise sound like crackle.
        out[start : start + width] += filtered * np.sqrt(energy / max(float(np.sum(np.square(filtered))), 1e-12))
    return out[width : width + samples.size]


def _predictor(lags: Samples) -> Samples:
    """Prediction-error filter of autocorrelation lags (Levinson-Durbin)."""
    error = lags[0] * 1.0001 + 1e-12
    coefficients = np.array([1.0])
    for step in range(1, lags.size):
        reflection = -float(np.dot(coefficients, lags[step:0:-1][: coefficients.size])) / error
        padded = np.concatenate((coefficients, [0.0]))
        coefficients = padded + reflection * padded[::-1]
        error *= 1.0 - reflection**2
    return coefficients


def wavering(samples: Samples, *, cents: float, hertz: float, depth: float, phase: float) -> Samples:
    """Pitch moved up and down by `cents` at `hertz`, and level by `depth` (0..1) with it."""
    oversampling = 4
    dense = resampled(samples, oversampling)
    seconds = np.arange(samples.size) / RATE_HZ
    swing_s = (2.0 ** (cents / 1200.0) - 1.0) / (2 * np.pi * hertz)
    moved = (seconds + swing_s * np.sin(2 * np.pi * hertz * seconds + phase)) * RATE_HZ * oversampling
    tremor = 1.0 - depth * (0.5 + 0.5 * np.cos(2 * np.pi * hertz * seconds + phase))
    return np.asarray(np.interp(moved, np.arange(dense.size), dense) * tremor)


def _trembling(samples: Samples, rng: np.random.Generator) -> Samples:
    return wavering(samples, cents=60, hertz=6.5, depth=0.35, phase=float(rng.uniform(0, 2 * np.pi)))


def _sobbing(samples: Samples, rng: np.random.Generator) -> Samples:
    shaken = wavering(samples, cents=90, hertz=4.5, depth=0.55, phase=float(rng.uniform(0, 2 * np.pi)))
    return shaken * 0.8 + whispered(samples, rng) * 0.35


def _sing_song(samples: Samples, rng: np.random.Generator) -> Samples:
    return wavering(samples, cents=250, hertz=1.1, depth=0.2, phase=float(rng.uniform(0, 2 * np.pi)))


def _smeared(samples: Samples, rng: np.random.Generator) -> Samples:
    """Consonants blurred: spectrum magnitudes averaged over about 50 ms and dulled above 2.5 kHz."""
    width, hop = 720, 180
    window = np.hanning(width + 1)[:-1]
    padded = np.pad(samples, width)
    starts = range(0, padded.size - width, hop)
    spectra = np.array([np.fft.rfft(padded[start : start + width] * window) for start in starts])
    magnitudes = np.abs(spectra)
    blurred = np.mean([np.roll(magnitudes, shift, axis=0) for shift in (-2, -1, 0, 1, 2)], axis=0)
    dull = 1.0 / (1.0 + (np.fft.rfftfreq(width, 1 / RATE_HZ) / 2500.0) ** 4)
    shaped = spectra / np.maximum(magnitudes, 1e-9) * (0.65 * blurred + 0.35 * magnitudes) * dull
    out = np.zeros(padded.size)
    for start, spectrum in zip(starts, shaped, strict=True):
        out[start : start + width] += np.fft.irfft(spectrum) * window
    smooth = out[width : width + samples.size] / 1.5
    return wavering(smooth, cents=40, hertz=0.7, depth=0.1, phase=float(rng.uniform(0, 2 * np.pi)))


_SEMITONE = 2.0 ** (1 / 12)

DELIVERIES: dict[str, Delivery] = {
    "neutral": Delivery(),
    "urgent": Delivery(
        rate=1.2, pitch=_SEMITONE**2, gain_db=6.0, reason="faster, louder and two semitones higher, not acted urgency"
    ),
    "panicked": Delivery(
        rate=1.25,
        pitch=_SEMITONE**4,
        gain_db=6.0,
        process=_trembling,
        reason="faster, louder, four semitones higher with a tremor, not acted panic",
    ),
    "anxious": Delivery(
        rate=1.12,
        pitch=_SEMITONE**1.5,
        process=_trembling,
        reason="slightly faster and higher with a tremor, not acted anxiety",
    ),
    "angry": Delivery(
        rate=1.08, pitch=1.03, gain_db=7.0, reason="louder and slightly faster, without a shout's voice quality"
    ),
    "whispered": Delivery(
        gain_db=-6.0, process=whispered, reason="noise shaped by the words' spectral envelope, not a recorded whisper"
    ),
    "slurred": Delivery(
        rate=0.8, pitch=0.96, process=_smeared, reason="slowed and spectrally blurred, without slurred articulation"
    ),
    "tearful": Delivery(
        rate=0.85, pitch=_SEMITONE, gain_db=-2.0, process=_sobbing, reason="slow, breathy and shaking, without sobs"
    ),
    "sarcastic": Delivery(
        rate=0.82, process=_sing_song, reason="drawn out with exaggerated pitch swings, not acted sarcasm"
    ),
}


def processed(stem: Samples, delivery: Delivery, rng: np.random.Generator) -> Samples:
    """The delivery's signal processing on speech that already has its rate and pitch; silences stay silent."""
    if delivery.process is None:
        return stem
    mask = audible(stem)
    ramp = np.hanning(243)[1:-1]
    return delivery.process(stem, rng) * np.convolve(mask, ramp / ramp.sum(), mode="same")
