"""A scene laid over the caller's speech, or done to it, with the gates that show it is there and where it is not.

Which sounds there are is `surroundings` and `sounds`; how they are mixed is `scenes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rig.bank.models import Scene
from rig.bank.rendering import measures, scenes, similarity
from rig.bank.rendering.gate import Gate, gate
from rig.bank.rendering.levels import RATE_HZ, SPEECH_RMS_DBFS, Samples, rms_dbfs, speech_end_s
from rig.bank.rendering.surroundings import SOUNDS
from rig.bank.rendering.words import Recogniser, Word, slot_span_s, spoken_words

_DEFAULT_SNR_DB = 12.0
_DEFAULT_START_S = 0.5
LEAST_OUTSIDE = 0.9
LEAST_AUDIBLE = 0.15
WORST_SECOND_WER = 0.5
_SHORTEST_PART_S = 0.3


@dataclass(frozen=True, slots=True)
class Staged:
    """The caller's speech with what is known of it."""

    samples: Samples
    words: list[Word]
    speech_end_s: float

    @property
    def texts(self) -> list[str]:
        """The words in order."""
        return [word.text for word in self.words]


@dataclass(frozen=True, slots=True)
class SecondVoice:
    """Another person's words at speech level, without silence around them."""

    samples: Samples
    wer: float
    reasons: list[str]


@dataclass(slots=True)
class SceneClip:
    """The result: samples, where the caller ends, gates, and why it only suggests its cue."""

    samples: Samples
    speech_end_s: float
    gates: dict[str, Gate] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)


def has_second_voice(scene: Scene) -> bool:
    """True where the scene's sound is another person speaking."""
    return scene.kind == "background" and (scene.asset or "").startswith("tts:")


def with_scene(
    staged: Staged, scene: Scene, second: SecondVoice | None, recogniser: Recogniser, rng: np.random.Generator
) -> SceneClip:
    """The speech in the scene. Raises ValueError for a scene or asset that cannot be rendered, or a slot not said."""
    source, _, name = (scene.asset or "").partition(":")
    if second is not None:
        return _overlaid(staged, scene, scenes.mixed(staged.samples, second.samples, *_place(scene)), second)
    if source == "synth" and scene.kind in ("background", "dtmf"):
        return _sounding(staged, scene, name, rng)
    if source == "synth" and scene.kind == "slot_noise" and name in scenes.NOISES:
        return _masked(staged, scene, name, recogniser, rng)
    if scene.kind == "truncation" and scene.asset == "synth:line_drop":
        return _dropped(staged, scene, recogniser)
    if (scene.kind, scene.asset) in (("disfluency", "synth:hesitation"), ("silence", "synth:silence")):
        return _halted(staged, scene)
    raise ValueError(f"scene {scene.kind} with asset {scene.asset!r} cannot be rendered; known: {_known()}")


def _known() -> str:
    background = ", ".join(f"synth:{name}" for name in sorted(SOUNDS))
    return (
        f"background with {background}, synth:dtmf:<digits> or tts:second_voice; slot_noise with "
        f"{', '.join(f'synth:{name}' for name in sorted(scenes.NOISES))}; truncation with synth:line_drop; disfluency "
        "with synth:hesitation; silence with synth:silence"
    )


def _place(scene: Scene) -> tuple[float, float]:
    """Level below the speech in dB, and start in seconds."""
    snr_db = _DEFAULT_SNR_DB if scene.snr_db is None else scene.snr_db
    return snr_db, _DEFAULT_START_S if scene.start_s is None else scene.start_s


def _sounding(staged: Staged, scene: Scene, name: str, rng: np.random.Generator) -> SceneClip:
    stem = staged.samples
    snr_db, start_s = _place(scene)
    for prefix in ("dtmf:", "keypad:"):
        if name.startswith(prefix):
            digits = name.removeprefix(prefix)
            result = _overlaid(staged, scene, scenes.with_dtmf(stem, digits, snr_db, start_s), None)
            decoded = measures.keypad_digits(result.samples, start_s, len(digits))
            right = sum(heard == sent for heard, sent in zip(decoded, digits, strict=True)) / len(digits)
            result.gates["digits_decoded"] = gate(right, at_least=0.9)
            return result
    if name not in SOUNDS:
        raise ValueError(f"scene asset {scene.asset!r} cannot be rendered; known: {_known()}")
    mix = scenes.with_sound(stem, name, snr_db, start_s, rng)
    result = _overlaid(staged, scene, mix, None)
    tone_hz, reason = SOUNDS[name].tone_hz, SOUNDS[name].reason
    if tone_hz is not None:
        sounding = mix.added != 0
        padded = np.pad(stem, (0, mix.samples.size - stem.size))
        rise_db = measures.tone_rise_db(mix.samples * sounding, padded * sounding, tone_hz)
        result.gates["tone_rise_db"] = gate(rise_db, at_least=6.0)
    result.reasons += [reason] if reason else []
    return result


def _overlaid(staged: Staged, scene: Scene, mix: scenes.Mix, second: SecondVoice | None) -> SceneClip:
    """A sound added, with its level, its audibility and what it leaves free of the speech."""
    snr_db, _ = _place(scene)
    result = SceneClip(mix.samples, staged.speech_end_s)
    level_db = scenes.speech_gap_db(mix, staged.samples)
    result.gates["scene_snr_db"] = gate(level_db, at_least=snr_db - 1, at_most=snr_db + 1)
    audible = similarity.audible_share(staged.samples, mix.added)
    result.gates["scene_audible_share"] = gate(audible, at_least=LEAST_AUDIBLE)
    if second is not None:
        result.gates["second_voice_wer"] = gate(second.wer, at_most=WORST_SECOND_WER)
        result.reasons += second.reasons
    _same_elsewhere(result, staged, mix)
    return result


def _same_elsewhere(result: SceneClip, staged: Staged, mix: scenes.Mix) -> None:
    alike = similarity.outside_likeness(staged.samples, mix.samples, mix.added)
    result.gates["outside_likeness"] = gate(alike, at_least=LEAST_OUTSIDE)


def _masked(staged: Staged, scene: Scene, noise: str, recogniser: Recogniser, rng: np.random.Generator) -> SceneClip:
    stem = staged.samples
    snr_db, _ = _place(scene)
    span_s = slot_span_s(staged.words, scene.slot or "")
    mix = scenes.with_slot_noise(stem, noise, span_s, snr_db, rng)
    low, high = (round(edge * RATE_HZ) for edge in span_s)
    result = SceneClip(mix.samples, staged.speech_end_s)
    measured_db = rms_dbfs(stem[low:high]) - rms_dbfs(mix.added[low:high])
    result.gates["slot_snr_db"] = gate(measured_db, at_least=snr_db - 1, at_most=snr_db + 1)
    before, after = recogniser.heard(stem), recogniser.heard(mix.samples)
    result.gates["slot_words_heard"] = gate(_share_heard(after, scene), at_most=0.5)
    # Also what is heard on either side alone: a recogniser guesses badly on from noise, which people do not.
    noisy = np.flatnonzero(mix.added)
    for part in (mix.samples[: noisy[0]], mix.samples[noisy[-1] + 1 :]):
        after = after + (recogniser.heard(part) if part.size > _SHORTEST_PART_S * RATE_HZ else [])
    slot = spoken_words(scene.slot or "")
    others = [word for word in staged.texts if word not in slot and word in before]
    kept = sum(word in after for word in others) / max(1, len(others))
    result.gates["other_words_heard"] = gate(kept, at_least=0.6)
    _same_elsewhere(result, staged, mix)
    return result


def _share_heard(heard: list[str], scene: Scene) -> float:
    """Share of the slot's words that the recogniser still finds."""
    wanted = spoken_words(scene.slot or "")
    return sum(word in heard for word in wanted) / len(wanted)


def _dropped(staged: Staged, scene: Scene, recogniser: Recogniser) -> SceneClip:
    start_s, _ = slot_span_s(staged.words, scene.slot or "")
    first = next(word for word in staged.words if word.start_s == start_s)
    cut_s = scenes.line_drop_s(staged.samples, (first.start_s, first.end_s))
    cut = scenes.cut_at(staged.samples, cut_s)
    result = SceneClip(cut, cut_s)
    result.gates["end_level_dbfs"] = gate(measures.end_level_dbfs(cut), at_least=SPEECH_RMS_DBFS - 12)
    result.gates["slot_words_heard"] = gate(_share_heard(recogniser.heard(cut), scene), at_most=0.5)
    return result


def _halted(staged: Staged, scene: Scene) -> SceneClip:
    """A stop before the slot: with a false start for a disfluency, plain for a silence."""
    start_s, _ = slot_span_s(staged.words, scene.slot or "")
    first = next(word for word in staged.words if word.start_s == start_s)
    restart = scene.kind == "disfluency"
    pause_s = scenes.HESITATION_S if restart else scenes.SILENCE_S
    span_s = (first.start_s, first.end_s) if restart else None
    halted = scenes.halted(staged.samples, start_s, span_s, pause_s)
    result = SceneClip(halted, speech_end_s(halted))
    result.gates["longest_silence_s"] = gate(measures.longest_silence_s(halted), at_least=0.85 * pause_s)
    if restart:
        result.reasons.append("a word begun twice and a pause cut from fluent speech, not a spontaneous hesitation")
    return result
