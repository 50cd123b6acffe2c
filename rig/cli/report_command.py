"""`rig report`, and the report that ends a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from rig.bank.loader import load_bank
from rig.report.as_json import report_json
from rig.report.build import build_report
from rig.report.floors import floors_beside
from rig.report.html.page import write_html
from rig.report.markdown import render_markdown
from rig.report.terminal import print_report as print_tables

_WIDTH_WITHOUT_TERMINAL = 120


def print_report(
    runs: Sequence[Path],
    nulls: Sequence[str],
    bank: Path | None,
    *,
    as_json: bool,
    markdown: bool,
    html: Path | None = None,
    audio: bool = True,
    full: bool = False,
    floors: bool = False,
) -> None:
    """Print the tables of one or more runs on standard output, or write them as a page to `html`.

    `floors` adds degenerate agents on the same clips, and marks what they meet.

    Raises:
        ReportError, RunFolderError, BankError, BankMismatchError: one line each, for the user.
    """
    own_bank = load_bank(str(bank)) if bank is not None else None
    report = build_report(runs, own_bank, nulls)
    if floors:
        report = replace(report, floors=floors_beside(report, runs, own_bank))
    if html is not None:
        write_html(html, report, runs, own_bank, audio=audio)
        print(f"rig: written to {html} ({html.stat().st_size / 1e6:.1f} MB)", file=sys.stderr)
    if as_json:
        print(json.dumps(report_json(report), indent=2, allow_nan=False))
    elif markdown:
        print(render_markdown(report))
    elif html is None:
        print_tables(report, report_console(), full=full)


def report_console() -> Console:
    """Standard output; wide enough for the tables where it is a file or a pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH_WITHOUT_TERMINAL)
