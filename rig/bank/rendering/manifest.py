"""The audio manifest as the renderer writes it, and the clip files beside it, named by their SHA-256.

Readers of a bank use `rig.bank.models.ClipEntry`; this is the same entry with all that rendering knows.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import yaml
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter

from rig.bank.loader import MAX_TABLE_BYTES
from rig.bank.models import ClipEntry
from rig.bank.rendering.levels import RATE_HZ
from rig.bank.rendering.measures import Gate
from rig.bank.yaml_file import read_yaml

_HEADING = (
    "# Written by `python -m rig.bank.rendering`. Do not edit: change the item or recipes.yaml and render again.\n"
)


class RenderedEntry(ClipEntry):
    """A manifest entry of a clip that the renderer made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pcm_sha256: str
    """Of the 16-bit little-endian samples, without any header."""
    rate_hz: int
    duration_s: float
    speech_end_s: float
    speech_end_method: str = "clean_stem"
    voice: str
    wer: float
    """Word error rate on the neutral stem."""
    wer_delivered: float | None
    """The same once the delivery is applied; null where the delivery is neutral."""
    gates: dict[str, Gate]
    source_sha256: str
    """Of everything the clip was made from; another value means that it must be rendered again."""


_ENTRIES = TypeAdapter(list[RenderedEntry])


def flac_bytes(pcm: NDArray[np.int16]) -> bytes:
    """The samples as a mono 16-bit FLAC file at `RATE_HZ`."""
    buffer = io.BytesIO()
    soundfile.write(buffer, pcm, RATE_HZ, format="FLAC", subtype="PCM_16", compression_level=1.0)
    return buffer.getvalue()


def pcm_sha256(pcm: NDArray[np.int16]) -> str:
    """SHA-256 of the samples as little-endian 16-bit words."""
    return hashlib.sha256(pcm.astype("<i2").tobytes()).hexdigest()


def read_manifest(folder: Path) -> list[RenderedEntry]:
    """The entries of a rendered bank's manifest, empty where there is none yet."""
    path = folder / "manifest.yaml"
    data = read_yaml(path, MAX_TABLE_BYTES) if path.exists() else None
    return _ENTRIES.validate_python(data or [])


def write_clip(folder: Path, pcm: NDArray[np.int16]) -> str:
    """Write <sha256>.flac into the folder; returns the SHA-256."""
    content = flac_bytes(pcm)
    sha256 = hashlib.sha256(content).hexdigest()
    path = folder / f"{sha256}.flac"
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(content)
    os.replace(temporary, path)
    return sha256


def write_manifest(folder: Path, entries: Iterable[RenderedEntry]) -> list[Path]:
    """Write the manifest, sorted by item and variant; remove clips that no entry names, and return them."""
    ordered = sorted(entries, key=lambda entry: (entry.item_id, entry.variant_id))
    rows: list[dict[str, Any]] = []
    for entry in ordered:
        row = entry.model_dump(mode="json")
        row["gates"] = {name: kept.model_dump(mode="json", exclude_none=True) for name, kept in entry.gates.items()}
        rows.append(row)
    temporary = folder / "manifest.tmp"
    temporary.write_text(_HEADING + yaml.safe_dump(rows, sort_keys=False, width=120), encoding="utf-8")
    os.replace(temporary, folder / "manifest.yaml")
    named = {f"{entry.sha256}.flac" for entry in ordered}
    stale = [path for path in sorted(folder.glob("*.flac")) if path.name not in named]
    for path in stale:
        path.unlink()
    return stale
