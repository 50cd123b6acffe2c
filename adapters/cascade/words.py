"""From a transcript to the words alone: what a listener would have written down who heard nothing else. Pure text.

For the words-only rung, which is the null: whatever a transcriber wrote of how it sounded must not reach the model.
"""

from __future__ import annotations

import re
from typing import Final

_ANNOTATION: Final = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|<[^<>]*>|\*[^*\n]*\*|[♪♫♩♬]+")
"""How transcribers write what is no word: [music], (sighs), <noise>, *beep*."""
_FILLER: Final = re.compile(r"(?<!\w)(?:u+h+m*|u+m+|e+r+m*|h+m+|m+h+m+|a+h+|e+h+)(?!\w)[,.…]*", re.IGNORECASE)
_STUTTER: Final = re.compile(r"(?<![\w'])(\w{1,3})(?:-|…|\.\.\.)+\s*(?=\1)", re.IGNORECASE)
_REPEATED: Final = re.compile(r"(?<![\w'])([\w']+)(?:[,\s]+\1(?![\w']))+", re.IGNORECASE)


def bare(transcript: str) -> str:
    """The words: no annotations, fillers, broken-off starts or immediate repetitions; spelling and case stay."""
    text = _ANNOTATION.sub(" ", transcript)
    text = _FILLER.sub(" ", text)
    text = _STUTTER.sub("", text)
    text = _REPEATED.sub(r"\1", text)
    text = re.sub(r"\s+([,.;:!?])", r"\1", text)
    return " ".join(text.split()).lstrip(" ,.;:")
