"""The data file of deliveries, what the vocoder makes of it, and gates that see it."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.bank.rendering.deliveries import (
    Settings,
    delivery_file_path,
    delivery_of,
    emotion_delivery,
    emotions,
    read_deliveries,
    speaker_delivery,
    speakers,
)
from rig.bank.rendering.gates import delivery_gates
from rig.bank.rendering.levels import (
    RATE_HZ,
    SPEECH_RMS_DBFS,
    db_to_gain,
    limited,
    rms_dbfs,
    speech_rms_dbfs,
)
from rig.bank.rendering.measures import longest_silence_s, median_pitch_hz, pitch_track
from rig.bank.rendering.vocoder import FRAME_S, Spoken, delivered, taken_apart

_SPANS_S = [(0.25 + 0.2 * at, 0.45 + 0.2 * at) for at in range(10)]
"""Ten words of 0.2 s: the stem's two seconds of voice."""


@pytest.fixture(scope="module")
def parts(stem):
    return taken_apart(stem)


def _spoken(parts, changes, seed=4):
    spoken = delivered(parts, changes, _SPANS_S, np.random.default_rng(seed))
    gain = db_to_gain(SPEECH_RMS_DBFS + changes.level_db - speech_rms_dbfs(spoken.samples))
    return Spoken(limited(spoken.samples * gain), spoken.source_frames)


@pytest.mark.parametrize("pitch_hz", [95.0, 160.0, 230.0])
def test_pitch_is_measured(voice, pitch_hz):
    assert median_pitch_hz(voice(1.0, pitch_hz)) == pytest.approx(pitch_hz, rel=0.01)


def test_unchanged_speech_keeps_its_length_pitch_and_level(parts, stem):
    plain = _spoken(parts, Settings())
    assert plain.samples.size == pytest.approx(stem.size, abs=2 * FRAME_S * RATE_HZ)
    assert median_pitch_hz(plain.samples) == pytest.approx(160, rel=0.01)
    assert rms_dbfs(plain.samples) == pytest.approx(rms_dbfs(stem), abs=1.0)
    assert not plain.samples[: round(0.2 * RATE_HZ)].any()


@pytest.mark.parametrize(
    ("changes", "ratio", "pitch_ratio"),
    [
        (Settings(pitch_st=3.0), 1.0, 2 ** (3 / 12)),
        (Settings(rate=1.25), 0.8, 1.0),
        (Settings(rate=0.8, pitch_st=-2.0), 1.25, 2 ** (-2 / 12)),
        (Settings(formants=1.2), 1.0, 1.0),
        (Settings(pitch_hz=285.0), 1.0, 285 / 160),
    ],
)
def test_rate_pitch_and_formants_are_moved_each_by_itself(parts, changes, ratio, pitch_ratio):
    changed = _spoken(parts, changes)
    heard = changed.samples.size / RATE_HZ - 0.55
    assert heard / 2.0 == pytest.approx(ratio, abs=0.04)
    assert median_pitch_hz(changed.samples) / 160 == pytest.approx(pitch_ratio, rel=0.02)


def test_a_whisper_keeps_silence_but_not_the_voice(parts, stem):
    quiet = _spoken(parts, emotion_delivery("whispered", 1.0).settings)
    assert pitch_track(stem).voiced_share > 0.8
    assert pitch_track(quiet.samples).voiced_share < 0.15
    assert not quiet.samples[: round(0.2 * RATE_HZ)].any()


def test_pauses_go_between_words_and_are_known(parts):
    halting = _spoken(parts, Settings(pauses=2.0, pause_s=0.5))
    inserted_s = np.sum(halting.source_frames < 0) * FRAME_S
    assert inserted_s == pytest.approx(1.0, abs=0.02)
    assert longest_silence_s(halting.samples) == pytest.approx(0.5, abs=0.1)
    word_s = halting.span_s(_SPANS_S[9])
    assert 3.0 < word_s[0] < word_s[1] < 3.5


def test_gates_fail_where_the_change_did_not_arrive(parts):
    plain = _spoken(parts, Settings())
    for asked, gate in (
        (Settings(pitch_st=4.0), "pitch_change_st"),
        (Settings(rate=1.3), "rate_ratio"),
        (Settings(whisper=1.0), "voiced_share"),
        (Settings(tremor_hz=6.0, tremor_st=0.8), "tremor_st"),
        (Settings(tremor_hz=6.0, tremor_db=3.0), "tremor_db"),
        (Settings(level_db=6.0), "level_dbfs"),
        (Settings(pauses=2.0, pause_s=0.5), "pauses_s"),
    ):
        arrived = _spoken(parts, asked)
        if gate == "pauses_s":  # what was asked, without the pauses heard
            missing = Spoken(plain.samples, np.append(plain.source_frames, np.full(200, -1.0)))
        else:
            missing = plain
        assert not delivery_gates(plain.samples, missing, asked)[gate].passed, gate
        assert delivery_gates(plain.samples, arrived, asked)[gate].passed, gate


def test_a_childs_vocal_tract_is_measured(repo_dir):
    samples, _ = soundfile.read(repo_dir / "rig/agents/stock/nothing_needed.flac")
    real = taken_apart(samples)
    asked = speaker_delivery("child").settings
    plain, child = _spoken(real, Settings()), _spoken(real, asked)
    assert delivery_gates(plain.samples, child, asked)["formant_ratio"].value == pytest.approx(asked.tract, abs=0.05)
    assert not delivery_gates(plain.samples, plain, asked)["formant_ratio"].passed
    assert median_pitch_hz(child.samples) == pytest.approx(asked.pitch_hz, rel=0.05)


def test_other_speech_is_not_alike(parts, voice):
    plain = _spoken(parts, Settings())
    rng = np.random.default_rng(2)
    other = Spoken(rng.permutation(plain.samples), plain.source_frames)
    gates = delivery_gates(plain.samples, other, Settings(whisper=1.0))
    assert not gates["likeness"].passed


@pytest.mark.parametrize("name", sorted(emotions()))
def test_every_emotion_is_deterministic_bounded_and_has_a_gate_of_its_own(parts, name):
    changes = emotion_delivery(name, 0.9).settings
    first, second = (_spoken(parts, changes) for _ in range(2))
    np.testing.assert_array_equal(first.samples, second.samples)
    assert np.isfinite(first.samples).all()
    assert not first.samples[: round(0.2 * RATE_HZ)].any()
    gates = delivery_gates(_spoken(parts, Settings()).samples, first, changes)
    assert name == "neutral" or set(gates) - {"level_dbfs", "likeness"}


def test_all_but_neutral_and_adult_say_why_they_only_approximate():
    assert [name for name in emotions() if emotion_delivery(name, None).reason is None] == ["neutral"]
    assert [name for name in speakers() if speaker_delivery(name).reason is None] == ["adult"]


def test_the_promised_names_are_there():
    promised = (
        "neutral panic fear grief anger whispered breathless tearful resigned confused slurred sarcasm amused hesitant "
        "brush_off urgent panicked anxious angry sarcastic"
    )
    assert set(promised.split()) <= emotions()
    assert speakers() == {"adult", "child", "elderly"}


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(emotions())), st.floats(0, 1))
def test_every_figure_lies_between_its_ends(name, intensity):
    low, here, high = (emotion_delivery(name, at).settings.model_dump() for at in (0.0, intensity, 1.0))
    for figure, value in here.items():
        if value is not None:
            assert min(low[figure], high[figure]) - 1e-9 <= value <= max(low[figure], high[figure]) + 1e-9


def test_a_speaker_and_an_emotion_join():
    child, panic = speaker_delivery("child"), emotion_delivery("panic", 1.0)
    both = delivery_of("panic", 1.0, "child")
    assert both.settings.pitch_hz == child.settings.pitch_hz
    assert both.settings.pitch_st == panic.settings.pitch_st
    assert both.settings.rate == pytest.approx(child.settings.rate * panic.settings.rate)
    assert child.reason in both.reason
    assert panic.reason in both.reason
    assert delivery_of("neutral", None, None).settings.is_plain


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("pitch_range: [1.1, 1.5]", "pitch_range: [1.1, 1.5, 2]", "pitch_range: write one number"),
        ("gasp_db: [-20.0, -14.0]", "gasps: 3", r"gasps: Extra inputs"),
        ("rate: [1.12, 1.25]", "rate: [1.12, 9]", "rate"),
        ("panicked: panic", "panicked: dread", "aliases of no emotion here: dread"),
        ("panicked: panic", "anger: panic", "both alias and emotion: anger"),
        ("version: 1", "version: [", "deliveries.yaml: "),
    ],
)
def test_a_wrong_data_file_is_named(tmp_path, old, new, wrong):
    text = delivery_file_path().read_text()
    assert old in text
    path = tmp_path / "deliveries.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=wrong):
        read_deliveries(path)


@pytest.mark.parametrize(
    ("emotion", "speaker", "wrong"), [("yodelled", None, "yodelled"), ("neutral", "giant", "giant")]
)
def test_what_has_no_delivery_is_named_with_what_there_is(emotion, speaker, wrong):
    with pytest.raises(ValueError, match=rf"{wrong}.*known: a"):
        delivery_of(emotion, None, speaker)
