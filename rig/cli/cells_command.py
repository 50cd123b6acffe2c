"""`rig cells`: every cell of a run as a line, or as JSON for scripts and test frameworks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rig.bank.loader import load_bank
from rig.report.cell_rows import cell_rows
from rig.report.layout import plain
from rig.report.scored import scored_runs


def print_cells(run: Path, targets: Sequence[str], bank: Path | None, *, as_json: bool) -> int:
    """Print them; 2 where a target named has none, else 0.

    Raises:
        ReportError, RunFolderError, BankError, BankMismatchError: one line each, for the user.
    """
    scored = scored_runs([run], load_bank(str(bank)) if bank is not None else None)
    rows = [row for row in cell_rows(scored) if not targets or row["target"] in targets]
    if as_json:
        told = {"format": 1, "run": str(run.resolve()), "warnings": list(scored.warnings), "cells": rows}
        print(json.dumps(told, indent=2, allow_nan=False))
    else:
        for row in rows:
            print(plain(line(row)))
    return 0 if rows else 2


def line(row: Mapping[str, Any]) -> str:
    """`agent demo-museum-01/young_visitor audio: sign_up({}), credit 0`."""
    where = row["item"] + (f"/{row['variant']}" if row["variant"] else "")
    did = "; ".join(f"{call['name']}({json.dumps(call['arguments'])})" for call in row["calls"]) or row["ending"]
    if row["error"]:
        did += f": {row['error']['code']}: {row['error']['message']}"
    if row["probe"]:
        did += f", named {row['probe']['answer']!r}, right {row['probe']['right']}"
    credits = "".join(
        f", credit {'not measured' if score['credit'] is None else format(score['credit'], 'g')}"
        + (f" as {variant}" if row["variant"] is None else "")
        for variant, score in row["scores"].items()
    )
    return f"{row['target']} {where} {row['condition']}: {did}{credits}"
