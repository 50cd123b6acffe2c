"""What `rig bank show` tells of clips that are there, missing, ruled on, or from elsewhere."""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import pytest
import soundfile
import yaml

from rig.bank.loader import load_bank
from rig.bank.page.page import page, write_page
from rig.bank.page.pictures import HEIGHT, WIDTH, levels, spectrogram_jpeg
from rig.bank.page.rows import as_json, clip_rows, cue
from rig.bank.rendering.errors import RenderError
from rig.bank.rendering.gate import Gate
from rig.bank.rendering.levels import RATE_HZ
from rig.bank.rendering.manifest import RenderedEntry, pcm_sha256, write_clip, write_manifest

_ITEM = """
id: own-01
policy_mode: explicit
domain: test <b>
transcript: 'Words with <script>alert(1)</script>.'
scenario: A caller.
explicit_policy: Policy.
tools: [{name: finish, description: Finish the call., params: []}]
variants:
- {variant_id: plain, gold: {tool: finish}}
- variant_id: loud
  emotion: anger
  intensity: 0.8
  scene: {kind: background, asset: 'tts:second_voice', text: 'Say "no" & go', speaker: child, snr_db: 6.0}
  gold: {tool: null}
- {variant_id: recorded, channel: g722, gold: {tool: finish}}
- {variant_id: gone, gold: {tool: finish}}
"""
_RULING = {
    "item": "own-01",
    "variant": "loud",
    "verdict": "ship",
    "who": "A. <i>Listener</i>",
    "when": "2026-12-01",
    "reason": "the tremor is plain to hear",
}


@pytest.fixture
def bank(tmp_path):
    (tmp_path / "own-01.yaml").write_text(_ITEM)
    (tmp_path / "audio").mkdir()
    (tmp_path / "rulings.yaml").write_text(yaml.safe_dump([_RULING]))
    entries = []
    for at, (variant, gates) in enumerate((("plain", {}), ("loud", {"tremor_st": Gate(value=0.1, at_least=0.3)}))):
        pcm = (np.sin(np.arange(RATE_HZ) * (at + 1) * 0.1) * 9000).astype(np.int16)
        entries.append(
            RenderedEntry(
                item_id="own-01",
                variant_id=variant,
                sha256=write_clip(tmp_path / "audio", pcm),
                engine="test-1",
                pcm_sha256=pcm_sha256(pcm),
                rate_hz=RATE_HZ,
                duration_s=1.0,
                speech_end_s=0.8,
                voice="hibari",
                wer=0.1,
                wer_delivered=None,
                gates={"wer": Gate(value=0.1, at_most=0.25), **gates},
                approximate="not acted" if gates else False,
                source_sha256="1" * 64,
            )
        )
    recording = tmp_path / "recording.wav"
    soundfile.write(recording, np.zeros((4800, 2)), 16000)
    sha256 = hashlib.sha256(recording.read_bytes()).hexdigest()
    recording.rename(tmp_path / "audio" / f"{sha256}.wav")
    added = {"item_id": "own-01", "variant_id": "recorded", "sha256": sha256, "engine": "studio", "studio": "left"}
    write_manifest(tmp_path / "audio", entries, [added])
    return tmp_path


def test_every_clip_has_its_state(bank):
    rows = clip_rows(load_bank(bank))
    assert [(row.name, row.state) for row in rows] == [
        ("own-01/plain", "passed"),
        ("own-01/loud", "ruled"),
        ("own-01/recorded", "added"),
        ("own-01/gone", "missing"),
    ]
    assert rows[1].approximate == "not acted"
    assert str(rows[1].ruling) == "ship, A. <i>Listener</i>, 2026-12-01: the tremor is plain to hear"


def test_a_row_says_what_is_to_be_heard(bank):
    plain, loud, recorded, _ = (cue(variant) for variant in load_bank(bank).items[0].variants)
    assert plain == "neutral"
    assert loud == 'anger 0.8, background tts:second_voice “Say "no" & go” (child), 6 dB'
    assert recorded == "neutral, over g722"


def test_a_ruling_on_other_samples_is_void(bank):
    (bank / "rulings.yaml").write_text(yaml.safe_dump([{**_RULING, "pcm_sha256": "0" * 64}]))
    assert clip_rows(load_bank(bank))[1].ruling is None


def test_json_holds_gates_and_rulings(bank):
    rows = json.loads(json.dumps([as_json(row) for row in clip_rows(load_bank(bank))], allow_nan=False))
    assert rows[1]["gates"]["tremor_st"] == {"value": 0.1, "at_least": 0.3, "passed": False}
    assert rows[1]["ruling"]["verdict"] == "ship"
    assert rows[3]["sha256"] is None


def test_the_page_escapes_all_text_and_holds_every_sound(bank):
    loaded = load_bank(bank)
    text = page(loaded, clip_rows(loaded))
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "<i>Listener" not in text
    assert "test <b>" not in text
    assert len(re.findall(r'<audio controls preload="none" src="data:audio/(?:flac|wav);base64,', text)) == 3
    assert text.count('src="data:image/jpeg;base64,') == 3
    assert not re.search(r'(?:src|href)="(?!data:|#)', text)
    assert '<tr class="fail"><td>tremor_st</td><td>0.1</td><td>at least 0.3</td></tr>' in text


def test_the_page_is_written_or_said_why_not(bank):
    loaded = load_bank(bank)
    write_page(bank / "page.html", loaded, clip_rows(loaded))
    assert (bank / "page.html").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(RenderError, match="cannot be written"):
        write_page(bank / "audio", loaded, [])


def test_an_unknown_item_or_a_wrong_ruling_is_named(bank):
    with pytest.raises(RenderError, match="no item own-02"):
        clip_rows(load_bank(bank), {"own-02"})
    for change, wrong in (
        ({"verdict": "maybe"}, r"rulings.yaml: 0\.verdict"),
        ({"variant": "quiet"}, "no variant own-01/quiet"),
        ({"when": "soon"}, r"0\.when"),
        ({"mood": 1}, r"0\.mood"),
    ):
        (bank / "rulings.yaml").write_text(yaml.safe_dump([{**_RULING, **change}]))
        with pytest.raises(RenderError, match=wrong):
            clip_rows(load_bank(bank))
    (bank / "rulings.yaml").write_text(yaml.safe_dump([_RULING, dict(_RULING)]))
    with pytest.raises(RenderError, match="ruled on twice"):
        clip_rows(load_bank(bank))


def test_a_tone_lies_at_its_height_in_the_picture():
    tone = np.sin(2 * np.pi * 2000 * np.arange(RATE_HZ) / RATE_HZ)
    picture = levels(tone, RATE_HZ)
    assert picture.shape == (HEIGHT, WIDTH)
    assert np.argmax(picture[:, WIDTH // 2]) == pytest.approx(HEIGHT / 4, abs=1)
    assert picture.max() == 1.0
    assert picture[HEIGHT // 2, WIDTH // 2] < 0.2


def test_what_is_no_audio_has_no_picture(tmp_path):
    (tmp_path / "x.flac").write_bytes(b"no audio")
    assert spectrogram_jpeg(tmp_path / "x.flac", None) is None
    assert spectrogram_jpeg(tmp_path / "absent.flac", None) is None
