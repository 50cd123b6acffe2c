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
from rig.report.audit import audit_of, how_to_judge, write_sample
from rig.report.build import report_of
from rig.report.floors import floors_beside
from rig.report.html.page import write_html
from rig.report.markdown import render_markdown
from rig.report.scored import scored_runs
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
    audit_sample: Path | None = None,
    audit: Path | None = None,
) -> None:
    """Print the tables of one or more runs on standard output, or write them as a page to `html`.

    `floors` adds degenerate agents on the same clips, and marks what they meet. `audit_sample`: write a sample of
    classified outcomes there for a person to check. `audit`: such a file, judged; the report then says how far the
    person agrees.

    Raises:
        ReportError, RunFolderError, BankError, BankMismatchError, AuditError: one line each, for the user.
    """
    own_bank = load_bank(str(bank)) if bank is not None else None
    scored = scored_runs(runs, own_bank)
    report = report_of(scored, nulls)
    if floors:
        report = replace(report, floors=floors_beside(report, scored))
    if audit is not None:
        report = replace(report, audit=audit_of(report, audit, scored.bank))
    if audit_sample is not None:
        write_sample(report.harm.sample if report.harm else (), audit_sample)
        lines = "\n".join(f"  {line}" for line in how_to_judge())
        print(
            f"rig: outcomes to check written to {audit_sample}; write into the column class one of\n{lines}\n"
            f"and read it back with --audit {audit_sample}",
            file=sys.stderr,
        )
    if html is not None:
        write_html(html, report, scored, audio=audio)
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
