"""Brings a clip to the rate that a target wants: whole, once per rate, before the turn; never inside one."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import numpy as np
import numpy.typing as npt
import soxr

from rig.audio.reader import Clip, Samples

_CACHE_BYTES = 256 * 1024 * 1024
_TAIL_S = 0.1
"""Zeros fed after the clip, so that its last samples are filtered like all others."""


class _Cache:
    """Resampled audio by what it was made from, the least recently used dropped first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[tuple[str, int, int], Samples] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: tuple[str, int, int]) -> Samples | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: tuple[str, int, int], samples: Samples) -> None:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = samples
                self._bytes += samples.nbytes
            while self._bytes > self._max_bytes:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= dropped.nbytes


_cache = _Cache(_CACHE_BYTES)


def resample(clip: Clip, rate_hz: int) -> Clip:
    """The clip at `rate_hz`: round(n × out / in) samples, aligned with the original, clipped at full scale.

    The clip itself where the rates are equal. Uses soxr's best filter, which lets the interpreter go meanwhile; results
    are cached in the process by PCM hash and rates.
    """
    if rate_hz == clip.rate_hz:
        return clip
    key = (clip.pcm_sha256, clip.rate_hz, rate_hz)
    samples = _cache.get(key)
    if samples is None:
        samples = _resampled(clip, rate_hz)
        _cache.put(key, samples)
    return Clip(samples, rate_hz, (*clip.notes, f"resampled from {clip.rate_hz} to {rate_hz} Hz"))


def _resampled(clip: Clip, rate_hz: int) -> Samples:
    n_out = round(len(clip.samples) * rate_hz / clip.rate_hz)
    tail = np.zeros(round(_TAIL_S * clip.rate_hz), dtype=np.float32)
    padded = np.concatenate([clip.samples.astype(np.float32), tail])
    out: npt.NDArray[np.float32] = soxr.resample(padded, clip.rate_hz, rate_hz, quality="VHQ")
    samples = np.clip(np.rint(out[:n_out]), -32_768, 32_767).astype(np.int16)
    samples.flags.writeable = False
    return samples
