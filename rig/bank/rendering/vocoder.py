"""Speech taken apart into pitch, spectral envelope and aperiodicity, changed, and put together again (WORLD).

WORLD: M. Morise, F. Yokomori, K. Ozawa, "WORLD: a vocoder-based high-quality speech synthesis system for real-time
applications", 2016, through pyworld. Every clip passes through it, the neutral ones too, so that the vocoder's sound is
no cue. Which changes belong to which emotion is `deliveries.yaml`. Pure functions of samples and a seeded generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyworld
from numpy.typing import NDArray

from rig.bank.rendering.deliveries import Settings
from rig.bank.rendering.levels import RATE_HZ, Samples, audible, db_to_gain

FRAME_S = 0.005
LOWEST_PITCH_HZ, HIGHEST_PITCH_HZ = 60.0, 600.0
_SILENCE_POWER = 1e-12
_FINAL_S = 0.35
_PHRASE_GAP_S = 0.12
_GASP_BAND_HZ = (500.0, 5000.0)
_FLAT_BELOW_HZ = 500.0
_WHISPER_FULL_HZ = 900.0
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Parts:
    """Speech in frames of 5 ms."""

    pitch_hz: Samples
    """0 where unvoiced."""
    envelope: Samples
    """Power spectrum, frames × bins."""
    aperiodicity: Samples
    """Share of noise in each bin, 0 to 1, frames × bins."""
    audible: Bools
    """False where the source is silent."""

    @property
    def median_pitch_hz(self) -> float:
        """Over voiced frames; raises ValueError where there is none."""
        voiced = self.pitch_hz[self.pitch_hz > 0]
        if not voiced.size:
            raise ValueError("nothing voiced in the neutral voice")
        return float(np.median(voiced))


@dataclass(frozen=True, slots=True)
class Spoken:
    """What the vocoder made."""

    samples: Samples
    source_frames: Samples
    """For each 5 ms of the result: the source frame that it comes from, -1 in an inserted pause."""

    def source_s(self, times_s: Samples) -> Samples:
        """The source's time of each time here, seconds; -1 in an inserted pause."""
        at = np.clip(np.round(times_s / FRAME_S).astype(int), 0, self.source_frames.size - 1)
        return np.where(self.source_frames[at] < 0, -1.0, self.source_frames[at] * FRAME_S)

    def span_s(self, source_span_s: tuple[float, float]) -> tuple[float, float]:
        """Where a span of the source is heard now, seconds."""
        start, stop = (_edge(edge_s) for edge_s in source_span_s)
        inside = np.flatnonzero((self.source_frames >= start) & (self.source_frames < stop))
        if not inside.size:
            raise ValueError("the span is not in the speech")
        return float(inside[0]) * FRAME_S, float(inside[-1] + 1) * FRAME_S


def taken_apart(stem: Samples) -> Parts:
    """The parts of a clean stem at `RATE_HZ`."""
    pitch_hz, times_s = pyworld.harvest(
        stem, RATE_HZ, f0_floor=LOWEST_PITCH_HZ, f0_ceil=HIGHEST_PITCH_HZ, frame_period=FRAME_S * 1000
    )
    envelope = pyworld.cheaptrick(stem, pitch_hz, times_s, RATE_HZ)
    aperiodicity = pyworld.d4c(stem, pitch_hz, times_s, RATE_HZ)
    at = np.minimum(np.round(times_s * RATE_HZ).astype(int), stem.size - 1)
    heard = audible(stem)[at]
    return Parts(np.where(heard, pitch_hz, 0.0), envelope, aperiodicity, heard)


def delivered(
    parts: Parts,
    settings: Settings,
    word_spans_s: Sequence[tuple[float, float]],
    rng: np.random.Generator,
    tract: float = 1.0,
) -> Spoken:
    """The speech as the settings say. `tract` is the voice's own vocal-tract scale (1: an adult woman's).

    Pauses go between words (`word_spans_s`), their places drawn from `rng`.
    """
    source = _source_frames(parts, settings, word_spans_s, rng)
    moved = _at(parts, source)
    pitch_hz = _pitch_hz(moved, parts.median_pitch_hz, settings, rng)
    envelope, aperiodicity = _colour(moved, settings, tract)
    times_s = np.arange(source.size, dtype=np.float64) * FRAME_S
    if settings.tremor_db:
        # Level follows pitch, as in a trembling voice.
        envelope *= 10.0 ** (settings.tremor_db * np.sin(_tremor_phase(times_s, settings)) / 10.0)[:, None]
    if settings.whisper:
        pitch_hz = np.where(settings.whisper >= 0.5, 0.0, pitch_hz)
    samples = pyworld.synthesize(
        pitch_hz, np.ascontiguousarray(envelope), np.ascontiguousarray(aperiodicity), RATE_HZ, FRAME_S * 1000
    )
    samples = np.asarray(samples)[: round(source.size * FRAME_S * RATE_HZ)] * _heard_gain(moved.audible)
    if settings.gasp_db is not None:
        samples = samples + _gasps(source, samples, settings.gasp_db, rng)
    return Spoken(samples, source)


def _source_frames(
    parts: Parts, settings: Settings, word_spans_s: Sequence[tuple[float, float]], rng: np.random.Generator
) -> Samples:
    """Which source frame is heard at each frame of the result; -1 in inserted pauses."""
    count = parts.pitch_hz.size
    lengths = np.full(count, 1.0)
    lengths[parts.audible] = 1.0 / settings.rate
    lengths[parts.pitch_hz > 0] *= settings.drawl
    if settings.unevenness:
        # Knots every 0.25 s: the pace wanders from syllable to syllable, not within a sound.
        knots = rng.standard_normal(count // 50 + 2) * settings.unevenness
        lengths *= np.exp(np.interp(np.arange(count) / 50, np.arange(knots.size), knots))
    breaks = _breaks(word_spans_s, settings.pauses, rng)
    for word in breaks:
        start, stop = (round(edge / FRAME_S) for edge in word_spans_s[word])
        # The second half of the word is held: its last vowel, more or less.
        lengths[(start + stop) // 2 : stop] *= 1.0 + 2.0 * (settings.hold - 1.0)
    ends = np.cumsum(lengths)
    frames = np.interp(np.arange(round(ends[-1])) + 0.5, np.concatenate(([0.0], ends)), np.arange(count + 1)) - 0.5
    frames = np.clip(frames, 0, count - 1)
    pause = round(settings.pause_s / FRAME_S)
    places = np.searchsorted(frames, [_edge(word_spans_s[word][1]) for word in breaks])
    return np.insert(frames, np.repeat(places, pause), -1.0)


def _edge(seconds: float) -> float:
    """Between the last source frame before a time and the first one from it on."""
    return round(seconds / FRAME_S) - 0.5


def _breaks(word_spans_s: Sequence[tuple[float, float]], per_ten: float, rng: np.random.Generator) -> list[int]:
    """The words after which a pause is inserted: spread evenly, moved by chance, at least one where any is asked."""
    candidates = len(word_spans_s) - 1
    count = min(candidates, max(1, round(per_ten * len(word_spans_s) / 10))) if per_ten and candidates > 0 else 0
    edges = np.linspace(0, candidates, count + 1)
    return sorted({int(rng.integers(int(low), max(int(low) + 1, int(high)))) for low, high in pairwise(edges)})


def _at(parts: Parts, source: Samples) -> Parts:
    """The parts at fractional source frames; silence where the source frame is -1."""
    inserted = source < 0
    place = np.maximum(source, 0.0)
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, parts.pitch_hz.size - 1)
    share = place - low
    nearest = np.round(place).astype(int)
    both = (parts.pitch_hz[low] > 0) & (parts.pitch_hz[high] > 0)
    between = parts.pitch_hz[low] * (1 - share) + parts.pitch_hz[high] * share
    pitch_hz = np.where(both, between, parts.pitch_hz[nearest])
    logs = np.log(np.maximum(parts.envelope, _SILENCE_POWER))
    envelope = np.exp(logs[low] * (1 - share)[:, None] + logs[high] * share[:, None])
    aperiodicity = parts.aperiodicity[low] * (1 - share)[:, None] + parts.aperiodicity[high] * share[:, None]
    envelope[inserted] = _SILENCE_POWER
    aperiodicity[inserted] = 1.0
    return Parts(np.where(inserted, 0.0, pitch_hz), envelope, aperiodicity, parts.audible[nearest] & ~inserted)


def _pitch_hz(parts: Parts, median_hz: float, settings: Settings, rng: np.random.Generator) -> Samples:
    voiced = parts.pitch_hz > 0
    offset_st = 12.0 * np.log2(np.where(voiced, parts.pitch_hz, median_hz) / median_hz)
    target_hz = settings.pitch_hz or median_hz
    pitch_st = 12.0 * np.log2(target_hz) + settings.pitch_st + offset_st * settings.pitch_range
    times_s = np.arange(voiced.size, dtype=np.float64) * FRAME_S
    pitch_st += settings.tremor_st * np.sin(_tremor_phase(times_s, settings))
    pitch_st += settings.jitter_st * rng.standard_normal(voiced.size)
    for start, stop in _phrases(parts.audible):
        # Up to the last voiced sound: an unvoiced consonant at the end has no pitch to move.
        stop = start + int(np.flatnonzero(voiced[start:stop]).max(initial=-1)) + 1
        length = min(round(_FINAL_S / FRAME_S), stop - start)
        pitch_st[stop - length : stop] += settings.final_st * np.linspace(0.0, 1.0, length)
    pitch_hz = 2.0 ** (pitch_st / 12.0)
    return np.where(voiced, np.clip(pitch_hz, LOWEST_PITCH_HZ * 0.8, HIGHEST_PITCH_HZ * 1.2), 0.0)


def _tremor_phase(times_s: Samples, settings: Settings) -> Samples:
    return 2.0 * np.pi * settings.tremor_hz * times_s


def _phrases(heard: Bools) -> list[tuple[int, int]]:
    """Stretches of frames with no silence of `_PHRASE_GAP_S` or more inside."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], heard, [False])).astype(np.int8))).reshape(-1, 2)
    phrases: list[tuple[int, int]] = []
    for start, stop in edges:
        if phrases and start - phrases[-1][1] < _PHRASE_GAP_S / FRAME_S:
            phrases[-1] = (phrases[-1][0], int(stop))
        else:
            phrases.append((int(start), int(stop)))
    return phrases


def _colour(parts: Parts, settings: Settings, tract: float) -> tuple[Samples, Samples]:
    """Envelope and aperiodicity with formants moved, articulation blurred, and tilt, breath and whisper applied."""
    logs = np.log(np.maximum(parts.envelope, _SILENCE_POWER))
    aperiodicity = parts.aperiodicity
    bins = np.arange(logs.shape[1], dtype=np.float64)
    frequencies_hz = bins * RATE_HZ / 2 / (bins.size - 1)
    scale = settings.formants * (settings.tract / tract if settings.tract else 1.0)
    if scale != 1.0:
        logs = _stretched_bins(logs, scale)
        aperiodicity = _stretched_bins(aperiodicity, scale)
    if settings.smoothing_s:
        logs = _smoothed(logs, settings.smoothing_s, parts.audible)
    octaves = np.log2(np.maximum(frequencies_hz, _FLAT_BELOW_HZ) / _FLAT_BELOW_HZ)
    gain_db = settings.tilt_db * octaves
    if settings.whisper:
        # A whisper has hardly any energy at the first harmonics: up to 15 dB less, more of it at high frequencies.
        gain_db = gain_db + 15.0 * settings.whisper * np.minimum(
            0.0, np.log2((frequencies_hz + 80.0) / _WHISPER_FULL_HZ) / 3
        )
    envelope = np.exp(logs) * 10.0 ** (gain_db / 10.0)
    # Breath is heard from the second formant on; below, the voice keeps most of its harmonics.
    breath = settings.breathiness * np.clip(0.3 + frequencies_hz / 2500.0, 0.0, 1.0)
    aperiodicity = aperiodicity + (1.0 - aperiodicity) * np.maximum(breath, settings.whisper)
    return envelope, np.clip(aperiodicity, 0.001, 1.0)


def _stretched_bins(rows: Samples, scale: float) -> Samples:
    """Each row with its frequency axis stretched by `scale`; the highest bin is repeated where it ends."""
    place = np.minimum(np.arange(rows.shape[1]) / scale, rows.shape[1] - 1)
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, rows.shape[1] - 1)
    share = place - low
    return np.asarray(rows[:, low] * (1 - share) + rows[:, high] * share)


def _smoothed(logs: Samples, seconds: float, heard: Bools) -> Samples:
    """Log spectra averaged over time, within audible stretches only, each frame's own level half kept."""
    reach = max(1, round(seconds / FRAME_S / 2))
    kernel = np.hanning(2 * reach + 3)[1:-1]
    weights = np.convolve(heard.astype(float), kernel, mode="same")
    sums = np.apply_along_axis(np.convolve, 0, logs * heard[:, None], kernel, "same")
    blurred = np.where(heard[:, None], sums / np.maximum(weights, 1e-9)[:, None], logs)
    return np.asarray(0.15 * logs + 0.85 * blurred)


def _heard_gain(heard: Bools) -> Samples:
    """1 where the source was audible, 0 where it was silent, with 10 ms ramps."""
    per_sample = np.repeat(heard.astype(float), round(FRAME_S * RATE_HZ))
    ramp = np.hanning(243)[1:-1]
    return np.convolve(per_sample, ramp / ramp.sum(), mode="same")


def _gasps(source: Samples, speech: Samples, gasp_db: float, rng: np.random.Generator) -> Samples:
    """A breath in each inserted pause: noise about 0.5 to 5 kHz that swells and stops, `gasp_db` against the speech."""
    out = np.zeros(speech.size)
    loud = speech[np.abs(speech) > 0]
    level = float(np.sqrt(np.mean(np.square(loud)))) if loud.size else 0.0
    edges = np.flatnonzero(np.diff(np.concatenate(([False], source < 0, [False])).astype(np.int8))).reshape(-1, 2)
    for start, stop in (edges * round(FRAME_S * RATE_HZ)).tolist():
        margin = (stop - start) // 8
        size = stop - start - 2 * margin
        spectrum = np.fft.rfft(rng.standard_normal(size))
        frequencies_hz = np.fft.rfftfreq(size, 1 / RATE_HZ)
        # A steep start and a slow fall, as air through an open mouth; edges rounded over an octave.
        low, high = (np.maximum(frequencies_hz, 1.0) / edge_hz for edge_hz in _GASP_BAND_HZ)
        shape = 1.0 / np.sqrt((1.0 + low**-6.0) * (1.0 + high**6.0) * (1.0 + frequencies_hz / 1500.0))
        noise = np.fft.irfft(spectrum * shape, size)
        swell = np.sin(np.pi * np.linspace(0.0, 1.0, size) ** 1.5)
        out[start + margin : start + margin + size] = noise / np.std(noise) * swell * level * db_to_gain(gasp_db)
    return out
