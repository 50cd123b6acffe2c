"""The audio manifest as the renderer writes it, and the clip files beside it, named by their SHA-256.

Readers of a bank use `rig.bank.models.ClipEntry`; this is the same entry with all that rendering knows. Entries
that the renderer did not make (recordings, added by hand) are kept as they stand.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import yaml
from numpy.typing import NDArray
from pydantic import ConfigDict, ValidationError

from rig.bank.loader import MAX_TABLE_BYTES
from rig.bank.models import ClipEntry
from rig.bank.rendering.gate import Gate
from rig.bank.rendering.levels import RATE_HZ
from rig.bank.rendering.rulings import ClipKey, Ruling
from rig.bank.yaml_file import YamlFileError, read_yaml

_HEADING = (
    "# Written by `rig bank render`: change the item or recipes.yaml and render again.\n"
    "# Rows without source_sha256 are left as they stand.\n"
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
    """Word error rate on the neutral speech."""
    wer_delivered: float | None
    """The same once the delivery is applied; null where the delivery is neutral."""
    gates: dict[str, Gate]
    ruling: Ruling | None = None
    source_sha256: str
    """Of everything the clip was made from; another value means that it must be rendered again."""

    @property
    def key(self) -> ClipKey:
        """Item, variant and turn."""
        return self.item_id, self.variant_id, self.turn

    @property
    def failed(self) -> list[str]:
        """One line per gate not passed."""
        return [f"{name} {gate}" for name, gate in self.gates.items() if not gate.passed]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The entries of a manifest."""

    rendered: list[RenderedEntry] = field(default_factory=list)
    added: list[Mapping[str, Any]] = field(default_factory=list)
    """Rows of clips that were not rendered here, as they stand."""

    @property
    def added_keys(self) -> set[ClipKey]:
        """Item, variant and turn of the rows added by hand."""
        return {(row["item_id"], row["variant_id"], row.get("turn", 1)) for row in self.added}


def flac_bytes(pcm: NDArray[np.int16]) -> bytes:
    """The samples as a mono 16-bit FLAC file at `RATE_HZ`."""
    buffer = io.BytesIO()
    soundfile.write(buffer, pcm, RATE_HZ, format="FLAC", subtype="PCM_16", compression_level=1.0)
    return buffer.getvalue()


def pcm_sha256(pcm: NDArray[np.int16]) -> str:
    """SHA-256 of the samples as little-endian 16-bit words."""
    return hashlib.sha256(pcm.astype("<i2").tobytes()).hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """A bank's manifest, empty where there is none yet. Raises ValueError for an entry of neither kind."""
    path = folder / "manifest.yaml"
    if not path.exists():
        return Manifest()
    try:
        data = read_yaml(path, MAX_TABLE_BYTES) or []
    except YamlFileError as error:
        raise ValueError(f"{path}: {error}") from error
    if isinstance(data, Mapping):
        data = data.get("clips", data.get("entries"))
    if not isinstance(data, list):
        raise ValueError(f"{path}: must be a list of entries")
    manifest = Manifest()
    for at, row in enumerate(data):
        try:
            # Only rendered clips have a word error rate: one without its source is a row cut off, not a recording.
            if isinstance(row, Mapping) and ("source_sha256" in row or "wer" in row):
                manifest.rendered.append(RenderedEntry.model_validate(row))
            else:
                ClipEntry.model_validate(row)
                manifest.added.append(row)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{path}: [{at}]: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    return manifest


def write_clip(folder: Path, pcm: NDArray[np.int16]) -> str:
    """Write <sha256>.flac into the folder; returns the SHA-256."""
    content = flac_bytes(pcm)
    sha256 = hashlib.sha256(content).hexdigest()
    path = folder / f"{sha256}.flac"
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(content)
    os.replace(temporary, path)
    return sha256


def write_manifest(
    folder: Path,
    entries: Iterable[RenderedEntry],
    added: Iterable[Mapping[str, Any]] = (),
    *,
    ours: Iterable[str] = (),
) -> list[Path]:
    """Write the manifest, sorted by item and variant; remove files of `ours` that no entry names, and return them.

    `ours` are the SHA-256 of files known to be rendered. Others stay: after a manifest was lost or cut off, what it
    named may be recordings that cannot be made again.
    """
    rows: list[dict[str, Any]] = [dict(row) for row in added]
    for entry in entries:
        row = entry.model_dump(mode="json")
        row["gates"] = {name: kept.model_dump(mode="json", exclude_none=True) for name, kept in entry.gates.items()}
        if entry.ruling is None:
            del row["ruling"]
        rows.append(row)
    rows.sort(key=lambda row: (row["item_id"], row["variant_id"], row.get("turn", 1)))
    temporary = folder / "manifest.tmp"
    temporary.write_text(_HEADING + yaml.safe_dump(rows, sort_keys=False, width=120), encoding="utf-8")
    os.replace(temporary, folder / "manifest.yaml")
    named = {f"{row['sha256'].lower()}.flac" for row in rows}
    stale = [path for path in (folder / f"{sha256}.flac" for sha256 in sorted(ours)) if path.name not in named]
    stale = [path for path in stale if path.exists()]
    for path in stale:
        path.unlink()
    return stale
