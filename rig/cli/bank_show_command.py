"""`rig bank show`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Set
from pathlib import Path

from rig.bank.loader import load_bank
from rig.bank.page.page import write_page
from rig.bank.page.rows import ClipRow, as_json, clip_rows
from rig.cli.report_command import report_console
from rig.report.layout import ABSENT, table
from rig.report.terminal import print_table


def show(bank: str, only: Set[str], html: Path | None, *, as_json_text: bool) -> int:
    """Print a row for every clip, or write the page; 1 if a clip is missing or withheld, else 0."""
    loaded = load_bank(bank)
    rows = clip_rows(loaded, only)
    if html is not None:
        write_page(html, loaded, rows)
        print(f"rig: written to {html} ({html.stat().st_size / 1e6:.1f} MB)", file=sys.stderr)
    if as_json_text:
        print(json.dumps([as_json(row) for row in rows], indent=2, allow_nan=False))
    elif html is None:
        _print(loaded.name, rows)
    return 1 if any(row.state in ("missing", "withheld") for row in rows) else 0


def _print(name: str, rows: list[ClipRow]) -> None:
    states = ", ".join(f"{count} {state}" for state, count in Counter(row.state for row in rows).items())
    columns = ("clip", "cue", "s", "speech end s", "WER", "delivered", "gates", "state")
    caption = (
        "WER: word error rate of an offline recogniser on neutral speech, and with the delivery. Gates: passed of all. "
        "Approximate: only suggests its cue. --html and --json tell why, and every gate."
    )
    print_table(table(f"{name}: {states}", columns, map(_cells, rows), caption), report_console())


def _cells(row: ClipRow) -> tuple[str, ...]:
    entry = row.rendered
    gates = [f"{sum(gate.passed for gate in row.gates.values())} of {len(row.gates)}"] if row.gates else [ABSENT]
    gates += [f"{gate_name} {gate}" for gate_name, gate in row.gates.items() if not gate.passed]
    state = f"{row.state}, approximate" if row.approximate else row.state
    return (
        row.name,
        row.cue,
        f"{entry.duration_s:.2f}" if entry else ABSENT,
        ABSENT if row.clip is None or row.clip.speech_end_s is None else f"{row.clip.speech_end_s:.2f}",
        f"{entry.wer:.2f}" if entry else ABSENT,
        ABSENT if entry is None or entry.wer_delivered is None else f"{entry.wer_delivered:.2f}",
        "\n".join(gates),
        f"{state}\n{row.ruling}" if row.ruling else state,
    )
