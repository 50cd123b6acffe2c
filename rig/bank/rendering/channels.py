"""What carries the caller's voice: telephone codecs, a radio, a network that loses packets; applied to the whole clip.

A channel is no cue: all variants of an item have the same one. Codecs are FFmpeg's, through PyAV (extra `render`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rig.bank.rendering import sounds
from rig.bank.rendering.levels import RATE_HZ, Samples, db_to_gain, limited, speech_rms_dbfs
from rig.bank.rendering.voices import resampled

PACKET_S = 0.02
LOSS_SHARE = 0.08
_BURST_STAY = 0.5
"""Chance that the packet after a lost one is lost too (Gilbert's model): bursts of two packets on average."""
_REPEAT_GAIN = (0.8, 0.4, 0.0)
"""Of the last packet heard, repeated in place of the first, second and any later lost one (after G.711 Appendix I)."""
RADIO_BAND_HZ = (350.0, 2900.0)
_SQUELCH_S = 0.18


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel, and what it can be told by."""

    carry: Callable[[Samples, np.random.Generator], Samples]
    upper_hz: float
    """Nothing of the voice is left above this."""


def _coded(samples: Samples, codec: str, rate_hz: int) -> Samples:
    """The samples through an FFmpeg codec at its own rate, and back; same number of samples."""
    import av

    narrow = np.clip(np.round(resampled(samples, rate_hz / RATE_HZ) * 32768.0), -32768, 32767).astype(np.int16)
    encoder = av.CodecContext.create(codec, "w")
    assert isinstance(encoder, av.AudioCodecContext)
    encoder.sample_rate, encoder.layout, encoder.format = rate_hz, "mono", "s16"
    decoder = av.CodecContext.create(codec, "r")
    assert isinstance(decoder, av.AudioCodecContext)
    decoder.sample_rate, decoder.layout = rate_hz, "mono"
    pieces: list[np.ndarray] = []
    size = round(PACKET_S * rate_hz)
    padded = np.pad(narrow, (0, -narrow.size % size))
    frames = [
        av.AudioFrame.from_ndarray(padded[None, at : at + size], "s16", "mono") for at in range(0, padded.size, size)
    ]
    for frame in [*frames, None]:
        if frame is not None:
            frame.sample_rate = rate_hz
        for packet in encoder.encode(frame):
            pieces += [decoded.to_ndarray().reshape(-1) for decoded in decoder.decode(packet)]
    wide = resampled(np.concatenate(pieces)[: narrow.size] / 32768.0, RATE_HZ / rate_hz)
    return np.pad(wide, (0, max(0, samples.size - wide.size)))[: samples.size]


def _g711_ulaw(samples: Samples, rng: np.random.Generator) -> Samples:
    return _coded(samples, "pcm_mulaw", 8000)


def _g711_alaw(samples: Samples, rng: np.random.Generator) -> Samples:
    return _coded(samples, "pcm_alaw", 8000)


def _g722(samples: Samples, rng: np.random.Generator) -> Samples:
    return _coded(samples, "g722", 16000)


def lost_packets(count: int, rng: np.random.Generator) -> np.ndarray:
    """Which of `count` packets are lost: `LOSS_SHARE` of them on average, in bursts; never the first."""
    enter = LOSS_SHARE * (1 - _BURST_STAY) / (1 - LOSS_SHARE)
    lost = np.zeros(count, dtype=bool)
    for at, chance in enumerate(rng.random(count)):
        lost[at] = at > 0 and chance < (_BURST_STAY if lost[at - 1] else enter)
    return lost


def _packet_loss(samples: Samples, rng: np.random.Generator) -> Samples:
    """G.711 in packets of 20 ms of which some are lost; the last one heard is repeated, ever softer."""
    coded = _coded(samples, "pcm_mulaw", 8000)
    size = round(PACKET_S * RATE_HZ)
    packets = np.pad(coded, (0, -coded.size % size)).reshape(-1, size)
    missed = 0
    kept = packets[0]
    for at, gone in enumerate(lost_packets(len(packets), rng)):
        missed = missed + 1 if gone else 0
        if gone:
            packets[at] = kept * _REPEAT_GAIN[min(missed, len(_REPEAT_GAIN)) - 1]
        else:
            kept = packets[at].copy()
    return packets.reshape(-1)[: samples.size]


def _radio(samples: Samples, rng: np.random.Generator) -> Samples:
    """Two-way radio: 350 to 2900 Hz, pressed towards one level, a noise floor, and a burst when the key is let go."""
    level = speech_rms_dbfs(samples)
    driven = np.tanh(band(samples, *RADIO_BAND_HZ) / db_to_gain(level) * 0.8)
    air = sounds.radio_squelch(samples.size / RATE_HZ + 1.0, rng)
    voice = band(driven, *RADIO_BAND_HZ)
    out = voice * db_to_gain(level - speech_rms_dbfs(voice)) + air[: samples.size] * db_to_gain(level - 30)
    burst = sounds.gate(air[-round(_SQUELCH_S * RATE_HZ) :], [(0.0, _SQUELCH_S)]) * db_to_gain(level - 4)
    size = min(burst.size, out.size)
    out[out.size - size :] += burst[:size]
    return limited(out)


def band(samples: Samples, low_hz: float, high_hz: float) -> Samples:
    """Only what lies within the band, edges rounded over 100 Hz."""
    spectrum = np.fft.rfft(samples)
    frequencies_hz = np.fft.rfftfreq(samples.size, 1 / RATE_HZ)
    inside = np.clip((frequencies_hz - low_hz) / 100.0 + 0.5, 0, 1) * np.clip(
        (high_hz - frequencies_hz) / 100.0 + 0.5, 0, 1
    )
    return np.asarray(np.fft.irfft(spectrum * inside, samples.size))


CHANNELS: dict[str, Channel] = {
    "g711_ulaw": Channel(_g711_ulaw, 4000.0),
    "g711_alaw": Channel(_g711_alaw, 4000.0),
    "g722": Channel(_g722, 8000.0),
    "radio": Channel(_radio, 3400.0),
    "packet_loss": Channel(_packet_loss, 4000.0),
}
"""What `channel` of a variant may name; none means the clip as it is."""
