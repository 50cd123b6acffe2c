"""What is wrong with a clip is told by item and variant, before any connection."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from rig.bank.loader import load_bank
from rig.engine.clips import prepare_clips

KEY = ("booking", "clear", 1)


def problem(folder: Path) -> str | None:
    """What is wrong with the bank's one clip."""
    bank = load_bank(str(folder))
    prepared, errors = prepare_clips(bank, bank.items)
    assert (KEY in prepared) != (KEY in errors)
    return errors.get(KEY)


def state(folder: Path, **fields: object) -> None:
    """Add fields to the manifest's one entry."""
    manifest = folder / "audio" / "manifest.yaml"
    (entry,) = yaml.safe_load(manifest.read_text())
    manifest.write_text(yaml.safe_dump([entry | fields]))


def test_an_unreadable_clip(tmp_path: Path, banks: Any) -> None:
    said = problem(banks.write_bank(tmp_path / "bank", {"clear": b"RIFF, but not really"}))
    assert said is not None
    assert said.startswith("clip of booking/clear: unreadable ")


@pytest.mark.parametrize("upper", [False, True])
def test_the_samples_are_those_that_the_manifest_states(tmp_path: Path, banks: Any, upper: bool) -> None:
    tone = banks.tone(0.3)
    folder = banks.write_bank(tmp_path / "bank", {"clear": banks.wav(tone)})
    stated = hashlib.sha256(tone.tobytes()).hexdigest()
    state(folder, pcm_sha256=stated.upper() if upper else stated)
    assert problem(folder) is None
    state(folder, pcm_sha256="0" * 64)
    said = problem(folder)
    assert said is not None
    assert said.startswith("pcm_sha256 of booking/clear is not that of ")


@pytest.mark.parametrize(("samples", "silent"), [([0] * 2_400, True), ([7, 8, 9] * 800, True), ([0, 3] * 1_200, False)])
def test_a_clip_of_silence_is_no_clip(tmp_path: Path, banks: Any, samples: list[int], silent: bool) -> None:
    said = problem(banks.write_bank(tmp_path / "bank", {"clear": banks.wav(np.array(samples, "<i2"))}))
    assert (said is not None) == silent
    assert said is None or said.startswith("clip of booking/clear holds no sound: ")
