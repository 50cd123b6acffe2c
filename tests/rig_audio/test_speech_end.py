"""The end of speech in foreign clips, on real (synthesised) speech followed by silence."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rig.audio.reader import Clip, read_clip
from rig.audio.speech_end import METHOD, NO_SPEECH_METHOD, speech_end_s


def _last_loud_s(clip: Clip) -> float:
    return float(np.flatnonzero(np.abs(clip.samples.astype(int)) > 300)[-1] + 1) / clip.rate_hz


def test_speech_ends_before_the_silence_that_follows(repo_dir: Path) -> None:
    clip = read_clip(sorted((repo_dir / "rig/agents/stock").glob("*.flac"))[0])
    followed = Clip(np.concatenate([clip.samples, np.zeros(2 * clip.rate_hz, np.int16)]), clip.rate_hz)
    end_s, method = speech_end_s(followed)
    assert method == METHOD
    assert abs(end_s - _last_loud_s(clip)) < 0.15


def test_without_speech_the_method_says_so() -> None:
    silence = Clip(np.zeros(8_000, dtype=np.int16), 16_000)
    assert speech_end_s(silence) == (0.5, NO_SPEECH_METHOD)
