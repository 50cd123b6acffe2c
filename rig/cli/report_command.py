"""`rig report`, and the report that ends a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from rig.bank.loader import load_bank
from rig.report.as_json import report_json
from rig.report.build import build_report
from rig.report.markdown import render_markdown
from rig.report.terminal import print_report as print_tables

_WIDTH_WITHOUT_TERMINAL = 120


def print_report(
    runs: Sequence[Path], nulls: Sequence[str], bank: Path | None, *, as_json: bool, markdown: bool
) -> None:
    """Print the tables of one or more runs on standard output.

    Raises:
        ReportError, RunFolderError, BankError, BankMismatchError: one line each, for the user.
    """
    report = build_report(runs, load_bank(str(bank)) if bank is not None else None, nulls)
    if as_json:
        print(json.dumps(report_json(report), indent=2, allow_nan=False))
    elif markdown:
        print(render_markdown(report))
    else:
        print_tables(report, report_console())


def report_console() -> Console:
    """Standard output; wide enough for the tables where it is a file or a pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH_WITHOUT_TERMINAL)
