"""Renders one clip: neutral speech, delivery, scene, channel, and the gates that the result must pass."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rig.bank.models import Item, Scene, Variant
from rig.bank.rendering import scene_clip
from rig.bank.rendering.channels import CHANNELS
from rig.bank.rendering.deliveries import Settings, delivery_of
from rig.bank.rendering.gate import Gate, gate
from rig.bank.rendering.gates import channel_gates, delivery_gates, sample_gates
from rig.bank.rendering.levels import (
    SPEECH_RMS_DBFS,
    Samples,
    as_stored,
    db_to_gain,
    limited,
    speech_end_s,
    speech_rms_dbfs,
    tightened,
    to_pcm16,
    with_speech_level,
)
from rig.bank.rendering.recipes import ItemRecipe, VariantRecipe
from rig.bank.rendering.vocoder import Parts, Spoken, delivered, taken_apart
from rig.bank.rendering.voices import engine_of, synthesise, tract_of
from rig.bank.rendering.words import Recogniser, Word, spoken_words, word_error_rate

WORST_WER = 0.3
SHORTEST_S, LONGEST_S = 1.0, 18.0
FARTHEST_SPEECH_END_S = 0.3
"""Between the end of the last word, as aligned, and the end of speech, as measured by level."""
# Streams of random numbers that a clip draws from its seed, so that none depends on how many another used.
_DELIVERY, _SCENE, _CHANNEL, _SECOND_VOICE = range(4)


@dataclass(slots=True)
class RenderedClip:
    """One clip with what is known of it."""

    pcm: NDArray[np.int16]
    speech_end_s: float
    engine: str
    wer: float
    """Word error rate on the neutral speech."""
    wer_delivered: float | None
    """The same once the delivery is applied; None where the delivery is neutral."""
    reasons: list[str] = field(default_factory=list)
    """Why the clip only suggests its cue; empty where it does not fall short."""
    gates: dict[str, Gate] = field(default_factory=dict)

    @property
    def failed(self) -> list[str]:
        """One line per gate not passed."""
        return [f"{name} {gate}" for name, gate in self.gates.items() if not gate.passed]


@dataclass(frozen=True, slots=True)
class _Neutral:
    """The neutral speech of one text, from which all variants start."""

    samples: Samples
    parts: Parts
    aligned: list[Word]
    wer: float
    end_gap_s: float


class ClipRenderer:
    """Renders the clips of a bank; keeps the neutral speech of each text, since all variants start from it."""

    def __init__(self, recogniser: Recogniser) -> None:
        self._recogniser = recogniser
        self._neutral: dict[tuple[str, str], _Neutral] = {}

    def render(self, item: Item, variant: Variant, recipe: ItemRecipe) -> RenderedClip:
        """The variant's clip, gates passed or not. Raises ValueError or SynthesisError when it cannot be made."""
        return self._rendered(item.id, item.transcript, recipe.spoken, variant, variant.scene, recipe)

    def render_reply(self, item: Item, variant: Variant, recipe: ItemRecipe) -> RenderedClip:
        """The caller's words in a followup: same voice, speaker, emotion and channel, without the scene."""
        if item.followup is None:
            raise ValueError("the item has no followup")
        return self._rendered(item.id, item.followup.reply, recipe.spoken_reply, variant, None, recipe)

    def _rendered(
        self,
        item_id: str,
        text: str,
        spoken_text: str | None,
        variant: Variant,
        scene: Scene | None,
        recipe: ItemRecipe,
    ) -> RenderedClip:
        extra = recipe.variants.get(variant.variant_id, VariantRecipe())
        if variant.channel is not None and variant.channel not in CHANNELS:
            known = ", ".join(sorted(CHANNELS))
            raise ValueError(f"channel {variant.channel!r} cannot be rendered; known: {known}")
        delivery = delivery_of(extra.delivery or variant.emotion, variant.intensity, variant.speaker)
        words = spoken_words(text)
        neutral = self._neutral_speech(item_id, text, spoken_text, recipe)
        spoken = self._delivered(neutral, delivery.settings, recipe)
        clip = RenderedClip(
            np.zeros(0, np.int16),
            speech_end_s(spoken.samples),
            engine_of(recipe.voice),
            neutral.wer,
            None if delivery.settings.is_plain else word_error_rate(words, self._recogniser.heard(spoken.samples)),
            [reason for reason in (delivery.reason, extra.approximate) if reason],
        )
        clip.gates["wer"] = gate(neutral.wer, at_most=WORST_WER)
        clip.gates["speech_end_gap_s"] = gate(neutral.end_gap_s, at_most=FARTHEST_SPEECH_END_S)
        clip.gates.update(delivery_gates(neutral.samples, spoken, delivery.settings))
        samples = spoken.samples
        seed = recipe.seed if scene is None or scene.seed is None else scene.seed
        if scene is not None:
            staged = scene_clip.Staged(
                spoken.samples,
                [Word(word.text, *spoken.span_s((word.start_s, word.end_s))) for word in neutral.aligned],
                clip.speech_end_s,
            )
            second = self._second_voice(scene, recipe, extra, seed) if scene_clip.has_second_voice(scene) else None
            rng = np.random.default_rng([seed, _SCENE])
            result = scene_clip.with_scene(staged, scene, second, self._recogniser, rng)
            samples, clip.speech_end_s = result.samples, result.speech_end_s
            clip.gates.update(result.gates)
            clip.reasons += result.reasons
        clip.gates.update(sample_gates(samples, SHORTEST_S, LONGEST_S))
        if variant.channel is not None:
            # The item's seed, so that a network loses the same packets for all its variants.
            carried = CHANNELS[variant.channel].carry(samples, np.random.default_rng([recipe.seed, _CHANNEL]))
            clip.gates.update(channel_gates(variant.channel, samples, carried))
            samples = limited(carried)
        clip.pcm = to_pcm16(samples)
        return clip

    def _neutral_speech(self, item_id: str, text: str, spoken_text: str | None, recipe: ItemRecipe) -> _Neutral:
        if (item_id, text) not in self._neutral:
            words = spoken_words(text)
            if spoken_text is not None and spoken_words(spoken_text) != words:
                raise ValueError("recipes.yaml: `spoken` has other words than the transcript")
            if missing := self._recogniser.unknown(words):
                raise ValueError(f"lexicon.txt: add `word PHONES` for {', '.join(missing)}")
            stem = as_stored(tightened(with_speech_level(synthesise(recipe.voice, spoken_text or text, recipe.seed))))
            aligned = self._recogniser.aligned(stem, words)
            parts = taken_apart(stem)
            plain = _at_level(delivered(parts, Settings(), [], np.random.default_rng(0)), 0.0)
            wer = word_error_rate(words, self._recogniser.heard(plain.samples))
            end_gap_s = abs(speech_end_s(plain.samples) - aligned[-1].end_s)
            self._neutral[item_id, text] = _Neutral(plain.samples, parts, aligned, wer, end_gap_s)
        return self._neutral[item_id, text]

    def _delivered(self, neutral: _Neutral, settings: Settings, recipe: ItemRecipe) -> Spoken:
        spans_s = [(word.start_s, word.end_s) for word in neutral.aligned]
        rng = np.random.default_rng([recipe.seed, _DELIVERY])
        return _at_level(delivered(neutral.parts, settings, spans_s, rng, tract_of(recipe.voice)), settings.level_db)

    def _second_voice(
        self, scene: Scene, recipe: ItemRecipe, extra: VariantRecipe, seed: int
    ) -> scene_clip.SecondVoice:
        """What another person says in the scene, at speech level, and how well it is understood."""
        # A stage direction in brackets at the beginning is for actors, not for the synthesiser.
        text = re.sub(r"^\s*\([^)]*\)\s*", "", scene.text or "")
        words = spoken_words(text)
        if not words:
            raise ValueError("scene.text is empty: the second voice has nothing to say")
        voice = extra.second_voice or ("hibari@0.80" if recipe.voice.startswith("flite") else "flite:rms")
        delivery = delivery_of(scene.emotion or "neutral", scene.intensity, scene.speaker)
        stem = as_stored(tightened(with_speech_level(synthesise(voice, text, seed))))
        wer = word_error_rate(words, self._recogniser.heard(stem))
        rng = np.random.default_rng([seed, _SECOND_VOICE])
        spoken = _at_level(delivered(taken_apart(stem), delivery.settings, [], rng, tract_of(voice)), 0.0)
        heard = np.flatnonzero(spoken.samples)
        reasons = ["the second voice is a synthesiser's, not acted", *([delivery.reason] if delivery.reason else [])]
        # Without the silence around it, so that a scene's start is where it is first heard.
        return scene_clip.SecondVoice(spoken.samples[heard[0] : heard[-1] + 1], wer, reasons)


def _at_level(spoken: Spoken, level_db: float) -> Spoken:
    """At the level of speech plus `level_db`, limited, as a reader of 16-bit samples gets it."""
    gain = db_to_gain(SPEECH_RMS_DBFS + level_db - speech_rms_dbfs(spoken.samples))
    return Spoken(as_stored(limited(spoken.samples * gain)), spoken.source_frames)
