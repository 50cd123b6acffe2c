"""Reads every clip of a run before any connection is made, so that a bad file is named first and costs nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rig.audio.reader import Clip, InputError, read_clip
from rig.audio.resample import resample
from rig.audio.speech_end import speech_end_s
from rig.bank.models import Bank, Item


@dataclass(frozen=True, slots=True)
class PreparedClip:
    """A clip that is ready to be played."""

    clip: Clip = field(repr=False)
    speech_end_s: float
    """End of the caller's own speech, seconds from the start of the clip."""
    speech_end_method: str

    @property
    def pcm_sha256(self) -> str:
        """Of the samples at the clip's own rate."""
        return self.clip.pcm_sha256

    @property
    def source_rate_hz(self) -> int:
        """The clip's own rate."""
        return self.clip.rate_hz

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self.clip.duration_s

    def pcm_at(self, rate_hz: int) -> bytes:
        """PCM16 mono at `rate_hz` (resampled whole, cached)."""
        return resample(self.clip, rate_hz).pcm


def prepare_clips(
    bank: Bank, items: Iterable[Item]
) -> tuple[dict[tuple[str, str], PreparedClip], dict[tuple[str, str], str]]:
    """Clips by (item id, variant id), and input errors by the same key, one line each.

    A variant that the manifest does not name is in neither: the bank simply has no clip of it.
    """
    prepared: dict[tuple[str, str], PreparedClip] = {}
    errors: dict[tuple[str, str], str] = {}
    for item in items:
        for variant in item.variants:
            entry = bank.clip(item, variant)
            if entry is None:
                continue
            key = (item.id, variant.variant_id)
            path = bank.clip_path(entry)
            if path is None:
                errors[key] = (
                    f"clip {entry.sha256[:12]}… of {item.id}/{variant.variant_id} is in the manifest but not in "
                    f"{bank.root / 'audio'}: restore the file or remove the entry"
                )
                continue
            try:
                clip = read_clip(path, sha256=entry.sha256)
            except InputError as error:
                errors[key] = str(error)
                continue
            if entry.speech_end_s is not None and entry.speech_end_s <= clip.duration_s + 0.001:
                end_s, method = entry.speech_end_s, entry.speech_end_method or "manifest"
            elif entry.speech_end_s is not None:
                errors[key] = (
                    f"speech_end_s {entry.speech_end_s:g} of {item.id}/{variant.variant_id} lies after the clip's end "
                    f"({clip.duration_s:.3f} s): correct audio/manifest.yaml"
                )
                continue
            else:
                end_s, method = speech_end_s(clip)
            prepared[key] = PreparedClip(clip, end_s, method)
    return prepared, errors
