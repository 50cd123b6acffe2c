"""Speech to words with pocketsphinx, whole utterance at once, no state from one to the next.

It holds the interpreter lock while it decodes: for the brain process only.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soxr
from pocketsphinx import Decoder

RATE_HZ = 16_000
_RESAMPLER_TAIL_S = 0.05
# A tenth of the default: 20 % less time, and other words in 1 of 14 of the demo bank's clips.
_MOST_HMMS_PER_FRAME = 3000
_MAX_LEXICON_BYTES = 1024 * 1024


class LexiconError(ValueError):
    """A lexicon cannot be used; the text says where and why."""


class Recogniser:
    """English words in speech. Not thread-safe."""

    def __init__(self, lexicon: Path | None = None) -> None:
        """Loads the model (0.2 s); `lexicon` adds words as lines `word PHONE PHONE…`. Raises LexiconError."""
        self._decoder = Decoder(samprate=RATE_HZ, maxhmmpf=_MOST_HMMS_PER_FRAME, loglevel="FATAL")
        if lexicon is not None:
            self._add(lexicon)

    def words(self, samples: np.ndarray[tuple[int], np.dtype[np.float64]], rate_hz: int) -> str:
        """The words of mono samples in [-1, 1]; empty when none were found."""
        speech = np.asarray(samples, dtype=np.float32)
        if rate_hz != RATE_HZ:
            # Fed with silence at the end, since the resampler keeps back its tail.
            padded = np.pad(speech, (0, round(_RESAMPLER_TAIL_S * rate_hz)))
            speech = soxr.resample(padded, rate_hz, RATE_HZ)
        pcm = np.round(np.clip(speech, -1.0, 1.0) * 32767.0).astype("<i2").tobytes()
        # Fresh features: the running mean of one utterance's cepstra would colour the next.
        self._decoder.reinit_feat()
        self._decoder.start_utt()
        self._decoder.process_raw(pcm, full_utt=True)
        self._decoder.end_utt()
        best = self._decoder.hyp()
        return str(best.hypstr) if best is not None else ""

    def _add(self, lexicon: Path) -> None:
        try:
            with lexicon.open(encoding="utf-8") as file:
                lines = file.read(_MAX_LEXICON_BYTES).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise LexiconError(f"{lexicon}: cannot be read: {error}") from error
        for number, line in enumerate(lines, start=1):
            word, _, phones = line.split("#")[0].strip().partition(" ")
            if not word or self._decoder.lookup_word(word) is not None:
                continue
            try:
                self._decoder.add_word(word, " ".join(phones.split()), update=True)
            except RuntimeError as error:
                raise LexiconError(f"{lexicon}:{number}: {word}: phones {phones!r} are not usable") from error
