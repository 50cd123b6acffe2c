"""The six spoken replies that the embedded agents answer with, rendered once into `rig/agents/stock`.

`python -m rig.bank.rendering.stock FOLDER` writes them.
The file names are the agents' interface; the words are ours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import soundfile

from rig.bank.rendering.levels import RATE_HZ, tightened, to_pcm16, with_speech_level
from rig.bank.rendering.voices import synthesise

STOCK_REPLIES = {
    "acting": "One moment while I do that for you.",
    "escalated": "I have passed you to a colleague.",
    "clarify": "Could you tell me a little more?",
    "nothing_needed": "All right, nothing more is needed.",
    "heard": "Here is what I heard.",
    "not_understood": "I did not catch that.",
}
_SEED = 7


def render_stock(folder: Path) -> Iterator[Path]:
    """Write every stock reply as <name>.flac (24 kHz mono 16-bit); yields each path once written."""
    for name, text in STOCK_REPLIES.items():
        speech = tightened(with_speech_level(synthesise("hibari", text, _SEED)))
        path = folder / f"{name}.flac"
        soundfile.write(path, to_pcm16(speech), RATE_HZ, format="FLAC", subtype="PCM_16")
        yield path


if __name__ == "__main__":
    for written in render_stock(Path(sys.argv[1])):
        print(written)
