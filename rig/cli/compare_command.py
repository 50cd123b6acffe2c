"""`rig compare` and `rig leaderboard`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rig.bank.loader import load_bank
from rig.cli.report_command import report_console
from rig.report.as_json import report_json
from rig.report.build import build_report
from rig.report.compare import compare, comparison_json, comparison_tables
from rig.report.escape import markdown_escaped
from rig.report.html.serving import write_serving_html
from rig.report.layout import Table, plain
from rig.report.leaderboard import leaderboard, ranked
from rig.report.markdown import table_lines
from rig.report.runs import ReportError
from rig.report.serving import serving_report
from rig.report.serving_tables import serving_json, serving_notes, serving_tables
from rig.report.terminal import print_table


def print_comparison(
    first: Path, second: Path, pairs: Sequence[str], bank: Path | None, *, as_json: bool, markdown: bool
) -> None:
    """Print how `second` differs from `first`.

    Raises:
        ReportError, RunFolderError, BankError, BankMismatchError: one line each, for the user.
    """
    named = _named(pairs, "A=B, a target of the first run and one of the second")
    found = compare(first, second, named, load_bank(str(bank)) if bank is not None else None)
    if as_json:
        print(json.dumps(comparison_json(found), indent=2, allow_nan=False))
    else:
        _print(comparison_tables(found), found.warnings, markdown)


def print_serving(
    runs: Sequence[Path],
    pairs: Sequence[str],
    bank: Path | None,
    *,
    as_json: bool,
    markdown: bool,
    html: Path | None,
) -> int:
    """Print what realtime serving does within pairs; the exit code: 2 where a pair was refused.

    Raises:
        ReportError, RunFolderError, BankError, BankMismatchError: one line each, for the user.
    """
    named = _named(pairs, "REALTIME=FILE, two targets")
    report = serving_report(runs, named, load_bank(str(bank)) if bank is not None else None)
    if html is not None:
        write_serving_html(html, report)
        print(f"rig: written to {html}", file=sys.stderr)
    if as_json:
        print(json.dumps(serving_json(report), indent=2, allow_nan=False))
    elif markdown or html is None:
        _print(serving_tables(report), (), markdown)
        _print_notes(serving_notes(report), markdown)
    return 2 if any(pair.refused for pair in (*report.pairs, *report.steps)) else 0


def _named(pairs: Sequence[str], form: str) -> list[tuple[str, str]]:
    named = []
    for pair in pairs:
        one, equals, other = pair.partition("=")
        if not (one and equals and other):
            raise ReportError(f"--pair {pair}: write {form}")
        named.append((one, other))
    return named


def _print_notes(notes: Sequence[tuple[str, Sequence[str]]], markdown: bool) -> None:
    if markdown:
        for heading, lines in notes:
            print("\n".join(["", f"## {heading}", "", *(f"- {markdown_escaped(line)}" for line in lines)]))
        return
    console = report_console()
    for heading, lines in notes:
        console.print()
        for line in (heading, *(f"  {line}" for line in lines)):
            console.print(line, markup=False, highlight=False)


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
