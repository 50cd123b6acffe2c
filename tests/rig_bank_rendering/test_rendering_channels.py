from __future__ import annotations

import numpy as np
import pytest

from rig.bank.rendering.channels import CHANNELS, LOSS_SHARE, lost_packets
from rig.bank.rendering.gates import channel_gates, lost_share
from rig.bank.rendering.levels import RATE_HZ, speech_rms_dbfs


def test_the_promised_names_are_there():
    assert set(CHANNELS) == {"g711_ulaw", "g711_alaw", "g722", "radio", "packet_loss"}


@pytest.mark.parametrize("name", sorted(CHANNELS))
def test_a_channel_keeps_length_and_level_and_cuts_its_band(stem, name):
    hiss = stem + np.random.default_rng(1).standard_normal(stem.size) * 0.01
    first, second = (CHANNELS[name].carry(hiss, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.size == hiss.size
    assert speech_rms_dbfs(first) == pytest.approx(speech_rms_dbfs(hiss), abs=2.5)
    gates = channel_gates(name, hiss, first)
    assert gates["above_band_db"].passed
    assert not channel_gates(name, hiss, hiss)["above_band_db"].passed or name == "g722"


def test_telephone_codecs_do_not_shift_what_they_carry(stem):
    for name in ("g711_ulaw", "g711_alaw", "g722"):
        carried = CHANNELS[name].carry(stem, np.random.default_rng(1))
        lags = np.correlate(carried[:RATE_HZ], stem[200 : RATE_HZ - 200], mode="valid")
        assert abs(int(np.argmax(lags)) - 200) <= 40  # 1.7 ms


def test_packets_are_lost_in_bursts_and_the_gate_sees_it(stem):
    lost = lost_packets(20_000, np.random.default_rng(5))
    assert not lost[0]
    assert lost.mean() == pytest.approx(LOSS_SHARE, abs=0.01)
    assert lost[1:][lost[:-1]].mean() == pytest.approx(0.5, abs=0.05)
    coded = CHANNELS["g711_ulaw"].carry(stem, np.random.default_rng(1))
    assert lost_share(stem, coded) == 0
    assert "lost_share" in channel_gates("packet_loss", stem, coded)
    assert not channel_gates("packet_loss", stem, coded)["lost_share"].passed


def test_a_radio_ends_in_a_burst(stem):
    carried = CHANNELS["radio"].carry(stem, np.random.default_rng(1))
    tail = carried[-round(0.15 * RATE_HZ) :]
    floor = carried[: round(0.15 * RATE_HZ)]
    assert np.std(tail) > 8 * np.std(floor) > 0
