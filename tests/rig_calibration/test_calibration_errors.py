"""Errors of marks: from frames whose truth is known by construction, and with the stamping peer itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from captures.capture import Mark
from captures.frames import Direction, LoggedFrame
from rig.calibration import record
from rig.calibration.errors import MarkError, TurnErrors, summed_up, truths, turn_errors
from rig.calibration.measure import calibrate
from rig.calibration.peer import CALL, CREATED, SILENCE, SILENT_PIECES, TONE
from rig.calibration.record import Calibration, Level

MS = 1_000_000


def _frame(parts: tuple[bytes, bytes], sent_ns: int) -> LoggedFrame:
    payload = b"%b%d%b" % (parts[0], sent_ns, parts[1])
    return LoggedFrame(sent_ns + 5 * MS, Direction.RECEIVED, payload, False)


def _answer(delays_ms: Mapping[int, int] | None = None) -> list[LoggedFrame]:
    """Created at 1 s; pieces sent every 15 ms from 1.1 s on, some of them late; the call at 1.6 s."""
    late = delays_ms or {}
    sent = [(1100 + 15 * k + late.get(k, 0)) * MS for k in range(SILENT_PIECES + 3)]
    pieces = [_frame(SILENCE if k < SILENT_PIECES else TONE, ns) for k, ns in enumerate(sent)]
    return [_frame(CREATED, 1000 * MS), *pieces, _frame(CALL, 1600 * MS)]


def test_the_truth_is_what_the_stamps_say() -> None:
    onset = 1100 + 20 * SILENT_PIECES
    assert truths(_answer()) == {
        "commit": 1000 * MS,
        "first_audio": 1100 * MS,
        "first_audible": onset * MS,
        "tool_call": 1600 * MS,
    }


def test_a_piece_sent_after_playback_ran_dry_moves_the_onset() -> None:
    # Piece 5 is due at 1.2 s of playback and is sent at 1.575 s: what follows starts after it.
    assert truths(_answer({5: 400}))["first_audible"] == (1575 + 20 * (SILENT_PIECES - 5)) * MS


def test_errors_are_ours_minus_the_truth() -> None:
    marks = {Mark.COMMIT: 999 * MS, Mark.FIRST_AUDIO: 1103 * MS, Mark.FIRST_CALL_COMPLETE: 1602 * MS}
    assert turn_errors(marks, _answer(), void=False).error_ns == {
        "commit": -MS,
        "first_audio": 3 * MS,
        "tool_call": 2 * MS,
    }


def test_frames_of_another_kind_give_no_truth() -> None:
    sent = LoggedFrame(0, Direction.SENT, b'{"type":"response.created","event_id":"5"}', False)
    foreign = [LoggedFrame(0, Direction.RECEIVED, payload, False) for payload in (b"", b"\xff\x00", b'{"type":"x"}')]
    assert truths([sent, *foreign]) == {}


def test_void_turns_enter_no_error_and_p99_needs_a_hundred() -> None:
    turns = [TurnErrors({"tool_call": MS}, void=False) for _ in range(99)] + [TurnErrors({"tool_call": 9 * MS}, True)]
    assert summed_up(turns)["tool_call"] == MarkError(n=99, bias_ms=1.0, p99_ms=None, max_ms=1.0)
    more = [*turns, TurnErrors({"tool_call": -3 * MS}, void=False)]
    found = summed_up(more)["tool_call"]
    assert (found.n, found.bias_ms, found.p99_ms, found.max_ms) == (100, pytest.approx(0.96), 1.0, 3.0)
    assert summed_up(more)["first_audio"] == MarkError(n=0, bias_ms=None, p99_ms=None, max_ms=None)


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=30), st.integers(-(10**8), 10**8))
def test_a_constant_error_moves_the_bias_alone(errors_ns: list[int], shift_ns: int) -> None:
    def bias(values: list[int]) -> float:
        found = summed_up([TurnErrors({"commit": value}, void=False) for value in values])["commit"].bias_ms
        assert found is not None
        return found

    assert bias([value + shift_ns for value in errors_ns]) == pytest.approx(bias(errors_ns) + shift_ns / MS, abs=1e-6)


def _level(sessions: int, error: MarkError, failed: int = 0) -> Level:
    marks = {"commit": error, "first_audio": error, "first_audible": error, "tool_call": error}
    return Level(sessions=sessions, turns=200, void=0, failed=failed, lateness_p99_ms=1.0, cpu_share=0.1, marks=marks)


def test_what_is_worse_than_promised_is_named() -> None:
    fine = MarkError(n=200, bias_ms=0.4, p99_ms=4.9, max_ms=20.0)
    assert _level(100, fine).missed() == []
    biased = MarkError(n=200, bias_ms=-1.5, p99_ms=6.0, max_ms=20.0)
    assert _level(100, biased).missed() == [
        "100 sessions: first_audio: bias -1.50 ms, allowed ±1",
        "100 sessions: first_audio: p99 6.00 ms, allowed 5",
        "100 sessions: tool_call: bias -1.50 ms, allowed ±1",
        "100 sessions: tool_call: p99 6.00 ms, allowed 5",
    ]
    assert _level(200, biased).missed() == []  # nothing is promised there
    assert _level(50, fine, failed=1).missed() == ["50 sessions: 1 of 200 turns failed"]
    unmeasured = MarkError(n=0, bias_ms=None, p99_ms=None, max_ms=None)
    assert "50 sessions: tool_call: no turn without void timing" in _level(50, unmeasured).missed()


def test_the_last_one_is_kept_and_a_damaged_file_is_none(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "calibration.json"
    assert record.last(path) is None
    found = Calibration(
        made="2026-01-01T00:00:00+00:00",
        rig_version="1",
        python="3.11",
        system="Linux",
        machine="x86_64",
        cpus=2,
        event_loop="uvloop",
        levels=(_level(1, MarkError(n=1, bias_ms=0.1, p99_ms=None, max_ms=0.1)),),
    )
    record.save(found, path)
    assert record.last(path) == found
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    assert record.last(path) is None


def test_with_the_peer_itself(tmp_path: Path) -> None:
    found = anyio.run(calibrate, [2], 4, lambda level: None, tmp_path)
    (level,) = found.levels
    assert (level.turns, level.failed) == (6, 0)
    for name, mark in level.marks.items():
        assert mark.n == level.turns - level.void
        if mark.bias_ms is not None:
            # Nothing arrives before it is sent, and our commit is not read before it leaves.
            assert mark.bias_ms <= 0 if name == "commit" else mark.bias_ms >= 0
