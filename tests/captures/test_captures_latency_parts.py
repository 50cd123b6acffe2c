"""The parts of voice to voice, and what they add up to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captures.capture import Capture, Mark, NetworkTimes, ReplyAudio
from captures.latency import latencies, parts

MakeCapture = Callable[..., Capture]
MS = 1_000_000


def _capture(make_capture: MakeCapture, pings_ms: tuple[float, ...], stopped_ms: int | None = None) -> Capture:
    marks = {
        Mark.FIRST_CHUNK: 0,
        Mark.CALLER_SPEECH_END: 1000 * MS,
        Mark.COMMIT: 1200 * MS,
        Mark.FIRST_AUDIO: 1900 * MS,
        Mark.FIRST_AUDIBLE: 2100 * MS,
    }
    if stopped_ms is not None:
        marks[Mark.SERVER_SPEECH_STOPPED] = stopped_ms * MS
        del marks[Mark.COMMIT]
    return make_capture(
        marks=marks,
        reply_audio=ReplyAudio(rate_hz=24_000, received_s=1.0, leading_silence_s=0.2),
        network=NetworkTimes(ping_ns=tuple(round(ms * MS) for ms in pings_ms)) if pings_ms else None,
    )


def _parts(capture: Capture) -> dict[str, float]:
    return {part.name: pytest.approx(part.seconds) for part in parts(capture)}


def test_from_a_commit_the_round_trip_is_taken_off_the_model(make_capture: MakeCapture) -> None:
    assert _parts(_capture(make_capture, (90, 60, 75))) == {"network": 0.06, "model": 0.64, "leading_silence": 0.2}


def test_without_an_answered_ping_the_network_is_absent_not_zero(make_capture: MakeCapture) -> None:
    assert _parts(_capture(make_capture, ())) == {"model": 0.7, "leading_silence": 0.2}


def test_after_the_peers_own_word_nothing_has_a_way_to_go(make_capture: MakeCapture) -> None:
    capture = _capture(make_capture, (60,), stopped_ms=1500)
    assert _parts(capture) == {"endpointing_hold": 0.5, "network": 0.06, "model": 0.4, "leading_silence": 0.2}


@given(st.lists(st.floats(0.1, 900), min_size=0, max_size=4), st.booleans())
def test_they_add_up(make_capture: MakeCapture, pings_ms: list[float], held: bool) -> None:
    capture = _capture(make_capture, tuple(pings_ms), stopped_ms=1500 if held else None)
    found = {part.name: part.seconds for part in parts(capture)}
    if held:
        (whole,) = (one.seconds for one in latencies(capture) if one.name == "speech_end_to_first_audible")
        assert found["endpointing_hold"] + found["model"] + found["leading_silence"] == pytest.approx(whole)
    else:
        rest = found.get("network", 0.0) + found["model"] + found["leading_silence"]
        assert rest == pytest.approx(0.9)  # commit to first audible
