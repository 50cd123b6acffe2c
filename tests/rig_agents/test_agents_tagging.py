"""Tags from measures: confidences, limits, and how the limits are fitted and reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captures.capture import Condition, Ending
from rig.agents import evaluation, tagging
from rig.agents.acoustic_words import TAGS
from rig.agents.evaluation import (
    EXPECTED,
    Clip,
    confusion_table,
    credit_table,
    fit,
    hit_table,
    in_fitted_half,
    split_seed,
)
from rig.agents.tagging import BY_HAND, RULES, confidences, fitted_limits
from rig.bank.loader import load_bank
from rig.bank.models import Bank
from rig.scoring.action import ActionScore
from rig.scoring.cells import ScoredCell

MEASURES = sorted({name for rule in RULES.values() for name in rule.measures})
CALM = {
    **dict.fromkeys(MEASURES, 0.0),
    "speech_dbfs": -23.0,
    "floor_gap_db": 60.0,
    "voiced_share": 0.8,
    "f0_hz": 150.0,
    "voiced_run_s": 0.2,
    "clarity": 0.98,
    "onsets_per_s": 4.3,
    "articulation_db": 6.5,
    "range_st": 8.0,
    "end_flatness": 0.1,
}

ALARMS = {tag: EXPECTED[tag] for tag in ("siren", "co_alarm", "smoke_alarm", "monitor_beep", "beeping")}


def test_tags_rules_words_and_expectations_are_of_the_same_tags() -> None:
    assert set(RULES) == set(TAGS) == set(EXPECTED) == set(fitted_limits())
    for tag, rule in RULES.items():
        assert set(fitted_limits()[tag]) == set(rule.measures)
        assert list(RULES).index(tag) > max((list(RULES).index(other) for other in rule.unless), default=-1)


def test_calm_speech_has_no_tag() -> None:
    assert not [tag for tag, sure in confidences(CALM).items() if sure >= 0.5]


@given(st.fixed_dictionaries({name: st.floats(-1e6, 1e6) for name in MEASURES}))
@settings(max_examples=40)
def test_confidence_lies_within_0_and_1(measures: dict[str, float]) -> None:
    assert all(0.0 <= sure <= 1.0 for sure in confidences(measures).values())


def test_confidence_grows_with_the_measure_and_is_a_half_at_the_limit() -> None:
    limit = fitted_limits()["child_voice"]["f0_hz"].at
    seen = [confidences(CALM | {"f0_hz": hertz})["child_voice"] for hertz in (limit - 30, limit, limit + 30)]
    assert seen == sorted(seen)
    assert seen[1] == pytest.approx(0.5)
    assert confidences(CALM | {"f0_hz": limit + 60, "voiced_share": 0.0})["child_voice"] < 0.05, (
        "a whisper has no pitch"
    )


def _clip(item: int, cue: str, **measures: float) -> Clip:
    return Clip(f"item-{item}", cue, cue, "neutral", CALM | measures)


CLIPS = [
    *(_clip(item, "neutral", f0_hz=100.0 + 10 * item) for item in range(8)),
    *(_clip(item, "child", f0_hz=270.0 + item) for item in range(4)),
    *(_clip(item, "whispered", voiced_share=0.1, speech_dbfs=-31.0) for item in range(4, 8)),
]


def test_a_limit_is_fitted_to_the_middle_of_the_gap() -> None:
    limits = fit(CLIPS)
    assert limits["child_voice"]["f0_hz"].at == pytest.approx((170 + 270) / 2)
    assert limits["whispered"]["voiced_share"].at == pytest.approx((0.1 + 0.8) / 2)
    assert limits["keypad"] == BY_HAND["keypad"]


def test_the_split_is_by_item_and_puts_each_cue_into_both_halves() -> None:
    seed = split_seed(CLIPS)
    for cue in ("child", "whispered"):
        assert {in_fitted_half(clip.item_id, seed) for clip in CLIPS if clip.cue == cue} == {True, False}


def test_tables_count_what_was_found_and_what_is_false() -> None:
    clips = [*CLIPS, _clip(9, "fear", f0_hz=290.0)]
    assert "| child_voice | 4 of 4 | 1 of 13 | fear |" in hit_table(clips)
    assert "| siren | no clips | 0 of 17 |  |" in hit_table(clips)
    assert "| whispered | 4 | quiet 4, whispered 4 |" in confusion_table(clips)
    assert "| neutral | 8 | none 8 |" in confusion_table(clips)


def test_a_run_is_split_by_what_has_a_tag() -> None:
    cell = ScoredCell(
        *("target", "item-1", "child", Condition.AUDIO, 0, "id", Ending.CALLED, False, "speaker", None, False, False),
        action=ActionScore(0.5, False, 0.5, 0.5, (), ("do_it",)),
    )
    table = credit_table([cell], CLIPS, 0)
    assert "| cues with a tag | 1 | 0.50 |" in table
    assert "| with a tag: child | 1 | 0.50 |" in table


@pytest.fixture(scope="module")
def demo() -> Bank:
    return load_bank("demo")


@pytest.fixture(scope="module")
def demo_clips(demo: Bank) -> list[Clip]:
    return evaluation.measured(demo)


def test_every_computed_alarm_is_told_from_every_other_sound(demo: Bank, demo_clips: list[Clip]) -> None:
    one = replace(demo, items=(demo.item("demo-meals-01"),))
    table = hit_table(evaluation.mixed(one, split_seed(demo_clips)), ALARMS)
    assert table.count("| 2 of 2 | 0 of 26 |") == len(ALARMS), table


def test_the_packaged_limits_come_from_the_packaged_bank(demo: Bank, demo_clips: list[Clip]) -> None:
    """Fitting anew would write the same file: nothing in it was turned by hand."""
    seed = split_seed(demo_clips)
    fitted = [clip for clip in demo_clips if in_fitted_half(clip.item_id, seed)]
    assert evaluation.as_text(fit(fitted), demo, seed, fitted) == tagging.limits_path().read_text(encoding="utf-8")


def test_a_bank_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert evaluation.main([str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith("error: ")
