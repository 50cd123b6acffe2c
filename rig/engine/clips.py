"""Reads every clip of a run before any connection is made, so that a bad file is named first and costs nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rig.audio.reader import Clip, InputError, read_clip
from rig.audio.resample import resample
from rig.audio.speech_end import speech_end_s
from rig.bank.models import Bank, ClipEntry, Item

DITHER_STEPS = 2
"""A clip whose samples span no more steps of 16 bits than this holds silence, if with an offset or dither."""


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


ClipKey = tuple[str, str, int]
"""Item id, variant id, and turn: 2 for the caller's reply in a followup."""


def prepare_clips(bank: Bank, items: Iterable[Item]) -> tuple[dict[ClipKey, PreparedClip], dict[ClipKey, str]]:
    """Clips and input errors (one line each) by item, variant and turn.

    A variant that the manifest does not name is in neither: the bank simply has no clip of it.
    """
    prepared: dict[ClipKey, PreparedClip] = {}
    errors: dict[ClipKey, str] = {}
    for item in items:
        for variant in item.variants:
            reply = bank.reply_clip(item, variant) if item.followup else None
            for turn, entry in ((1, bank.clip(item, variant)), (2, reply)):
                if entry is None:
                    continue
                key = (item.id, variant.variant_id, turn)
                found = _prepared(bank, entry)
                if isinstance(found, str):
                    errors[key] = found
                else:
                    prepared[key] = found
    return prepared, errors


def _prepared(bank: Bank, entry: ClipEntry) -> PreparedClip | str:
    """The clip of an entry, or what is wrong with it."""
    name = f"{entry.item_id}/{entry.variant_id}" + (" (turn 2)" if entry.turn == 2 else "")
    path = bank.clip_path(entry)
    if path is None:
        return (
            f"clip {entry.sha256[:12]}… of {name} is in the manifest but not in "
            f"{bank.root / 'audio'}: restore the file or remove the entry"
        )
    try:
        clip = read_clip(path, sha256=entry.sha256)
    except InputError as error:
        return f"clip of {name}: {error}"
    if entry.pcm_sha256 is not None and entry.pcm_sha256.lower() != clip.pcm_sha256:
        return f"pcm_sha256 of {name} is not that of {path}'s samples: restore the file or correct audio/manifest.yaml"
    if int(clip.samples.max()) - int(clip.samples.min()) <= DITHER_STEPS:
        return f"clip of {name} holds no sound: {path}: record it again or leave the variant out"
    if entry.speech_end_s is None:
        return PreparedClip(clip, *speech_end_s(clip))
    if entry.speech_end_s > clip.duration_s + 0.001:
        return (
            f"speech_end_s {entry.speech_end_s:g} of {name} lies after the clip's end "
            f"({clip.duration_s:.3f} s): correct audio/manifest.yaml"
        )
    return PreparedClip(clip, entry.speech_end_s, entry.speech_end_method or "manifest")
