"""`rig report`."""

from __future__ import annotations

from pathlib import Path


def print_report(runs: list[Path], nulls: list[str], bank: Path | None, *, as_json: bool, markdown: bool) -> None:
    """Print the tables of one or more runs."""
    print("report not there yet", runs, nulls, bank, as_json, markdown)
