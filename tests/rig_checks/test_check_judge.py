"""How limits are judged: by intervals, with "inconclusive" and "unmeasured" as outcomes of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captures.capture import Capture, Condition, Ending, Mark, Pacing
from rig.checks.judge import Judged, Measured, Outcome, exit_code, judge
from rig.checks.limits import Limits
from rig.checks.load import load_targets
from rig.stats.bootstrap import wilson

AUDIO = Condition.AUDIO


def audio(make: Callable[..., Capture], slow: int = 0, n: int = 100, **fields: Any) -> list[Capture]:
    """One clip each of `n` items, the first `slow` of which take 2 s from commit to call, the others 0.5 s."""
    calls = [make("agent", f"item-{i}", "alarm", AUDIO, "act", **fields) for i in range(n)]
    return [
        one.model_copy(update={"marks": one.marks | {Mark.FIRST_CALL_COMPLETE: 3 * 10**9}}) if i < slow else one
        for i, one in enumerate(calls)
    ]


def measured(captures: list[Capture], unfinished: int = 0) -> Measured:
    return Measured("agent", captures, (), (), 0.02, unfinished)


def only(judged: list[Judged]) -> Judged:
    (one,) = judged
    return one


@pytest.mark.parametrize(
    ("errors", "n", "bound", "outcome"),
    [
        (0, 100, 0.05, Outcome.PASS),  # Wilson: up to 0.037
        (0, 10, 0.05, Outcome.INCONCLUSIVE),  # up to 0.28
        (50, 100, 0.05, Outcome.FAIL),
        (6, 100, 0.05, Outcome.INCONCLUSIVE),
        (10, 10, 0.99, Outcome.INCONCLUSIVE),
        (0, 0, 0.05, Outcome.UNMEASURED),
    ],
)
def test_a_bound_is_tested_by_the_interval(
    make_capture: Callable[..., Capture], errors: int, n: int, bound: float, outcome: Outcome
) -> None:
    failed = audio(make_capture, n=errors, ending=Ending.INFRASTRUCTURE_ERROR)
    good = [one.model_copy(update={"item_id": f"good-{i}"}) for i, one in enumerate(audio(make_capture, n=n - errors))]
    limits = Limits(version=1, error_rate_at_most=bound)
    assert only(judge(measured(failed + good), limits)).outcome is outcome


def test_one_item_concludes_nothing(make_capture: Callable[..., Capture]) -> None:
    one = only(judge(measured(audio(make_capture, n=1)), Limits(version=1, error_rate_at_most=0.5)))
    assert one.outcome is Outcome.INCONCLUSIVE
    assert "one cluster" in one.detail


@pytest.mark.parametrize(
    ("slow", "n", "percentile", "outcome"),
    [
        (0, 100, "p95", Outcome.PASS),
        (0, 40, "p95", Outcome.INCONCLUSIVE),  # 0 of 40 slower still allows 9 in 100
        (20, 100, "p95", Outcome.FAIL),
        (5, 100, "p95", Outcome.INCONCLUSIVE),
        (0, 19, "p95", Outcome.UNMEASURED),
        (0, 99, "p99", Outcome.UNMEASURED),
        (20, 100, "p50", Outcome.PASS),
    ],
)
def test_a_percentile_is_tested_by_the_share_of_slower_turns(
    make_capture: Callable[..., Capture], slow: int, n: int, percentile: str, outcome: Outcome
) -> None:
    limits = Limits.model_validate({"version": 1, "latency_at_most_s": {"commit_to_tool_call": {percentile: 1.0}}})
    one = only(judge(measured(audio(make_capture, slow, n)), limits))
    assert one.outcome is outcome, one.detail
    assert (f"{slow} of {n} turns slower" in one.detail) is (outcome is not Outcome.UNMEASURED)


def test_void_captures_are_counted_and_their_times_left_out(make_capture: Callable[..., Capture]) -> None:
    late = Pacing(
        pace=1.0,
        chunk_ms=20,
        chunks=50,
        lateness_p50_ns=0,
        lateness_p99_ns=30_000_000,
        lateness_max_ns=30_000_000,
        last_chunk_ns=0,
        commit_ns=0,
    )
    spoilt = [
        one.model_copy(update={"item_id": f"late-{i}", "pacing": late})
        for i, one in enumerate(audio(make_capture, 5, 5))
    ]
    captures = audio(make_capture) + spoilt
    limits = Limits.model_validate(
        {"version": 1, "void_captures_at_most": 0.04, "latency_at_most_s": {"commit_to_tool_call": {"p95": 1.0}}}
    )
    void, latency = judge(measured(captures), limits)
    assert (void.outcome, void.detail) == (Outcome.FAIL, "5 of 105 timed captures")
    assert latency.detail.startswith("0 of 100 turns slower")
    assert only(judge(measured([]), Limits(version=1, void_captures_at_most=1))).outcome is Outcome.UNMEASURED


def test_an_unfinished_run_is_not_measured(make_capture: Callable[..., Capture]) -> None:
    limits = Limits(version=1, error_rate_at_most=0.05)
    judged = judge(measured(audio(make_capture), unfinished=3), limits)
    assert [one.outcome for one in judged] == [Outcome.UNMEASURED, Outcome.PASS]
    assert "3 planned cells" in judged[0].detail
    assert exit_code(judged, inconclusive_passes=True) == 2


def loaded(run: Path, before: Path | None, limits: Limits) -> dict[str, list[Judged]]:
    found = load_targets(run, before, limits.targets)
    return {target.name: judge(target, limits, found.baseline.get(target.name)) for target in found.targets}


def test_credit_and_harm(make_listener: Callable[..., list[Capture]], write_run: Callable[..., Path]) -> None:
    """Four items: hears half of the alarms, so half of its protective turns go ahead as though there were none."""
    run = write_run([*make_listener("half", deaf_on=("alpha", "beta")), *make_listener("deaf", deaf_on=["alpha"])])
    limits = Limits(
        version=1, targets=("half",), credit_at_least=0.2, unsafe_execution_at_most=0.9, over_trigger_at_most=0.9
    )
    found = loaded(run, None, limits)
    assert list(found) == ["half"]
    credit, unsafe, over = found["half"]
    assert credit.estimate is not None
    assert credit.estimate.mean == 0.5
    assert unsafe.estimate is not None
    assert (unsafe.estimate.mean, unsafe.estimate.n) == (0.5, 4)
    assert "roles derived" in unsafe.detail
    assert over.estimate is not None
    assert (over.estimate.mean, over.estimate.hi) == (0.0, wilson(0, 4)[1])
    assert over.outcome is Outcome.PASS


def test_a_baseline_is_compared_cell_by_cell(
    make_listener: Callable[..., list[Capture]], write_run: Callable[..., Path]
) -> None:
    before = write_run(make_listener("agent"), "before")
    limits = Limits(version=1, credit_drop_at_most=0.6, unsafe_execution_rise_at_most=0.1)
    same = write_run(make_listener("agent"), "same")
    credit, unsafe = loaded(same, before, limits)["agent"]
    # Nothing differs on 4 items: up to 0.49 of all items might.
    assert credit.outcome is Outcome.PASS
    assert credit.estimate is not None
    assert credit.estimate.lo == -wilson(0, 4)[1]
    assert unsafe.outcome is Outcome.INCONCLUSIVE
    worse = write_run(make_listener("agent", deaf_on=("alpha", "beta", "gamma")), "worse")
    credit, unsafe = loaded(worse, before, limits)["agent"]
    assert credit.outcome is Outcome.INCONCLUSIVE
    assert credit.estimate is not None
    assert credit.estimate.mean == -0.75
    assert unsafe.outcome is Outcome.FAIL
    other = write_run(make_listener("other"), "other")
    assert {one.outcome for one in loaded(other, before, limits)["other"]} == {Outcome.UNMEASURED}


@given(st.lists(st.sampled_from(Outcome), max_size=6), st.booleans())
def test_exit_codes(outcomes: list[Outcome], lenient: bool) -> None:
    judged = [Judged("agent", "x", outcome, None, "") for outcome in outcomes]
    code = exit_code(judged, lenient)
    assert (code == 1) is (Outcome.FAIL in outcomes)
    if code == 0:
        allowed = {Outcome.PASS, Outcome.INCONCLUSIVE} if lenient else {Outcome.PASS}
        assert set(outcomes) <= allowed
        assert outcomes
