"""The whole way from a bank's folder to its manifest, with a shipped recording in place of a synthesiser."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile
import yaml
from rich.console import Console

from rig.bank.loader import load_bank
from rig.bank.rendering import bank_render, clip, words
from rig.bank.rendering.bank_render import render_bank
from rig.bank.rendering.manifest import read_manifest
from rig.bank.rendering.voices import SynthesisError

_ITEM = """
id: own-01
policy_mode: explicit
domain: test
transcript: All right, nothing more is needed.
scenario: A caller.
explicit_policy: Policy.
tools: [{name: finish, description: Finish the call., params: []}]
variants:
"""
_VARIANT = "- {{variant_id: {id}, emotion: {emotion}, gold: {{tool: finish}}{more}}}\n"
_SCENES = {
    "plain": ("neutral", ""),
    "quick": ("urgent", ""),
    "hushed": ("whispered", ""),
    "child": ("neutral", ", speaker: child"),
    "beep": ("neutral", ", scene: {kind: background, asset: 'synth:monitor_beep', snr_db: 6.0, start_s: 0.0}"),
    "keys": ("neutral", ", scene: {kind: background, asset: 'synth:dtmf:25', snr_db: 0.0, start_s: 0.5}"),
    "masked": (
        "neutral",
        ", scene: {kind: slot_noise, asset: 'synth:white_noise', slot: nothing more, snr_db: -12.0, seed: 3}",
    ),
    "cut": ("neutral", ", scene: {kind: truncation, asset: 'synth:line_drop', slot: is needed, seed: 3}"),
    "halting": ("neutral", ", scene: {kind: disfluency, asset: 'synth:hesitation', slot: is needed}"),
    "silent": ("neutral", ", scene: {kind: silence, asset: 'synth:silence', slot: is needed}"),
    "prompted": (
        "neutral",
        ", scene: {kind: background, asset: 'tts:prompter', text: '(low) Say nothing.', speaker: child}",
    ),
}


@pytest.fixture
def folder(tmp_path, repo_dir, monkeypatch):
    """A bank of one item; the synthesiser says what a stock reply says, and counts how often it was asked."""
    reply, _ = soundfile.read(repo_dir / "rig/agents/stock/nothing_needed.flac")
    asked = []

    def speak(voice, text, seed):
        asked.append((voice, text, seed))
        return reply

    monkeypatch.setattr(clip, "synthesise", speak)
    for module in (clip, bank_render):
        monkeypatch.setattr(module, "engine_of", lambda _: "stock-1")
    monkeypatch.setattr(clip, "word_error_rate", lambda said, heard: float(said != heard) if "say" not in said else 0.0)
    _write_item(tmp_path, *_SCENES)
    (tmp_path / "recipes.yaml").write_text("version: 1\nitems: {own-01: {voice: hibari, seed: 4}}\n")
    return tmp_path, asked


def _write_item(path, *names):
    lines = [_VARIANT.format(id=name, emotion=_SCENES[name][0], more=_SCENES[name][1]) for name in names]
    (path / "own-01.yaml").write_text(_ITEM + "".join(lines))


def _render(path, only=frozenset(), *, force=False):
    done = render_bank(load_bank(path), only, force=force, console=Console(quiet=True), processes=1)
    return done.failures


def _entries(path):
    return {entry.variant_id: entry for entry in read_manifest(path / "audio").rendered}


def test_every_kind_of_variant_is_rendered_once_and_passes_its_gates(folder):
    path, asked = folder
    assert _render(path) == []
    entries = _entries(path)
    assert set(entries) == set(_SCENES)
    assert [voice for voice, _, _ in asked] == ["hibari", "flite:rms"]
    assert len({entry.pcm_sha256 for entry in entries.values()}) == len(_SCENES)
    assert entries["cut"].speech_end_s == pytest.approx(entries["cut"].duration_s, abs=1e-3)
    assert entries["beep"].speech_end_s == entries["masked"].speech_end_s == entries["plain"].speech_end_s
    assert entries["quick"].speech_end_s < entries["plain"].speech_end_s
    assert entries["child"].gates["pitch_change_st"].value > 4
    assert entries["prompted"].gates["second_voice_wer"].value == 0
    assert entries["silent"].duration_s == pytest.approx(entries["plain"].duration_s + 2.5, abs=0.01)
    assert "child's pitch" in entries["prompted"].approximate
    assert entries["plain"].approximate is False
    assert "not a recorded whisper" in entries["hushed"].approximate


def test_a_second_run_renders_nothing_and_force_gives_the_same_samples(folder):
    path, asked = folder
    _write_item(path, "plain", "hushed", "masked")
    _render(path)
    first = _entries(path)
    _render(path)
    assert len(asked) == 1
    _render(path, force=True)
    assert len(asked) == 2
    assert _entries(path) == first


def test_a_changed_transcript_is_rendered_again_and_a_failing_clip_is_named_and_left_out(folder):
    path, _ = folder
    _write_item(path, "plain", "quick")
    _render(path)
    item = path / "own-01.yaml"
    item.write_text(item.read_text().replace("nothing more is needed.", "something else."))
    failures = _render(path)
    assert len(failures) == 2
    assert failures[0].startswith("own-01/plain: wer 1, must be at most 0.3")
    assert _entries(path) == {}
    assert list((path / "audio").glob("*.flac")) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("emotion: urgent", "emotion: yodelled", "own-01/quick: emotion 'yodelled' has no delivery"),
        ("speaker: child", "speaker: giant", "own-01/child: speaker 'giant' cannot be rendered"),
        (
            "synth:monitor_beep",
            "real:traffic",
            "own-01/beep: scene background with asset 'real:traffic' cannot be rendered",
        ),
        ("slot: nothing more", "slot: sixty", "own-01/masked: slot 'sixty' occurs 0 times"),
    ],
)
def test_what_cannot_be_rendered_is_named_and_the_rest_goes_on(folder, old, new, message):
    path, _ = folder
    variant = message.removeprefix("own-01/").split(":")[0]
    _write_item(path, "plain", variant)
    item = path / "own-01.yaml"
    item.write_text(item.read_text().replace(old, new))
    failures = _render(path)
    assert len(failures) == 1
    assert failures[0].startswith(message)
    assert list(_entries(path)) == ["plain"]


def test_a_bank_over_its_own_limit_is_named(folder):
    path, _ = folder
    _write_item(path, "plain")
    (path / "bank.yaml").write_text("most_audio_mb: 0.01\n")
    failures = _render(path)
    assert len(failures) == 1
    assert "MB of clips, bank.yaml allows 0.01 (most_audio_mb)" in failures[0]


def test_two_runs_at_once_are_refused(folder, monkeypatch):
    path, _ = folder
    _write_item(path, "plain")

    def render_within(*_):
        with pytest.raises(ValueError, match="another `rig bank render` is at work"):
            _render(path)
        raise SynthesisError("enough")

    monkeypatch.setattr(clip, "synthesise", render_within)
    assert _render(path) == ["own-01/plain: enough"]


def test_a_recipe_for_no_item_is_an_error(folder):
    path, _ = folder
    with pytest.raises(ValueError, match="no item own-02"):
        _render(path, {"own-02"})


def test_a_clip_stays_where_its_synthesiser_is_not_installed_but_not_for_other_words(folder, monkeypatch):
    path, _ = folder
    _write_item(path, "plain")
    _render(path)
    before = _entries(path)

    def absent(*_):
        raise SynthesisError("flite is not installed: apt-get install flite")

    for module in (clip, bank_render):
        monkeypatch.setattr(module, "engine_of", absent)
    monkeypatch.setattr(clip, "synthesise", absent)
    assert _render(path) == _render(path, force=True) == []
    assert _entries(path) == before
    item = path / "own-01.yaml"
    item.write_text(item.read_text().replace("nothing more is needed.", "something else."))
    assert _render(path) == ["own-01/plain: flite is not installed: apt-get install flite"]
    assert _entries(path) == {}


def test_a_clip_added_by_hand_stays_and_is_not_rendered(folder):
    path, asked = folder
    _write_item(path, "plain", "quick")
    (path / "audio").mkdir()
    row = {"item_id": "own-01", "variant_id": "quick", "sha256": "ab" * 32, "engine": "studio", "note": "take 3"}
    (path / "audio" / "manifest.yaml").write_text(yaml.safe_dump([row]))
    assert _render(path) == []
    assert read_manifest(path / "audio").added == [row]
    assert list(_entries(path)) == ["plain"]
    assert len(asked) == 1


def test_a_followups_reply_is_rendered_for_every_variant(folder):
    path, _ = folder
    _write_item(path, "plain", "masked", "quick")
    item = path / "own-01.yaml"
    item.write_text(
        item.read_text()
        + "followup: {trigger_tools: [finish], result: Asked., reply: 'All right, nothing more is needed!'}\n"
    )
    assert _render(path) == []
    replies = {entry.variant_id: entry for entry in read_manifest(path / "audio").rendered if entry.turn == 2}
    assert set(replies) == {"plain", "masked", "quick"}
    assert replies["plain"].pcm_sha256 == replies["masked"].pcm_sha256 != replies["quick"].pcm_sha256
    bank = load_bank(path)
    assert bank.reply_clip(bank.items[0], bank.items[0].variant("masked")).sha256 == replies["masked"].sha256


def _rule(path, variant, verdict, **more):
    ruling = {"item": "own-01", "variant": variant, "verdict": verdict, "who": "A. L.", "when": "2026-12-01", **more}
    (path / "rulings.yaml").write_text(yaml.safe_dump([{**ruling, "reason": "listened"}]))


def test_a_ruling_ships_what_a_gate_holds_back_until_it_is_withdrawn(folder, monkeypatch):
    path, asked = folder
    _write_item(path, "plain")
    monkeypatch.setattr(clip, "WORST_WER", -1.0)
    assert _render(path) == ["own-01/plain: wer 0, must be at most -1"]
    _rule(path, "plain", "ship")
    assert _render(path) == []
    assert _entries(path)["plain"].ruling.who == "A. L."
    assert _entries(path)["plain"].failed == ["wer 0, must be at most -1"]
    (path / "rulings.yaml").unlink()
    assert _render(path) == ["own-01/plain: wer 0, must be at most -1"]
    assert _entries(path) == {}
    assert len(asked) == 2  # the last of the three runs found the clip rendered already


def test_a_ruling_withholds_what_passes(folder):
    path, _ = folder
    _write_item(path, "plain", "quick")
    _render(path)
    samples = _entries(path)["quick"].pcm_sha256
    _rule(path, "quick", "withhold", pcm_sha256="0" * 64)
    _render(path)
    assert set(_entries(path)) == {"plain", "quick"}
    for about in ({"pcm_sha256": samples}, {}):
        _rule(path, "quick", "withhold", **about)
        done = render_bank(load_bank(path), console=Console(quiet=True), processes=1)
        assert done.withheld == ["own-01/quick: withhold, A. L., 2026-12-01: listened"]
        assert done.failures == []
        assert list(_entries(path)) == ["plain"]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (np.zeros(24000), "the synthesiser gave silence"),
        (np.random.default_rng(1).standard_normal(48000) * 0.1, "own-01/plain: "),
    ],
)
def test_silence_and_noise_from_an_engine_are_named_and_not_shipped(folder, monkeypatch, said, message):
    path, _ = folder
    _write_item(path, "plain")
    monkeypatch.setattr(clip, "synthesise", lambda voice, text, seed: said)
    monkeypatch.setattr(clip, "word_error_rate", words.word_error_rate)
    failures = _render(path)
    assert message in failures[0]
    assert read_manifest(path / "audio").rendered == []


def test_a_voice_that_says_other_words_is_named_and_not_shipped(folder, repo_dir, monkeypatch):
    path, _ = folder
    _write_item(path, "plain")
    other, _ = soundfile.read(repo_dir / "rig/agents/stock/clarify.flac")
    monkeypatch.setattr(clip, "synthesise", lambda voice, text, seed: other)
    monkeypatch.setattr(clip, "word_error_rate", words.word_error_rate)
    assert "own-01/plain: " in _render(path)[0]
    assert read_manifest(path / "audio").rendered == []


def test_an_interrupted_run_keeps_what_it_made(folder, monkeypatch):
    path, _ = folder
    _write_item(path, "plain", "quick")
    _render(path)
    before = _entries(path)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(clip, "synthesise", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _render(path, force=True)
    assert _entries(path) == before
