"""B17 B and C (pieces that cut a sample in half), B19 (the first reply bytes are silence), and the playback model."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captures.playback import first_audible, play, whole_samples

RATE_HZ = 24_000
MS = 1_000_000
ARRIVAL_NS = 7_000_000_000 + 200 * MS
"""200 ms after a turn that ended at 7 s."""


def tone(seconds: float, level: float = 0.5, rate_hz: int = RATE_HZ) -> bytes:
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    return (level * 32767 * np.sin(2 * np.pi * 440 * t)).astype("<i2").tobytes()


def silence(seconds: float, rate_hz: int = RATE_HZ) -> bytes:
    return bytes(2 * round(seconds * rate_hz))


def hiss(seconds: float, dbfs: float) -> bytes:
    noise = np.random.default_rng(7).normal(0, 32767 * 10 ** (dbfs / 20), round(seconds * RATE_HZ))
    return noise.round().astype("<i2").tobytes()


def one_loud_sample(at_s: float, seconds: float) -> bytes:
    samples = np.zeros(round(seconds * RATE_HZ), "<i2")
    samples[round(at_s * RATE_HZ)] = 32767
    return samples.tobytes()


@pytest.mark.parametrize(
    "opening",
    [silence(0.4), hiss(0.4, -70), one_loud_sample(0.05, 0.4)],
    ids=["a-zeros", "b-hiss", "d-loud-sample"],
)
def test_b19_first_audible_is_the_tone_not_the_first_byte(opening: bytes) -> None:
    heard = play([(ARRIVAL_NS, opening + tone(0.6))], RATE_HZ)
    assert heard.start_ns == ARRIVAL_NS
    assert heard.first_audible_ns == pytest.approx(ARRIVAL_NS + 400 * MS, abs=1 * MS)
    assert heard.leading_silence_s == pytest.approx(0.4, abs=0.001)
    assert heard.last_audible_ns == pytest.approx(ARRIVAL_NS + 1000 * MS, abs=1 * MS)
    assert heard.received_s == 1.0


def test_b19_c_a_silent_reply_has_no_first_audible_sample() -> None:
    heard = play([(ARRIVAL_NS, silence(1.0))], RATE_HZ)
    assert heard.start_ns == ARRIVAL_NS
    assert heard.first_audible_ns is None
    assert heard.leading_silence_s is None
    assert heard.received_s == 1.0


def test_no_reply_has_no_times() -> None:
    heard = play([], RATE_HZ)
    assert (heard.start_ns, heard.end_ns, heard.first_audible_ns, heard.received_s) == (None, None, None, 0.0)


@pytest.mark.parametrize(
    ("sound", "audible"),
    [
        (hiss(0.5, -53), False),
        (hiss(0.5, -47), True),
        (np.full(12_000, 9000, "<i2").tobytes(), False),
        (silence(0.105) + np.full(12_000, 9000, "<i2").tobytes(), False),
        (silence(0.1) + tone(0.019) + silence(0.1), False),
        (silence(0.1) + tone(0.03) + silence(0.1), True),
    ],
    ids=["below", "above", "offset", "step-of-offset", "19-ms", "30-ms"],
)
def test_what_counts_as_audible(sound: bytes, audible: bool) -> None:
    assert (first_audible([(0, sound)], RATE_HZ) is not None) is audible


def test_a_piece_starts_at_its_arrival_or_when_what_precedes_it_ends() -> None:
    early = [(0, silence(0.5)), (10 * MS, tone(0.5))]  # arrives while the first still plays
    late = [(0, silence(0.5)), (900 * MS, tone(0.5))]  # arrives after a gap
    assert first_audible(early, RATE_HZ) == pytest.approx(500 * MS, abs=MS)
    assert first_audible(late, RATE_HZ) == pytest.approx(900 * MS, abs=MS)
    assert play(early, RATE_HZ).end_ns == 1000 * MS
    assert play(late, RATE_HZ).end_ns == 1400 * MS


def test_small_gaps_between_pieces_do_not_hide_speech() -> None:
    speech = tone(1.0)
    pieces = [(k * 20_300_000, speech[k * 960 : (k + 1) * 960]) for k in range(50)]
    assert first_audible(pieces, RATE_HZ) == pytest.approx(0, abs=MS)


def test_b17_b_pieces_that_cut_samples_join() -> None:
    pcm = hiss(0.125, -20)
    assert len(pcm) == 6000
    pieces = [pcm[:4063], pcm[4063:5760], pcm[5760:]]
    assert [len(piece) for piece in pieces] == [4063, 1697, 240]
    assert whole_samples(pieces) == (pcm, 0)
    heard = play([(0, piece) for piece in pieces], RATE_HZ)
    assert heard.received_s == 3000 / RATE_HZ
    assert heard.stray_bytes == 0


def test_b17_c_a_stray_byte_is_noted_and_not_carried_over() -> None:
    pcm = hiss(0.125, -20)
    pieces = [pcm[:4063], pcm[4063:5760], pcm[5760:] + b"\x7f"]
    assert whole_samples(pieces) == (pcm, 1)
    heard = play([(0, piece) for piece in pieces], RATE_HZ)
    assert (heard.received_s, heard.stray_bytes) == (3000 / RATE_HZ, 1)
    assert play([(0, pcm)], RATE_HZ).first_audible_ns == heard.first_audible_ns


@settings(max_examples=50)
@given(
    cuts=st.lists(st.integers(0, 9600), max_size=8), rate_hz=st.sampled_from([8_000, 16_000, 22_050, 24_000, 48_000])
)
def test_cutting_a_reply_anywhere_changes_nothing(cuts: list[int], rate_hz: int) -> None:
    pcm = (silence(0.05) + tone(0.15))[:9600]
    edges = [0, *sorted(cuts), len(pcm)]
    pieces = [(5, pcm[start:end]) for start, end in pairwise(edges)]
    assert play(pieces, rate_hz) == play([(5, pcm)], rate_hz)
