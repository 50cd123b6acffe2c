"""What else is audible in a clip, or what is done to the caller's line: scenes laid over a clean stem.

Pure functions of samples, word times and a seed. `snr_db` everywhere is the caller's speech level over the scene's
level, both RMS while they sound; for slot noise the speech level is that of the slot's words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rig.bank.rendering import sounds
from rig.bank.rendering.levels import (
    RATE_HZ,
    Samples,
    db_to_gain,
    limited,
    rms_dbfs,
    speech_rms_dbfs,
    window_levels_db,
)
from rig.bank.rendering.surroundings import SOUNDS

SLOT_MARGIN_S = 0.04
SHORTEST_SOUND_S = 1.5
HESITATION_S = 1.1
SILENCE_S = 2.5
NOISES: dict[str, Callable[[float, np.random.Generator], Samples]] = {
    "white_noise": sounds.white_noise,
    "radio_squelch": sounds.radio_squelch,
}


@dataclass(frozen=True, slots=True)
class Mix:
    """A clip with its scene, and what was added, alone, at the same length."""

    samples: Samples
    added: Samples


def mixed(stem: Samples, sound: Samples, snr_db: float, start_s: float) -> Mix:
    """The sound added to the stem from `start_s` on; the clip grows where the sound outlasts it.

    The sound's level is taken where it sounds (its RMS over windows within 30 dB of its loudest).
    """
    gain = db_to_gain(speech_rms_dbfs(stem) - snr_db - speech_rms_dbfs(sound))
    return _added(stem, sound * gain, start_s)


def _added(stem: Samples, sound: Samples, start_s: float) -> Mix:
    start = round(start_s * RATE_HZ)
    size = max(stem.size, start + sound.size)
    added = np.zeros(size)
    added[start : start + sound.size] = sound
    return Mix(limited(np.pad(stem, (0, size - stem.size)) + added), added)


def with_sound(stem: Samples, name: str, snr_db: float, start_s: float, rng: np.random.Generator) -> Mix:
    """A sound of the surroundings (`SOUNDS`) from `start_s` to the end of the clip, at least 1.5 s of it."""
    seconds = max(SHORTEST_SOUND_S, stem.size / RATE_HZ - start_s)
    return mixed(stem, SOUNDS[name].make(seconds, rng), snr_db, start_s)


def with_dtmf(stem: Samples, digits: str, snr_db: float, start_s: float) -> Mix:
    """Keypad digits from `start_s` on."""
    return mixed(stem, sounds.dtmf(digits), snr_db, start_s)


def with_slot_noise(
    stem: Samples, name: str, span_s: tuple[float, float], snr_db: float, rng: np.random.Generator
) -> Mix:
    """Noise (`NOISES`) over the slot's words and 40 ms either side."""
    start_s = max(0.0, span_s[0] - SLOT_MARGIN_S)
    stop_s = min(stem.size / RATE_HZ, span_s[1] + SLOT_MARGIN_S)
    slot = stem[round(span_s[0] * RATE_HZ) : round(span_s[1] * RATE_HZ)]
    noise = NOISES[name](stop_s - start_s, rng)
    shaped = sounds.gate(noise, [(0.0, stop_s - start_s)])
    return _added(stem, shaped * db_to_gain(rms_dbfs(slot) - snr_db - rms_dbfs(noise)), start_s)


def line_drop_s(stem: Samples, first_word_s: tuple[float, float]) -> float:
    """Where the line drops: at the loudest 30 ms in the second quarter of the slot's first word, at most 0.2 s in.

    In the middle of sound, so that the end is heard as a cut; early enough that the word is not given away.
    """
    start_s, end_s = first_word_s
    length_s = min(end_s - start_s, 0.4)
    levels = window_levels_db(stem)
    low = round((start_s + 0.25 * length_s) * RATE_HZ)
    high = max(low + 1, round((start_s + 0.5 * length_s) * RATE_HZ))
    loudest = low + int(np.argmax(levels[low:high]))
    return (loudest + round(0.015 * RATE_HZ)) / RATE_HZ


def cut_at(stem: Samples, cut_s: float) -> Samples:
    """The stem up to the cut, with no fade and nothing after it."""
    return stem[: round(cut_s * RATE_HZ)].copy()


def halted(stem: Samples, at_s: float, first_word_s: tuple[float, float] | None, pause_s: float) -> Samples:
    """The caller stops before a word, for `pause_s`.

    With `first_word_s`, the word is begun first (up to 60 % and 0.22 s of it), broken off, and then said in full: a
    restart as hesitant speakers make it.
    """
    fade = np.linspace(1.0, 0.0, round(0.015 * RATE_HZ))
    cut = round(at_s * RATE_HZ)
    begun = np.zeros(0)
    if first_word_s is not None:
        length_s = min(0.6 * (first_word_s[1] - first_word_s[0]), 0.22)
        begun = stem[cut : cut + round(length_s * RATE_HZ)].copy()
        begun[-fade.size :] *= fade[-begun.size :]
    before, after = stem[:cut].copy(), stem[cut:].copy()
    size = min(fade.size, before.size)
    if first_word_s is None:
        before[before.size - size :] *= fade[fade.size - size :]
    after[: fade.size] *= fade[::-1][: after.size]
    return np.concatenate((before, begun, np.zeros(round(pause_s * RATE_HZ)), after))


def speech_gap_db(mix: Mix, stem: Samples) -> float:
    """Measured speech level over added level, decibels, each where it sounds."""
    return speech_rms_dbfs(stem) - speech_rms_dbfs(mix.added)
