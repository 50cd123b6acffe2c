"""What a report says of timing where there is little or none of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from captures.capture import Capture, Condition
from rig.report.as_json import report_json
from rig.report.build import build_report
from rig.report.timing import latency_summaries


@pytest.mark.parametrize(
    ("chunks", "pace", "shown"), [(50, 1.0, (20, 1.0)), (50, 0.0, (20, 0.0)), (0, 1.0, (None, None))]
)
def test_only_what_was_streamed_has_chunks_and_a_pace(
    write_run: Callable[..., Path], make_capture: Callable[..., Capture], chunks: int, pace: float, shown: object
) -> None:
    capture = make_capture("ears", "alpha", "calm", Condition.AUDIO, "wait")
    assert capture.pacing is not None
    pacing = capture.pacing.model_copy(update={"chunks": chunks, "pace": pace})
    run = write_run([capture.model_copy(update={"pacing": pacing})], pace=pace)
    target = report_json(build_report([run]))["targets"]["ears"]
    assert (target["chunk_ms"], target["pace"]) == shown


@pytest.mark.parametrize(("n", "p90"), [(1, None), (9, None), (10, 0.5)])
def test_a_ninetieth_percentile_needs_ten_values(
    make_capture: Callable[..., Capture], n: int, p90: float | None
) -> None:
    captures = [make_capture("ears", "alpha", "calm", Condition.AUDIO, "wait", repeat=k) for k in range(n)]
    found = latency_summaries(captures, 0.02)["commit_to_tool_call"]
    assert found is not None
    assert (found.n, found.p50, found.p90) == (n, 0.5, p90)
