"""Writes the folder of an imported bank: items, recipes, and the user's own recordings as clips. Renders no speech."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rig.audio.reader import InputError, read_clip
from rig.audio.resample import resample
from rig.audio.speech_end import NO_SPEECH_METHOD, speech_end_s
from rig.bank.from_csv import OwnItem, Row
from rig.bank.own_tools import BankImportError
from rig.bank.rendering.levels import RATE_HZ
from rig.bank.rendering.manifest import write_clip, write_manifest

_FROM = "# Written by `rig bank import`.\n"


def write_bank(folder: Path, items: Sequence[OwnItem], table: Path) -> list[str]:
    """Write a new bank; all of it, or nothing. Returns what a reader should know of the recordings.

    Raises:
        BankImportError: the folder holds something, cannot be written, or a recording cannot be used.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BankImportError(str(folder), ["is there already: name another folder"])
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
            made = Path(scratch) / "bank"
            notes = _filled(made, folder.resolve().name, items, table)
            if folder.exists():
                folder.rmdir()
            os.replace(made, folder)
    except OSError as error:
        raise BankImportError(str(folder), [f"cannot be written ({error.strerror or error})"]) from None
    return notes


def _filled(root: Path, name: str, items: Sequence[OwnItem], table: Path) -> list[str]:
    (root / "items").mkdir(parents=True)
    (root / "audio").mkdir()
    _write(root / "bank.yaml", {"name": name, "version": "0.1", "origin": "imported"})
    for own in items:
        _write(root / "items" / f"{own.item.id}.yaml", own.data)
    _write(root / "recipes.yaml", {"version": 1, "items": {own.item.id: dict(own.recipe) for own in items}})
    notes: list[str] = []
    problems: list[str] = []
    added: list[dict[str, Any]] = []
    for own in items:
        for row in own.rows:
            if row.wav is None:
                continue
            try:
                added.append(_recording(row, root / "audio", notes))
            except InputError as error:
                problems.append(f"{row}: {error}")
    if problems:
        raise BankImportError(str(table), problems)
    if added:
        write_manifest(root / "audio", (), added)
    return notes


def _recording(row: Row, audio: Path, notes: list[str]) -> dict[str, Any]:
    """The clip of a row, written; and its row of the manifest."""
    assert row.wav is not None
    read = read_clip(row.wav)
    if not np.any(read.samples):
        raise InputError("the recording is silent", row.wav, "record it again")
    end_s, method = speech_end_s(read)
    notes += [f"{row}: {row.wav.name}: {note}" for note in read.notes]
    if method == NO_SPEECH_METHOD:
        notes.append(f"{row}: {row.wav.name}: no speech was found in it; its end is taken for the end of speech")
    clip = resample(read, RATE_HZ)
    return {
        "item_id": row.item_id,
        "variant_id": row.variant_id,
        "sha256": write_clip(audio, np.asarray(clip.samples)),
        "engine": "recording",
        "pcm_sha256": clip.pcm_sha256,
        "rate_hz": RATE_HZ,
        "duration_s": round(clip.duration_s, 4),
        "speech_end_s": round(min(end_s, clip.duration_s), 4),
        "speech_end_method": method,
    }


def _write(path: Path, data: object) -> None:
    dumped = yaml.dump(data, Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)
    path.write_text(_FROM + dumped, encoding="utf-8")


class _Plain(yaml.SafeDumper):
    """Writes what stands in several places out in each: readers of banks take no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
