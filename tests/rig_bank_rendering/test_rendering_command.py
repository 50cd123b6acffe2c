"""`rig bank render` and `rig bank show` as a user calls them, with the synthesiser itself and two processes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import soundfile

_ITEM = """
id: own-{name}
policy_mode: explicit
domain: test
transcript: {words}
scenario: A caller.
explicit_policy: Policy.
tools: [{{name: finish, description: Finish the call., params: []}}]
variants:
- {{variant_id: {variant}, channel: g711_ulaw, gold: {{tool: finish}}}}
"""


def _rig(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "rig", "bank", *arguments], capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def bank(tmp_path):
    (tmp_path / "one.yaml").write_text(_ITEM.format(name="one", words="Please send it to my home.", variant="plain"))
    (tmp_path / "two.yaml").write_text(
        _ITEM.format(name="two", words="I would like to talk to you.", variant="hushed, emotion: whispered")
    )
    (tmp_path / "recipes.yaml").write_text(
        "version: 1\nitems: {own-one: {voice: hibari, seed: 1}, own-two: {voice: hibari@0.90, seed: 2}}\n"
    )
    return tmp_path


def test_a_bank_from_words_to_clips_twice_the_same(bank):
    first = _rig("render", str(bank), "--processes", "2", "--json")
    assert first.returncode == 0, first.stderr
    assert len(json.loads(first.stdout)["rendered"]) == 2
    again = _rig("render", str(bank))
    assert "0 rendered, 2 unchanged" in again.stdout
    before = (bank / "audio" / "manifest.yaml").read_text()
    forced = _rig("render", str(bank), "--force", "--processes", "1", "--json")
    assert len(json.loads(forced.stdout)["rendered"]) == 2
    assert (bank / "audio" / "manifest.yaml").read_text() == before
    shown = json.loads(_rig("show", str(bank), "--json").stdout)
    assert {row["state"] for row in shown} == {"passed"}
    hushed = next(row for row in shown if row["variant"] == "hushed")
    assert hushed["gates"]["voiced_share"]["value"] <= 0.15
    assert hushed["gates"]["above_band_db"]["passed"]
    assert soundfile.info(bank / "audio" / f"{hushed['sha256']}.flac").samplerate == 24000


def test_a_missing_asset_ends_in_one_line_and_code_1(bank):
    item = bank / "one.yaml"
    item.write_text(
        item.read_text()
        + "- {variant_id: odd, channel: g711_ulaw, scene: {kind: background, asset: 'real:rain'}, gold: {tool: null}}\n"
    )
    done = _rig("render", str(bank), "--item", "own-one")
    assert done.returncode == 1
    assert "failed own-one/odd: scene background with asset 'real:rain' cannot be rendered; known:" in done.stderr
    shown = _rig("show", str(bank), "--item", "own-one")
    assert shown.returncode == 1
    assert "1 missing" in shown.stdout


def test_what_cannot_be_done_at_all_ends_in_code_2(bank):
    done = _rig("render", str(bank), "--item", "own-three")
    assert done.returncode == 2
    assert done.stderr.startswith("rig: no item own-three in the bank")
    (bank / "recipes.yaml").unlink()
    assert "recipes.yaml: cannot be read" in _rig("render", str(bank)).stderr
