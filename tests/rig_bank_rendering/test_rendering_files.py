from __future__ import annotations

import hashlib

import numpy as np
import pytest
import soundfile

from rig.bank.loader import load_bank
from rig.bank.rendering.channels import CHANNELS
from rig.bank.rendering.clip import WORST_WER
from rig.bank.rendering.deliveries import emotion_delivery, emotions, speaker_delivery, speakers
from rig.bank.rendering.gate import Gate
from rig.bank.rendering.manifest import RenderedEntry, pcm_sha256, read_manifest, write_clip, write_manifest
from rig.bank.rendering.recipes import read_recipes
from rig.bank.rendering.sources import source_sha256
from rig.bank.rendering.stock import STOCK_REPLIES
from rig.bank.rendering.surroundings import SOUNDS


@pytest.fixture(scope="module")
def demo():
    return load_bank("demo")


def _entry(sha256: str) -> RenderedEntry:
    return RenderedEntry(
        item_id="demo-x",
        variant_id="plain",
        sha256=sha256,
        engine="test-1",
        pcm_sha256="0" * 64,
        rate_hz=24000,
        duration_s=1.0,
        speech_end_s=0.8,
        voice="hibari",
        wer=0.1,
        wer_delivered=None,
        gates={"wer": Gate(value=0.1, at_most=0.25)},
        source_sha256="1" * 64,
    )


def test_a_manifest_is_read_as_written_and_stale_clips_go(tmp_path):
    kept = write_clip(tmp_path, np.arange(2400, dtype=np.int16))
    stale = write_clip(tmp_path, np.zeros(2400, dtype=np.int16))
    recording = write_clip(tmp_path, np.ones(2400, dtype=np.int16))
    removed = write_manifest(tmp_path, [_entry(kept)], ours={kept, stale})
    assert [path.stem for path in removed] == [stale]
    names = [f"{kept}.flac", f"{recording}.flac", "manifest.yaml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert read_manifest(tmp_path).rendered == [_entry(kept)]


def test_a_rendered_row_that_was_cut_off_is_no_recording(tmp_path):
    write_manifest(tmp_path, [_entry("a" * 64)])
    path = tmp_path / "manifest.yaml"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "source_sha256" not in line), encoding="utf-8")
    with pytest.raises(ValueError, match=r"\[0\]: source_sha256: Field required"):
        read_manifest(tmp_path)


def test_a_clip_is_named_by_its_contents(tmp_path):
    pcm = np.random.default_rng(1).integers(-9000, 9000, 4800).astype(np.int16)
    name = write_clip(tmp_path, pcm)
    assert write_clip(tmp_path, pcm) == name
    assert hashlib.sha256((tmp_path / f"{name}.flac").read_bytes()).hexdigest() == name
    samples, rate_hz = soundfile.read(tmp_path / f"{name}.flac", dtype="int16")
    assert rate_hz == 24000
    np.testing.assert_array_equal(samples, pcm)


def test_gates_know_their_limits():
    assert Gate(value=0.25, at_most=0.25).passed
    assert not Gate(value=0.26, at_most=0.25).passed
    assert not Gate(value=5, at_least=6, at_most=9).passed
    assert str(Gate(value=5, at_least=6)) == "5, must be at least 6"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("version: 1\nitems: {a: {voice: hibari, seed: 1, speed: 2}}", r"items\.a\.speed"),
        ("version: 1\nitems: {a: {voice: nobody, seed: 1}}", r"unknown voice 'nobody'"),
        (
            "version: 1\nitems: {a: {voice: hibari, seed: 1, variants: {b: {delivery: yodelled}}}}",
            r"emotion 'yodelled' has no delivery",
        ),
        ("version: 2\nitems: {}", r"version"),
        ("items: [", r"recipes.yaml: "),
    ],
)
def test_a_wrong_recipe_is_named(tmp_path, text, wrong):
    path = tmp_path / "recipes.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=wrong):
        read_recipes(path)


def test_every_demo_variant_has_a_clip_rendered_from_its_present_text(demo):
    manifest = read_manifest(demo.root / "audio")
    entries = {entry.key: entry for entry in manifest.rendered}
    wanted = {
        (item.id, variant.variant_id, turn)
        for item in demo.items
        for variant in item.variants
        for turn in ((1, 2) if item.followup else (1,))
    }
    assert set(entries) | manifest.added_keys == wanted
    recipes = read_recipes(demo.root / "recipes.yaml").items
    for (item_id, variant_id, turn), entry in entries.items():
        item = demo.item(item_id)
        assert entry.voice == recipes[item_id].voice
        # One of the synthesisers may be absent here: its version is taken as the manifest has it.
        source = source_sha256(item, item.variant(variant_id), turn, recipes[item_id], entry.engine)
        assert entry.source_sha256 == source, (
            f"{item_id}/{variant_id} has changed since it was rendered: rig bank render --item {item_id}"
        )


def test_every_demo_clip_is_what_its_entry_says(demo):
    folder = demo.root / "audio"
    entries = read_manifest(folder).rendered
    assert {path.name for path in folder.iterdir()} == {f"{entry.sha256}.flac" for entry in entries} | {"manifest.yaml"}
    assert sum(path.stat().st_size for path in folder.iterdir()) < demo.info.most_audio_mb * 1e6 <= 12e6
    for entry in entries:
        path = folder / f"{entry.sha256}.flac"
        assert hashlib.sha256(path.read_bytes()).hexdigest() == entry.sha256
        pcm, rate_hz = soundfile.read(path, dtype="int16")
        assert pcm.ndim == 1
        assert rate_hz == entry.rate_hz == 24000
        assert pcm_sha256(pcm) == entry.pcm_sha256
        assert entry.duration_s == pytest.approx(pcm.size / rate_hz, abs=1e-3)
        assert 0.5 < entry.speech_end_s <= entry.duration_s + 1e-3
        assert entry.speech_end_method == "clean_stem"
        assert entry.wer <= WORST_WER
        assert entry.ruling is not None or not entry.failed
        assert np.max(np.abs(pcm.astype(int))) < 32767 * 10 ** (-1 / 20)


def test_the_demo_says_where_it_only_suggests(demo):
    for item in demo.items:
        for variant in item.variants:
            clip = demo.clip(item, variant)
            second_voice = variant.scene is not None and (variant.scene.asset or "").startswith("tts:")
            if variant.emotion != "neutral" or variant.speaker is not None or second_voice:
                assert clip.approximate
            assert variant.emotion in emotions()


def test_the_stock_replies_are_there(repo_dir):
    folder = repo_dir / "rig" / "agents" / "stock"
    assert {path.stem for path in folder.glob("*.flac")} == set(STOCK_REPLIES)
    assert all(soundfile.info(path).samplerate == 24000 for path in folder.glob("*.flac"))


def test_the_docs_list_every_name_and_every_reason_to_be_approximate(repo_dir, demo):
    told = (repo_dir / "docs" / "bank.md").read_text()
    deliveries = [emotion_delivery(name, None) for name in emotions()] + [speaker_delivery(name) for name in speakers()]
    reasons = {delivery.reason for delivery in deliveries} | {sound.reason for sound in SOUNDS.values()}
    for entry in read_manifest(demo.root / "audio").rendered:
        reasons |= set(str(entry.approximate).split("; ")) if entry.approximate else set()
    assert [reason for reason in reasons if reason and reason not in told] == []
    names = emotions() | speakers() - {"adult"} | set(SOUNDS) | set(CHANNELS)
    assert [name for name in names if name not in told] == []


def test_the_docs_list_every_gate_of_the_demo(repo_dir, demo):
    told = (repo_dir / "docs" / "bank.md").read_text()
    gates = {name for entry in read_manifest(demo.root / "audio").rendered for name in entry.gates}
    assert [name for name in gates if f"`{name}`" not in told] == []
