"""Where figures come from, how far our own marks were off, and gaps of replies: in every format."""

from __future__ import annotations

from pathlib import Path

from captures.capture import Capture, Condition, Ending, ReplyAudio
from rig.report.provenance import calibration
from rig.report.runs import LoadedRun
from rig.report.timing import gaps


def _run(calibrated: object, version: str = "1") -> LoadedRun:
    return LoadedRun(Path("runs/first"), {"rig_version": version, "calibration": calibrated}, (), ())


def _level(sessions: int, p99: float | None) -> dict[str, object]:
    mark = {"n": 120, "bias_ms": 0.06, "p99_ms": p99, "max_ms": 1.0}
    return {"sessions": sessions, "marks": {"tool_call": mark, "first_audio": mark, "commit": mark}}


def test_a_calibration_is_told_in_one_line() -> None:
    found = {"made": "2026-01-01T00:00:00+00:00", "rig_version": "1", "levels": [_level(1, None), _level(100, 0.34)]}
    told = calibration(_run(found))
    assert told.startswith("first: calibrated 2026-01-01T00:00:00+00:00; bias / p99 in ms: 1 at once: ")
    assert "tool call +0.06 / n too small, first audio +0.06 / n too small; 100 at once: tool call +0.06 / 0.34" in told
    assert "by another version of the rig (1)" in calibration(_run(found, version="2"))


def test_none_is_said_and_a_strange_one_does_no_harm() -> None:
    assert calibration(_run(None)) == "first: not calibrated on its machine (rig calibrate)"
    assert calibration(_run({"levels": [{"marks": {"tool_call": None}}]})).startswith("first: calibrated None")


def _reply(count: int | None, seconds: float | None, received_s: float = 2.0) -> Capture:
    return Capture(
        identity="id",
        target="t",
        item_id="i",
        variant_id="v",
        condition=Condition.AUDIO,
        finished=True,
        started_ns=0,
        adapter="rig_socket",
        wire_version=1,
        parser_version=1,
        ending=Ending.DECLINED,
        reply_audio=ReplyAudio(
            rate_hz=24_000, received_s=received_s, leading_silence_s=0.1, gaps=count, gaps_s=seconds
        ),
    )


def test_gaps_of_replies_are_counted_where_they_were_watched() -> None:
    found = gaps([_reply(0, 0.0), _reply(2, 0.5, received_s=1.5), _reply(None, None), _reply(0, 0.0, received_s=0.0)])
    assert found is not None
    assert (found.replies, found.with_gaps, found.seconds, found.longest_share) == (2, 1, 0.5, 0.25)
    assert gaps([_reply(None, None)]) is None
    assert gaps([]) is None
