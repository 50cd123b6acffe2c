"""The page itself: every clip with its picture, gates and rulings, in one file that asks nothing of any network."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

from captures.durable import write_file
from rig.bank.models import Bank
from rig.bank.page.pictures import spectrogram_jpeg
from rig.bank.page.rows import ClipRow
from rig.bank.rendering.errors import RenderError

MOST_AUDIO_BYTES = 200_000_000
"""Of clips embedded in one page, before encoding; what is left out is said."""
_HERE = Path(__file__).parent
_NEEDED = ("jinja2", "matplotlib")


@dataclass(frozen=True, slots=True)
class Shown:
    """A row with its sound and picture as data addresses; None where there is none, or no room."""

    row: ClipRow
    sound: str | None
    picture: str | None


def write_page(path: Path, bank: Bank, rows: Sequence[ClipRow]) -> None:
    """Write the page to `path`, whole or not at all.

    Raises RenderError where the extra `report` is not installed or the file cannot be written.
    """
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise RenderError(f"--html needs {', '.join(missing)}: install the extra, voice-agent-rig[report]")
    try:
        write_file(path, page(bank, rows).encode("utf-8", "replace"))
    except OSError as error:
        raise RenderError(f"{path}: cannot be written ({error.strerror})") from None


def page(bank: Bank, rows: Sequence[ClipRow]) -> str:
    """The page as text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown, left_out = _shown(rows)
    return environment.get_template("page.html.j2").render(
        bank=bank,
        # Our own style sheet; all else is escaped.
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        items=[(item, list(clips)) for item, clips in groupby(shown, key=lambda clip: clip.row.item)],
        states=Counter(row.state for row in rows),
        approximate=[row for row in rows if row.approximate],
        left_out=left_out,
        annotations=bank.annotations,
    )


def _shown(rows: Sequence[ClipRow]) -> tuple[list[Shown], int]:
    """The rows with sounds and pictures, and how many clips found no room."""
    used = left_out = 0
    shown: list[Shown] = []
    for row in rows:
        sound = picture = None
        if row.path is not None:
            size = row.path.stat().st_size
            if used + size > MOST_AUDIO_BYTES:
                left_out += 1
            else:
                used += size
                kind = "audio/flac" if row.path.suffix == ".flac" else "audio/wav"
                sound = _data(kind, row.path.read_bytes())
                jpeg = spectrogram_jpeg(row.path, row.clip.speech_end_s if row.clip else None)
                picture = _data("image/jpeg", jpeg) if jpeg else None
        shown.append(Shown(row, sound, picture))
    return shown, left_out


def _data(media_type: str, content: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"
