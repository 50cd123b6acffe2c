"""`rig compare` and `rig leaderboard`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rig.bank.loader import load_bank
from rig.cli.report_command import report_console
from rig.report.as_json import report_json
from rig.report.build import build_report
from rig.report.compare import compare, comparison_json, comparison_tables
from rig.report.escape import markdown_escaped
from rig.report.layout import Table, plain
from rig.report.leaderboard import leaderboard, ranked
from rig.report.markdown import table_lines
from rig.report.runs import ReportError
from rig.report.terminal import print_table


def print_comparison(
    first: Path, second: Path, pairs: Sequence[str], bank: Path | None, *, as_json: bool, markdown: bool
) -> None:
    """Print how `second` differs from `first`.

    Raises:
        ReportError, RunFolderError, BankError, BankMismatchError: one line each, for the user.
    """
    named = []
    for pair in pairs:
        one, equals, other = pair.partition("=")
        if not (one and equals and other):
            raise ReportError(f"--pair {pair}: write A=B, a target of the first run and one of the second")
        named.append((one, other))
    found = compare(first, second, named, load_bank(str(bank)) if bank is not None else None)
    if as_json:
        print(json.dumps(comparison_json(found), indent=2, allow_nan=False))
    else:
        _print(comparison_tables(found), found.warnings, markdown)


def print_leaderboard(
    runs: Sequence[Path], nulls: Sequence[str], bank: Path | None, *, as_json: bool, markdown: bool
) -> None:
    """Print all targets in one table; as JSON the report's figures in that order.

    Raises:
        ReportError, RunFolderError, BankError, BankMismatchError: one line each, for the user.
    """
    report = build_report(runs, load_bank(str(bank)) if bank is not None else None, nulls)
    if as_json:
        whole = report_json(report)
        targets = [{"target": one.name, **whole["targets"][one.name]} for one in ranked(report)]
        found = {"format": 1, "bank": report.bank, "null": report.null, "targets": targets}
        print(json.dumps(found | {"warnings": list(report.warnings)}, indent=2, allow_nan=False))
    else:
        _print([leaderboard(report)], report.warnings, markdown)


def _print(tables: Sequence[Table], warnings: Sequence[str], markdown: bool) -> None:
    if markdown:
        lines = [line for table in tables for line in (*table_lines(table), "")]
        print("\n".join([*lines, *(f"- {markdown_escaped(plain(one))}" for one in warnings)]))
        return
    console = report_console()
    for table in tables:
        print_table(table, console)
    for warning in warnings:
        console.print(f"warning: {plain(warning)}", markup=False, highlight=False)
