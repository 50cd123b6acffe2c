"""Where a chirp lies in a recording, and what is made of several."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.devices.chirp import chirp, delay, found_at
from rig.devices.measure import drift_ppm

RATE_HZ = 16_000


def recording(delay_samples: int, gain: float, noise: float, seed: int, length: int = 24_000) -> bytes:
    line = np.random.default_rng(seed).normal(0, noise, length)
    wave = np.frombuffer(chirp(RATE_HZ), "<i2") * gain
    line[delay_samples : delay_samples + len(wave)] += wave
    return np.clip(line, -32768, 32767).astype("<i2").tobytes()


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 20_000),
    st.floats(0.05, 1.5) | st.floats(-1.5, -0.05),
    st.floats(0.0, 0.4),
    st.integers(0, 2**32 - 1),
)
def test_a_chirp_is_found_to_the_sample(at: int, gain: float, noise: float, seed: int) -> None:
    # Noise of up to 0.4 of the chirp's own level (its RMS is near 11,000 times the gain), and either polarity.
    found_s = found_at(recording(at, gain, noise * 11_000 * abs(gain), seed), RATE_HZ)
    assert found_s is not None
    assert abs(found_s * RATE_HZ - at) <= 1


@settings(max_examples=30, deadline=None)
@given(st.floats(0, 20_000), st.integers(0, 2**32 - 1))
def test_nothing_is_found_in_noise(level: float, seed: int) -> None:
    assert found_at(recording(0, 0.0, level, seed), RATE_HZ) is None


def test_nothing_is_found_in_a_tone_or_in_too_little() -> None:
    tone = (np.sin(np.arange(24_000) * 2 * np.pi * 1000 / RATE_HZ) * 9000).astype("<i2").tobytes()
    assert found_at(tone, RATE_HZ) is None
    assert found_at(b"\0\0" * 100, RATE_HZ) is None
    assert found_at(b"", RATE_HZ) is None


def test_the_uncertainty_is_half_the_range_and_half_a_block_at_least() -> None:
    made = delay([0.080, 0.090, 0.110], 3, 0.010)
    assert made is not None
    assert (made.median_s, made.found, made.played) == (0.090, 3, 3)
    assert made.uncertainty_s == pytest.approx(0.015)
    close = delay([0.080, 0.080], 2, 0.010)
    assert close is not None
    assert close.uncertainty_s == 0.005


def test_fewer_than_half_of_the_chirps_are_no_measurement() -> None:
    assert delay([0.080], 3, 0.010) is None
    assert delay([], 0, 0.010) is None


@pytest.mark.parametrize("ppm", [-200.0, 0.0, 150.0])
def test_the_drift_is_the_slope_of_the_blocks(ppm: float) -> None:
    blocks = [(round(n * 10_000_000 / (1 + ppm / 1e6)) + n % 3 * 400_000, bytes(960)) for n in range(800)]
    found = drift_ppm(blocks, 48_000)
    assert found is not None
    assert found == pytest.approx(ppm, abs=5)
    assert drift_ppm(blocks[:300], 48_000) is None
