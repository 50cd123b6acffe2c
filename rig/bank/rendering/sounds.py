"""Synthetic sounds of scenes: tones, alarms, keypad digits, noises. Seeded, unit RMS while they sound.

Each returns `seconds` of samples at `RATE_HZ`; levels are the scene's business.
"""

from __future__ import annotations

import numpy as np

from rig.bank.rendering.levels import RATE_HZ, Samples

MONITOR_BEEP_HZ = 960.0
ALARM_HZ = 3100.0
_MONITOR_PERIOD_S = 0.8
_MONITOR_ON_S = 0.12
_RAMP_S = 0.005
# Low and high tone of each key, hertz (ITU-T Q.23).
DTMF_ROWS_HZ = {"123A": 697.0, "456B": 770.0, "789C": 852.0, "*0#D": 941.0}
DTMF_COLUMNS_HZ = (1209.0, 1336.0, 1477.0, 1633.0)
DTMF_ON_S = 0.1


def gate(samples: Samples, on_s: list[tuple[float, float]]) -> Samples:
    """Samples silenced outside the (start, stop) spans in seconds, with 5 ms ramps."""
    envelope = np.zeros(samples.size)
    ramp = np.linspace(0.0, 1.0, round(_RAMP_S * RATE_HZ))
    for start_s, stop_s in on_s:
        piece = envelope[round(start_s * RATE_HZ) : round(stop_s * RATE_HZ)]
        piece[:] = 1.0
        head = ramp[: piece.size]
        piece[: head.size] = np.minimum(piece[: head.size], head)
        piece[piece.size - head.size :] = np.minimum(piece[piece.size - head.size :], head[::-1])
    return samples * envelope


def tone(frequency_hz: float, seconds: float) -> Samples:
    """A sine of unit RMS."""
    times_s = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    return np.asarray(np.sqrt(2.0) * np.sin(2 * np.pi * frequency_hz * times_s))


def monitor_beep(seconds: float) -> Samples:
    """A bedside monitor: 0.12 s beeps of 960 Hz, 75 a minute, the first at once."""
    starts_s = np.arange(0.0, seconds, _MONITOR_PERIOD_S)
    return gate(tone(MONITOR_BEEP_HZ, seconds), [(float(at), float(at) + _MONITOR_ON_S) for at in starts_s])


def co_alarm(seconds: float) -> Samples:
    """A carbon monoxide alarm: 3.1 kHz in temporal-four pattern, four 0.1 s pulses 0.1 s apart, then 5 s of silence.

    Pattern: UL 2034 and NFPA 72 (T4), 5.7 s from the first pulse of a group to the first of the next.
    """
    groups_s = np.arange(0.0, seconds, 4 * 0.1 + 3 * 0.1 + 5.0)
    pulses = [(float(at) + 0.2 * pulse, float(at) + 0.2 * pulse + 0.1) for at in groups_s for pulse in range(4)]
    return gate(tone(ALARM_HZ, seconds), pulses)


def dtmf(digits: str) -> Samples:
    """Keypad digits, 0.1 s on and 0.1 s off each (ITU-T Q.23 frequencies); raises ValueError on another character."""
    pieces = []
    for digit in digits:
        low_hz, high_hz = dtmf_pair_hz(digit)
        both = (tone(low_hz, DTMF_ON_S) + tone(high_hz, DTMF_ON_S)) / np.sqrt(2.0)
        pieces += [gate(both, [(0.0, DTMF_ON_S)]), np.zeros(round(DTMF_ON_S * RATE_HZ))]
    if not pieces:
        raise ValueError("no keypad digits given")
    return np.concatenate(pieces)


def dtmf_pair_hz(digit: str) -> tuple[float, float]:
    """The two frequencies of a keypad digit; raises ValueError on what no keypad has."""
    for row, low_hz in DTMF_ROWS_HZ.items():
        if len(digit) == 1 and digit in row:
            return low_hz, DTMF_COLUMNS_HZ[row.index(digit)]
    raise ValueError(f"{digit!r} is no keypad digit")


def white_noise(seconds: float, rng: np.random.Generator) -> Samples:
    """White noise, uniformly distributed: its peaks stay 4.8 dB above its RMS, so it can be loud without clipping."""
    return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), round(seconds * RATE_HZ))


def radio_squelch(seconds: float, rng: np.random.Generator) -> Samples:
    """The rush of an open radio receiver: noise of 400 to 3400 Hz, driven into saturation to keep its peaks low."""
    size = round(seconds * RATE_HZ)
    band = _radio_band(rng.standard_normal(size))
    driven = _radio_band(np.tanh(3.0 * band / np.std(band)))
    return np.asarray(driven / np.sqrt(np.mean(np.square(driven))))


def _radio_band(samples: Samples) -> Samples:
    spectrum = np.fft.rfft(samples)
    frequencies_hz = np.fft.rfftfreq(samples.size, 1 / RATE_HZ)
    spectrum[(frequencies_hz < 400) | (frequencies_hz > 3400)] = 0
    return np.asarray(np.fft.irfft(spectrum, samples.size))
