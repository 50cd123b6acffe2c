"""The arithmetic of pacing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turn_control.pacing import Lateness, audio_ns, chunk_ns, next_silence_due_ns, padding_ms, percentile_ns, pieces_ms


def test_due_times_are_whole_nanoseconds_and_never_early():
    assert chunk_ns(15, 1.0) == 15_000_000
    assert chunk_ns(20, 2.0) == 10_000_000
    assert audio_ns(44_100, 44_100) == 1_000_000_000
    assert audio_ns(1, 44_100) == 22_676  # 22,675.7 rounded up
    assert audio_ns(44_100, 44_100, 0) == chunk_ns(20, 0) == 0


@given(st.integers(1, 10_000_000), st.sampled_from([8_000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000]))
def test_a_clip_lasts_as_long_as_its_samples(samples, rate_hz):
    assert 0 <= audio_ns(samples, rate_hz) * rate_hz - samples * 10**9 < rate_hz


def test_padding_reaches_the_shortest_commit_in_pieces_of_a_chunk():
    assert padding_ms(1_440, 24_000, 0.1) == 40
    assert padding_ms(2_400, 24_000, 0.1) == 0
    assert padding_ms(441, 44_100, 0.1) == 90
    assert padding_ms(1_441, 24_000, 0.1) == 40  # whole milliseconds, never too few
    assert pieces_ms(50, 20) == [20, 20, 10]
    assert pieces_ms(0, 20) == []


@given(st.lists(st.integers(0, 200_000_000), max_size=50))
def test_silence_is_never_sent_twice_at_once(lags_ns):
    step_ns, due_ns, sent_ns = 20_000_000, 0, -(10**9)
    for lag_ns in lags_ns:
        before_ns, sent_ns = sent_ns, max(due_ns, sent_ns) + lag_ns
        assert sent_ns > before_ns
        due_ns = next_silence_due_ns(due_ns, sent_ns, step_ns)
        assert due_ns > sent_ns


def test_lateness_is_summed_up_by_nearest_rank():
    lateness = Lateness()
    lateness.each_ns.extend(range(1, 101))
    pacing = lateness.pacing(pace=1.0, chunk_ms=20)
    assert (pacing.chunks, pacing.lateness_p50_ns, pacing.lateness_p99_ns, pacing.lateness_max_ns) == (100, 50, 99, 100)
    assert pacing.commit_ns is None
    assert percentile_ns([], 0.99) == 0
