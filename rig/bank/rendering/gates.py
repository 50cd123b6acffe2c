"""The gates of a clip: what was measured, the limits it must keep, and so whether the clip may ship.

A delivery's gates ask for a part of every change that its settings ask for, large enough to be heard as one: a pitch
that did not rise, a whisper that is voiced, a tremor that is not there fail. What is measured is `measures` and
`similarity`; words are `clip`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rig.bank.rendering import measures, similarity
from rig.bank.rendering.channels import CHANNELS, PACKET_S, band
from rig.bank.rendering.deliveries import Settings
from rig.bank.rendering.gate import Gate, gate
from rig.bank.rendering.levels import RATE_HZ, SPEECH_RMS_DBFS, Samples, peak_dbfs, rms_dbfs, speech_rms_dbfs
from rig.bank.rendering.vocoder import FRAME_S, Spoken

ARRIVED = 0.4
"""Share of an asked change that must be measured."""
ARRIVED_PARTLY = 0.3
"""The same of what the measure blurs: the ends of phrases, and the level of a tremor."""
LEAST_LIKENESS = 0.5
_LEAST_PITCH_ST = 0.8
_LEAST_RATIO = 0.1
_LEAST_TREMOR_ST, _LEAST_TREMOR_DB = 0.25, 1.0
_LEAST_RISE_ST = 2.0
_LEAST_FORMANTS = 1.04


def _share_of(asked: float, value: float, arrived: float = ARRIVED) -> Gate:
    """`value` must go at least this share of the way from 0 to `asked`, whichever its sign."""
    return gate(value, at_least=arrived * asked) if asked > 0 else gate(value, at_most=arrived * asked)


def delivery_gates(neutral: Samples, spoken: Spoken, settings: Settings) -> dict[str, Gate]:
    """The gates of a delivery against its neutral sibling; only level for the neutral one itself."""
    gates = {
        "level_dbfs": gate(
            speech_rms_dbfs(spoken.samples),
            at_least=SPEECH_RMS_DBFS + settings.level_db - 2,
            at_most=SPEECH_RMS_DBFS + settings.level_db + 2,
        )
    }
    if settings.is_plain:
        return gates
    gates.update(_timing(neutral, spoken, settings))
    if settings.whisper >= 0.5:
        gates["voiced_share"] = gate(measures.pitch_track(spoken.samples).voiced_share, at_most=0.15)
    else:
        gates.update(_voice(neutral, spoken, settings))
    if settings.smoothing_s:
        ratio = similarity.motion_ratio(neutral, spoken.samples, spoken.source_frames)
        gates["articulation_ratio"] = gate(ratio, at_most=0.9)
    alike = similarity.likeness(neutral, spoken.samples, spoken.source_frames)
    gates["likeness"] = gate(alike, at_least=LEAST_LIKENESS)
    return gates


def _timing(neutral: Samples, spoken: Spoken, settings: Settings) -> Iterator[tuple[str, Gate]]:
    inserted = _per_sample(spoken.source_frames < 0, spoken.samples.size)
    asked = math.log(settings.rate)
    if abs(asked) >= math.log1p(_LEAST_RATIO / 2):
        ratio = measures.audible_s(neutral) / measures.audible_s(spoken.samples, ~inserted)
        limit = math.exp(ARRIVED * asked)
        yield "rate_ratio", gate(ratio, at_least=limit if asked > 0 else None, at_most=limit if asked < 0 else None)
    if settings.pauses and settings.pause_s and settings.gasp_db is None:
        added_s = measures.inner_silence_s(spoken.samples) - measures.inner_silence_s(neutral)
        yield "pauses_s", gate(added_s, at_least=0.6 * float(np.sum(spoken.source_frames < 0)) * FRAME_S)
    if settings.gasp_db is not None:
        level_db = rms_dbfs(spoken.samples[inserted]) - speech_rms_dbfs(spoken.samples[~inserted])
        yield "breaths_db", gate(level_db, at_least=settings.gasp_db - 8, at_most=settings.gasp_db + 4)


def _voice(neutral: Samples, spoken: Spoken, settings: Settings) -> Iterator[tuple[str, Gate]]:
    before, after = measures.pitch_track(neutral), measures.pitch_track(spoken.samples)
    pairs = measures.pitch_pairs(before, after, spoken.source_s)
    median_hz = float(np.median(before.voiced_hz))
    asked_st = settings.pitch_st + 12 * math.log2((settings.pitch_hz or median_hz) / median_hz)
    if abs(asked_st) >= _LEAST_PITCH_ST:
        yield "pitch_change_st", _share_of(asked_st, pairs.change_st(settings.pitch_range))
    if abs(settings.pitch_range - 1) >= 2 * _LEAST_RATIO:
        limit = 1 + ARRIVED * (settings.pitch_range - 1)
        wider = settings.pitch_range > 1
        ratio = pairs.range_ratio
        yield "pitch_range_ratio", gate(ratio, at_least=limit if wider else None, at_most=None if wider else limit)
    rest_st = pairs.left_over_st(settings.pitch_range)
    if settings.final_st >= _LEAST_RISE_ST:
        # Rises only: a voice that falls ends in creak, which has no pitch to measure.
        end_st = float(np.median(rest_st[pairs.phrase_end]))
        yield "phrase_end_st", _share_of(settings.final_st, end_st, ARRIVED_PARTLY)
    if settings.tremor_st >= _LEAST_TREMOR_ST:
        yield "tremor_st", _share_of(settings.tremor_st, measures.swing(pairs.times_s, rest_st, settings.tremor_hz))
    if settings.tremor_db >= _LEAST_TREMOR_DB:
        level_db = measures.level_swing_db(neutral, spoken.samples, spoken.source_s, settings.tremor_hz)
        yield "tremor_db", _share_of(settings.tremor_db, level_db, ARRIVED_PARTLY)
    if settings.tract is not None:
        yield "formant_ratio", gate(similarity.formant_ratio(neutral, spoken.samples), at_least=_LEAST_FORMANTS)


def sample_gates(samples: Samples, shortest_s: float, longest_s: float) -> dict[str, Gate]:
    """The gates of any finished clip: duration, peak, no flattened tops."""
    return {
        "duration_s": gate(samples.size / RATE_HZ, at_least=shortest_s, at_most=longest_s),
        "peak_dbfs": gate(peak_dbfs(samples), at_most=-1.0),
        "clipped_runs": gate(measures.clipped_runs(samples), at_most=0),
    }


def _per_sample(frames: np.ndarray, size: int) -> np.ndarray:
    repeated = np.repeat(frames, round(FRAME_S * RATE_HZ))
    return np.pad(repeated, (0, max(0, size - repeated.size)))[:size]


def channel_gates(name: str, before: Samples, after: Samples) -> dict[str, Gate]:
    """The gates of a channel: nothing left above its band, the level kept, packets lost where it loses them."""
    gates = {
        "above_band_db": gate(measures.above_db(after, CHANNELS[name].upper_hz), at_most=-30.0),
        "channel_level_db": gate(speech_rms_dbfs(after) - speech_rms_dbfs(before), at_least=-4.0, at_most=4.0),
    }
    if name == "packet_loss":
        gates["lost_share"] = gate(lost_share(before, after), at_least=0.01, at_most=0.25)
    return gates


def lost_share(before: Samples, after: Samples) -> float:
    """Share of the packets that are audible before the network and come out as something else."""
    size = round(PACKET_S * RATE_HZ)
    count = before.size // size
    sent, got = (part[: count * size].reshape(count, size) for part in (band(before, 0.0, 3400.0), after))
    loud = np.sqrt(np.mean(np.square(sent), axis=1)) > 10 ** (-45 / 20)
    likeness = np.sum(sent * got, axis=1) / (np.linalg.norm(sent, axis=1) * np.linalg.norm(got, axis=1) + 1e-9)
    return float(np.mean(likeness[loud] < 0.7)) if loud.any() else 0.0
