"""The whole way from a bank's folder to its manifest, with a shipped recording in place of a synthesiser."""

from __future__ import annotations

import pytest
import soundfile
from rich.console import Console

from rig.bank.loader import load_bank
from rig.bank.rendering import clip, sources
from rig.bank.rendering.bank_render import render_bank
from rig.bank.rendering.manifest import read_manifest

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
    for module in (clip, sources):
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
    assert failures[0].startswith("own-01/plain: wer 1, must be at most 0.25")
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


def test_a_recipe_for_no_item_is_an_error(folder):
    path, _ = folder
    with pytest.raises(ValueError, match="no item own-02"):
        _render(path, {"own-02"})
