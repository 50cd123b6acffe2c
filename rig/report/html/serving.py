"""Serving deltas as one self-contained HTML file, in the dress of the report's page."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from captures.durable import write_file
from rig.report.layout import plain
from rig.report.runs import ReportError
from rig.report.serving import ServingReport
from rig.report.serving_tables import serving_notes, serving_tables

_HERE = Path(__file__).parent


def write_serving_html(path: Path, report: ServingReport) -> None:
    """Write the page to `path`, whole or not at all.

    Raises:
        ReportError: the extra `report` is not installed, or the file cannot be written.
    """
    if find_spec("jinja2") is None:
        raise ReportError("--html needs jinja2: install the extra, voice-agent-rig[report]")
    try:
        write_file(path, serving_page(report).encode("utf-8", "replace"))
    except OSError as error:
        raise ReportError(f"{path}: cannot be written ({error.strerror})") from None


def serving_page(report: ServingReport) -> str:
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
    return environment.get_template("serving.html.j2").render(
        bank=plain(report.bank),
        runs=plain(", ".join(report.runs)),
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),  # our own file
        tables=serving_tables(report),
        notes=serving_notes(report),
    )
