"""Prints the error of the two ways in which we find sound and speech by ourselves; nothing here passes or fails.

- `caller_speech_end` of foreign clips (voice activity detection) against the clean stems of the demo bank.
- The audible onset of a reply (`captures.playback`) against the same detector, on the callers' clips after silence.
"""

from __future__ import annotations

import numpy as np

from captures.playback import first_audible
from rig.audio.reader import read_clip
from rig.audio.resample import resample
from rig.audio.speech_end import speech_end_s
from rig.audio.voice import METHOD, RATE_HZ, speech
from rig.bank.loader import load_bank

LEAD_S = 0.5


def told(what: str, errors_s: list[float]) -> None:
    errors = np.asarray(errors_s)
    size = np.abs(errors)
    print(
        f"{what}: n {len(errors)}, median {np.median(errors):+.3f} s, median size {np.median(size):.3f}, "
        f"p90 {np.quantile(size, 0.9):.3f}, largest {size.max():.3f}"
    )


def main() -> None:
    bank = load_bank("demo")
    ends: dict[bool, list[float]] = {True: [], False: []}
    onsets: list[float] = []
    for item in bank.items:
        for variant in item.variants:
            entry = bank.clip(item, variant)
            path = bank.clip_path(entry) if entry is not None else None
            if entry is None or path is None or entry.speech_end_s is None:
                continue
            clip = read_clip(path)
            found_s, _ = speech_end_s(clip)
            ends[variant.scene is None].append(found_s - entry.speech_end_s)
            if variant.scene is None:
                padded = np.concatenate([np.zeros(round(LEAD_S * RATE_HZ), np.int16), resample(clip, RATE_HZ).samples])
                heard_ns = first_audible([(0, padded.tobytes())], RATE_HZ)
                stretches = speech(padded)
                if heard_ns is not None and stretches:
                    onsets.append(heard_ns / 1e9 - stretches[0].start_s)
    print(METHOD)
    told("end of speech, detected minus stem, voice alone", ends[True])
    told("end of speech, detected minus stem, with another sound", ends[False])
    told("audible onset minus the detector's", onsets)


if __name__ == "__main__":
    main()
