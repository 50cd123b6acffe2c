"""The page itself: report and evidence laid out by a template, in one file that asks nothing of any network."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from captures.capture import Condition
from captures.durable import write_file
from rig.report.html.evidence import Evidence, Sound, evidence_in
from rig.report.layout import plain
from rig.report.model import Report
from rig.report.runs import ReportError
from rig.report.scored import Scored
from rig.report.tables import notes, tables

MOST_AUDIO_BYTES = 200_000_000
"""Of audio embedded in one page, before encoding; what is left out is said."""
_HERE = Path(__file__).parent
_NEEDED = ("jinja2", "matplotlib")


def write_html(path: Path, report: Report, runs: Scored, *, audio: bool) -> None:
    """Write the page on `report`, made of `runs`, to `path`, whole or not at all.

    Raises:
        ReportError: the extra `report` is not installed, or the file cannot be written.
    """
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise ReportError(f"--html needs {', '.join(missing)}: install the extra, voice-agent-rig[report]")
    content = page(report, evidence_in(runs), audio=audio)
    try:
        write_file(path, content.encode("utf-8", "replace"))
    except OSError as error:
        raise ReportError(f"{path}: cannot be written ({error.strerror})") from None


def page(report: Report, evidence: Evidence, *, audio: bool) -> str:
    """The page as text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from rig.report.html.plots import plots

    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sounds = _Sounds(audio)
    text = environment.get_template("page.html.j2").render(
        report=report,
        # The two that are markup: our own style sheet, and what matplotlib drew (it escapes every text in it).
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        plots=[(title, Markup(svg), caption) for title, svg, caption in plots(report, evidence)],
        tables=tables(report),
        notes=notes(report),
        provenance=[(target.name, target.provenance) for target in report.targets],
        calibrations=report.calibrations,
        failures=failure_map(report, evidence),
        items=evidence.items,
        sound=sounds.source,
        plain=plain,
    )
    return text.replace("<!-- audio left out -->", sounds.left_out_line())


@dataclass
class _Sounds:
    """Gives sounds as data URIs until there are too many bytes."""

    wanted: bool
    used: int = 0
    left_out: int = 0
    unreadable: list[str] = field(default_factory=list)

    def source(self, sound: Sound | None) -> str | None:
        if sound is None or not self.wanted:
            return None
        try:
            content = sound.path.read_bytes()
        except OSError:
            self.unreadable.append(sound.path.name)
            return None
        if self.used + len(content) > MOST_AUDIO_BYTES:
            self.left_out += 1
            return None
        self.used += len(content)
        return f"data:{sound.media_type};base64,{base64.b64encode(content).decode()}"

    def left_out_line(self) -> str:
        if not self.wanted:
            return "Audio was not embedded (--no-audio)."
        told = []
        if self.left_out:
            told.append(
                f"{self.left_out} clips or replies were left out: the page has room for {MOST_AUDIO_BYTES} bytes."
            )
        if self.unreadable:
            told.append(f"{len(self.unreadable)} audio files could not be read.")
        return " ".join(told)


@dataclass(frozen=True, slots=True)
class MapRow:
    """One clip in the failure map."""

    anchor: str
    item_id: str
    variant_id: str
    results: tuple[str, ...]
    """Per target: `pass`, `part`, `wrong`, or `none`."""


def failure_map(report: Report, evidence: Evidence) -> list[MapRow]:
    """Every clip × target; of several repeats the worst is shown. Clips that most targets fail come first."""
    names = [target.name for target in report.targets]
    worst = {"none": 0, "pass": 1, "part": 2, "wrong": 3}
    rows = []
    for item in evidence.items:
        for variant in item.variants:
            found: dict[str, str] = {}
            for cell in variant.cells:
                if cell.condition == Condition.AUDIO.value:
                    found[cell.target] = max(found.get(cell.target, "none"), cell.result, key=lambda one: worst[one])
            if found:
                results = tuple(found.get(name, "none") for name in names)
                rows.append(MapRow(item.anchor, item.item_id, variant.variant_id, results))
    return sorted(rows, key=lambda row: (-row.results.count("wrong"), row.item_id, row.variant_id))
