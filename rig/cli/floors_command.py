"""`rig floors`: what degenerate agents score on a bank."""

from __future__ import annotations

import json

from rig.bank.loader import load_bank
from rig.cli.report_command import report_console
from rig.report.floor_tables import floor_tables, floors_json
from rig.report.floors import floor_report
from rig.report.markdown import table_lines
from rig.report.terminal import print_table


def print_floors(bank: str, *, as_json: bool, markdown: bool) -> None:
    """Print the measures of every floor on `bank` (a folder, or a packaged bank's name). Needs no audio.

    Raises:
        BankError: one line per problem, for the user.
    """
    found = floor_report(load_bank(bank))
    if as_json:
        print(json.dumps({"format": 1, "bank": found.report.bank} | floors_json(found), indent=2, allow_nan=False))
    elif markdown:
        print("\n".join(line for table in floor_tables(found) for line in (*table_lines(table), "")))
    else:
        console = report_console()
        for table in floor_tables(found):
            print_table(table, console)
