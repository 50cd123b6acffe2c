"""Renders one variant: neutral stem, delivery, scene, and the gates that the result must pass."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rig.bank.models import Item, Scene, Variant
from rig.bank.rendering import measures, scenes
from rig.bank.rendering.deliveries import CHILD_PITCH, CHILD_REASON, DELIVERIES, Delivery, processed
from rig.bank.rendering.levels import (
    RATE_HZ,
    SPEECH_RMS_DBFS,
    Samples,
    as_stored,
    db_to_gain,
    limited,
    peak_dbfs,
    rms_dbfs,
    speech_end_s,
    speech_rms_dbfs,
    tightened,
    to_pcm16,
    with_speech_level,
)
from rig.bank.rendering.measures import Gate, gate
from rig.bank.rendering.recipes import ItemRecipe, VariantRecipe
from rig.bank.rendering.stretch import revoiced
from rig.bank.rendering.voices import engine_of, synthesise
from rig.bank.rendering.words import Recogniser, slot_span_s, spoken_words, word_error_rate

WORST_WER = 0.25
SHORTEST_S, LONGEST_S = 1.0, 15.0
_DEFAULT_SNR_DB = 12.0
_DEFAULT_START_S = 0.5


@dataclass(slots=True)
class RenderedClip:
    """One clip with what is known of it."""

    pcm: NDArray[np.int16]
    speech_end_s: float
    engine: str
    wer: float
    """Word error rate on the neutral stem."""
    wer_delivered: float | None
    """The same once the delivery is applied; None where the delivery is neutral."""
    reasons: list[str] = field(default_factory=list)
    """Why the clip only suggests its cue; empty where it does not fall short."""
    gates: dict[str, Gate] = field(default_factory=dict)

    @property
    def failed(self) -> list[str]:
        """One line per gate not passed."""
        return [f"{name} {gate}" for name, gate in self.gates.items() if not gate.passed]


class ClipRenderer:
    """Renders the variants of a bank; keeps each item's neutral stem, since all its variants start from it."""

    def __init__(self, recogniser: Recogniser) -> None:
        self._recogniser = recogniser
        self._stems: dict[str, tuple[Samples, float]] = {}

    def render(self, item: Item, variant: Variant, recipe: ItemRecipe) -> RenderedClip:
        """The variant's clip, gates passed or not. Raises ValueError or SynthesisError when it cannot be made."""
        extra = recipe.variants.get(variant.variant_id, VariantRecipe())
        words = spoken_words(item.transcript)
        neutral, wer = self._neutral(item, recipe, words)
        delivery, reasons = _delivery(variant, extra)
        stem, wer_delivered = neutral, None
        seed = variant.scene.seed if variant.scene and variant.scene.seed is not None else recipe.seed
        rng = np.random.default_rng(seed)
        if delivery != DELIVERIES["neutral"]:
            stem = as_stored(_delivered(neutral, delivery, rng))
            wer_delivered = word_error_rate(words, self._recogniser.heard(stem))
        clip = RenderedClip(
            np.zeros(0, np.int16), speech_end_s(stem), engine_of(recipe.voice), wer, wer_delivered, reasons
        )
        clip.gates["wer"] = gate(wer, at_most=WORST_WER)
        clip.gates.update(_delivery_gates(neutral, stem, delivery))
        samples = stem
        if variant.scene is not None:
            samples = self._with_scene(clip, stem, words, variant.scene, recipe, extra, rng)
        clip.gates["duration_s"] = gate(samples.size / RATE_HZ, at_least=SHORTEST_S, at_most=LONGEST_S)
        clip.gates["peak_dbfs"] = gate(peak_dbfs(samples), at_most=-1.0)
        clip.pcm = to_pcm16(samples)
        return clip

    def _neutral(self, item: Item, recipe: ItemRecipe, words: list[str]) -> tuple[Samples, float]:
        if item.id not in self._stems:
            if recipe.spoken is not None and spoken_words(recipe.spoken) != words:
                raise ValueError("recipes.yaml: `spoken` has other words than the transcript")
            if missing := self._recogniser.unknown(words):
                raise ValueError(f"lexicon.txt: add `word PHONES` for {', '.join(missing)}")
            spoken = synthesise(recipe.voice, recipe.spoken or item.transcript, recipe.seed)
            stem = as_stored(tightened(with_speech_level(spoken)))
            self._stems[item.id] = stem, word_error_rate(words, self._recogniser.heard(stem))
        return self._stems[item.id]

    def _with_scene(
        self,
        clip: RenderedClip,
        stem: Samples,
        words: list[str],
        scene: Scene,
        recipe: ItemRecipe,
        extra: VariantRecipe,
        rng: np.random.Generator,
    ) -> Samples:
        asset = scene.asset or ""
        name = asset.removeprefix("synth:")
        snr_db = _DEFAULT_SNR_DB if scene.snr_db is None else scene.snr_db
        start_s = _DEFAULT_START_S if scene.start_s is None else scene.start_s
        if scene.kind == "truncation" and asset == "synth:line_drop":
            return self._dropped(clip, stem, words, scene)
        if scene.kind == "slot_noise" and name in scenes.NOISES:
            return self._masked(clip, stem, words, scene, name, snr_db, rng)
        if scene.kind in ("background", "dtmf"):
            mix, sound_gates = _background(stem, scene, recipe, extra, snr_db, start_s)
            clip.gates["scene_snr_db"] = gate(scenes.speech_gap_db(mix, stem), at_least=snr_db - 1, at_most=snr_db + 1)
            clip.gates.update(sound_gates)
            if asset.startswith("tts:"):
                clip.reasons.append("the second voice is a synthesiser's neutral reading at a lower level, not acted")
            return mix.samples
        raise ValueError(f"scene {scene.kind} with asset {asset!r} cannot be rendered offline")

    def _masked(
        self,
        clip: RenderedClip,
        stem: Samples,
        words: list[str],
        scene: Scene,
        noise: str,
        snr_db: float,
        rng: np.random.Generator,
    ) -> Samples:
        span_s = slot_span_s(self._recogniser.aligned(stem, words), scene.slot or "")
        mix = scenes.with_slot_noise(stem, noise, span_s, snr_db, rng)
        low, high = (round(edge * RATE_HZ) for edge in span_s)
        measured_db = rms_dbfs(stem[low:high]) - rms_dbfs(mix.added[low:high])
        clip.gates["slot_snr_db"] = gate(measured_db, at_least=snr_db - 1, at_most=snr_db + 1)
        clip.gates["slot_words_heard"] = gate(self._share_heard(mix.samples, scene), at_most=0.5)
        return mix.samples

    def _share_heard(self, samples: Samples, scene: Scene) -> float:
        """Share of the slot's words that the recogniser still finds."""
        heard, wanted = self._recogniser.heard(samples), spoken_words(scene.slot or "")
        return sum(word in heard for word in wanted) / len(wanted)

    def _dropped(self, clip: RenderedClip, stem: Samples, words: list[str], scene: Scene) -> Samples:
        aligned = self._recogniser.aligned(stem, words)
        start_s, _ = slot_span_s(aligned, scene.slot or "")
        first = next(word for word in aligned if word.start_s == start_s)
        cut_s = scenes.line_drop_s(stem, (first.start_s, first.end_s))
        cut = scenes.cut_at(stem, cut_s)
        clip.speech_end_s = cut_s
        clip.gates["end_level_dbfs"] = gate(measures.end_level_dbfs(cut), at_least=SPEECH_RMS_DBFS - 12)
        clip.gates["slot_words_heard"] = gate(self._share_heard(cut, scene), at_most=0.5)
        return cut


def _delivery(variant: Variant, extra: VariantRecipe) -> tuple[Delivery, list[str]]:
    name = extra.delivery or variant.emotion
    if name not in DELIVERIES:
        raise ValueError(f"emotion {name!r} has no delivery; known: {', '.join(sorted(DELIVERIES))}")
    if variant.channel is not None:
        raise ValueError(f"channel {variant.channel!r} cannot be rendered offline")
    delivery = DELIVERIES[name]
    reasons = [reason for reason in (delivery.reason, extra.approximate) if reason]
    if variant.speaker is None:
        return delivery, reasons
    if variant.speaker != "child":
        raise ValueError(f"speaker {variant.speaker!r} cannot be rendered offline; known: child")
    child = Delivery(delivery.rate, delivery.pitch * CHILD_PITCH, delivery.gain_db, delivery.process, CHILD_REASON)
    return child, [*reasons, CHILD_REASON]


def _delivered(neutral: Samples, delivery: Delivery, rng: np.random.Generator) -> Samples:
    plain = tightened(revoiced(neutral, delivery.rate, delivery.pitch))
    changed = processed(plain, delivery, rng)
    return limited(changed * db_to_gain(SPEECH_RMS_DBFS + delivery.gain_db - speech_rms_dbfs(changed)))


def _delivery_gates(neutral: Samples, stem: Samples, delivery: Delivery) -> dict[str, Gate]:
    """At least half of each asked change of rate, level and pitch must be measurable."""
    gates: dict[str, Gate] = {}
    ratio = measures.audible_s(neutral) / measures.audible_s(stem)
    if delivery.rate > 1:
        gates["rate_ratio"] = gate(ratio, at_least=(1 + delivery.rate) / 2)
    elif delivery.rate < 1:
        gates["rate_ratio"] = gate(ratio, at_most=(1 + delivery.rate) / 2)
    if delivery.gain_db:
        change_db = speech_rms_dbfs(stem) - speech_rms_dbfs(neutral)
        near = {"at_least": delivery.gain_db - 2, "at_most": delivery.gain_db + 2}
        gates["level_change_db"] = gate(change_db, **near)
    if delivery.pitch > 1.05:
        pitch = measures.median_pitch_hz(stem) / measures.median_pitch_hz(neutral)
        gates["pitch_ratio"] = gate(pitch, at_least=(1 + delivery.pitch) / 2)
    if delivery is DELIVERIES["whispered"]:
        gates["voiced_share"] = gate(measures.voiced_share(stem), at_most=0.15)
    return gates


def _background(
    stem: Samples, scene: Scene, recipe: ItemRecipe, extra: VariantRecipe, snr_db: float, start_s: float
) -> tuple[scenes.Mix, dict[str, Gate]]:
    source, _, name = (scene.asset or "").partition(":")
    if source == "synth" and name in scenes.TONES:
        mix = scenes.with_tone(stem, name, snr_db, start_s)
        sounding = mix.added != 0
        rise_db = measures.tone_rise_db(mix.samples * sounding, stem * sounding, scenes.TONES[name][1])
        return mix, {"tone_rise_db": gate(rise_db, at_least=6.0)}
    if source == "synth" and name.startswith("dtmf:"):
        digits = name.removeprefix("dtmf:")
        mix = scenes.with_dtmf(stem, digits, snr_db, start_s)
        decoded = measures.keypad_digits(mix.samples, start_s, len(digits))
        right = sum(heard == sent for heard, sent in zip(decoded, digits, strict=True)) / len(digits)
        return mix, {"digits_decoded": gate(right, at_least=0.9)}
    if source == "tts":
        # A stage direction in brackets at the beginning is for actors, not for the synthesiser.
        text = re.sub(r"^\s*\([^)]*\)\s*", "", scene.text or "")
        if not text:
            raise ValueError("scene.text is empty: the second voice has nothing to say")
        voice = extra.second_voice or ("hibari@0.80" if recipe.voice.startswith("flite") else "flite:rms")
        speech = with_speech_level(synthesise(voice, text, scene.seed or recipe.seed))
        return scenes.mixed(stem, _trimmed(tightened(speech)), snr_db, start_s), {}
    raise ValueError(f"scene asset {scene.asset!r} cannot be rendered offline")


def _trimmed(speech: Samples) -> Samples:
    """Without the silence around it, so that a scene's start is where it is first heard."""
    heard = np.flatnonzero(speech)
    return speech[heard[0] : heard[-1] + 1]
