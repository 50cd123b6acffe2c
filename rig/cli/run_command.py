"""`rig run` and `rig demo`: prepare, run with progress, report."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

import anyio
from rich.table import Table

from captures.log_scrub import scrubbed_hooks
from captures.run_folder import RunFolder, new_run_id
from captures.scrub import Scrubber
from rig.cli.chosen import EVERYTHING, Chosen
from rig.cli.failures import printable
from rig.cli.progress import RunProgress
from rig.cli.report_command import print_report, report_console
from rig.cli.run_log import logged
from rig.cli.secrets_seen import remember
from rig.config import ConfigError, ResolvedConfig, load_config
from rig.engine.identity_parts import StaleError, identity_parts, reasons
from rig.engine.prepare import Prepared, prepare
from rig.engine.run import HERE, Places, Remaining, RunResult, open_folder, remaining, run
from rig.engine.runner import Observer
from rig.engine.store import Store, kept_in
from transports.transport import is_loopback

DEMO_QUICK_ITEMS = (
    *("demo-banking-01", "demo-collections-01", "demo-eldercare-01", "demo-emergency-01", "demo-government-01"),
    *("demo-healthcare-01", "demo-homesecurity-01", "demo-legal-01", "demo-maritime-01", "demo-museum-01"),
    "demo-utilities-01",
)
"""A third of the demo bank with every kind of cue, stated and implicit rules, a control and second turns."""
_MIX_ADVICE = (
    "Choose another --out; or --mix runs these cells again beside the old ones (reports then count the newest of each)"
)
_ANSWER_ESTIMATE_S = 2.5
"""Set-up and answer of a cell, for estimates only."""
_SWITCH_INTERVAL_S = 0.001
"""How long the writer thread may keep the interpreter from the event loop; Python's own 5 ms would be lateness."""


def demo_config_path() -> Path:
    """The demo's config: packaged with the rig, or `configs/` of a checkout."""
    packaged = Path(str(files("rig").joinpath("configs/demo.yaml")))
    return packaged if packaged.is_file() else Path(str(files("rig"))).parent / "configs" / "demo.yaml"


def run_and_report(
    config_path: Path,
    out: Path | None,
    *,
    dry_run: bool,
    as_json: bool,
    verbose: bool,
    max_cost: float | None = None,
    chosen: Chosen = EVERYTHING,
    places: Places = HERE,
    store_url: str | None = None,
    mix: bool = False,
) -> int:
    """Run a config and print its report; the process's exit code. `max_cost` and `chosen` go before the config's own.

    With `store_url` the run folder is kept there as well, and what that holds already is fetched first.
    """
    resolved = chosen.of(load_config(config_path))
    if max_cost is not None:
        resolved = replace(resolved, config=resolved.config.model_copy(update={"max_cost": max_cost}))
    if dry_run:
        return _plan_only(resolved, out, as_json=as_json)

    def tell(folder: Path) -> None:
        print_report([folder], [], None, as_json=as_json, markdown=False)

    return run_resolved(resolved, out, tell, verbose=verbose, places=places, store_url=store_url, mix=mix)


def _plan_only(resolved: ResolvedConfig, out: Path | None, *, as_json: bool) -> int:
    remember(resolved.secrets)
    with scrubbed_hooks(Scrubber(resolved.secrets)):
        prepared = prepare(resolved)
        _tell_input_errors(prepared)
        _print_plan(prepared, as_json=as_json)
        if out is not None and (out / "run.json").is_file():
            folder = RunFolder.open(out)
            left = remaining(prepared, folder)
            print(f"rig: {out}: {left.finished} cells are done; {len(left.cells)} to go", file=sys.stderr)
            for line in _stale_lines(prepared, folder, left):
                print(f"rig: {out}: {line}", file=sys.stderr)
    return 0


def _stale_lines(prepared: Prepared, folder: RunFolder, left: Remaining) -> list[str]:
    """Which cells of the folder no longer match, and why."""
    config = prepared.resolved.config
    now = identity_parts(config, prepared.targets, prepared.plan.cells)
    return reasons(folder.run_json.get("identity_parts"), now, left.stale)


def _refuse_to_mix(prepared: Prepared, folder: RunFolder, left: Remaining) -> None:
    """Raises StaleError when the folder holds results that this config or bank would now make otherwise."""
    if left.stale:
        lines = _stale_lines(prepared, folder, left)
        where = folder.path
        raise StaleError([*(f"{where}: {line}" for line in lines), f"{where}: nothing was run. {_MIX_ADVICE}"])


def run_resolved(
    resolved: ResolvedConfig,
    out: Path | None,
    tell: Callable[[Path], None],
    *,
    verbose: bool,
    places: Places = HERE,
    store_url: str | None = None,
    mix: bool = False,
    prepared_by: Callable[[ResolvedConfig], Prepared] = prepare,
) -> int:
    """Run what a config's run folder lacks, with progress, and `tell` of the folder; the exit code."""
    remember(resolved.secrets)
    scrubber = Scrubber(resolved.secrets)
    with scrubbed_hooks(scrubber):
        prepared = prepared_by(resolved)
        _tell_input_errors(prepared)
        _check_reach(prepared, places)
        path = out or Path("runs") / new_run_id(datetime.now(UTC))
        store = None
        if store_url is not None:
            store = Store(store_url)
            if not (path / "run.json").exists():
                path.mkdir(parents=True, exist_ok=True)
                if store.fetch(path):
                    print(f"rig: {store_url} holds a part of this run; it goes on in {path}", file=sys.stderr)
        folder = open_folder(prepared, path, scrubber)
        with (
            RunProgress(scrubber, verbose=verbose) as progress,
            logged(progress, folder.logs_path / "rig.jsonl", scrubber) as observer,
        ):
            left = remaining(prepared, folder)
            if not mix:
                _refuse_to_mix(prepared, folder, left)
            for line in _stale_lines(prepared, folder, left):
                progress.say(f"{path}: mixed as told: {line}")
            if left.finished:
                progress.say(f"{path}: {left.finished} cells are done already; {len(left.cells)} to go")
            if others := left.foreign - len({capture.identity for capture in left.stale}):
                progress.say(f"{path}: {others} finished cells are not asked for by this config and are left alone")
            progress.planned(left.cells)
            sys.setswitchinterval(_SWITCH_INTERVAL_S)
            # Ended by a scheduler as by a person: what is measured is written first.
            signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
            try:
                result: RunResult = anyio.run(
                    _run, prepared, folder, observer, scrubber, places, store,
                    backend_options={"use_uvloop": has_uvloop()},
                )  # fmt: skip
            except KeyboardInterrupt:
                progress.say(f"interrupted; what was measured is in {path}. Run again with --out {path} to go on")
                return 130
            for note in result.notes:
                progress.say(note)
        tell(path)
    return _close(result, path, scrubber)


def _tell_input_errors(prepared: Prepared) -> None:
    for line in prepared.input_errors:
        print(f"rig: input error: {line}", file=sys.stderr)


async def _run(
    prepared: Prepared, folder: RunFolder, observer: Observer, scrubber: Scrubber, places: Places, store: Store | None
) -> RunResult:
    async with kept_in(store, folder.path):
        return await run(prepared, folder, observer, scrubber, places)


def _check_reach(prepared: Prepared, places: Places) -> None:
    """Embedded agents listen on loopback: workers elsewhere could not reach them. Raises ConfigError."""
    if places.cluster is None or is_loopback(urlsplit(places.cluster).hostname or ""):
        return
    problems = [
        f"targets ({target.name}): an embedded_agent listens on this machine alone; on a cluster give its base_url"
        for target in prepared.targets
        if target.config.embedded_agent
    ]
    if problems:
        raise ConfigError("config", problems)


def _close(result: RunResult, path: Path, scrubber: Scrubber) -> int:
    """The last lines, and the exit code."""
    spending = result.spending
    if spending.spent or spending.unknown:
        unknown = f"; {spending.unknown} attempts of unknown cost" if spending.unknown else ""
        print(f"rig: about {spending.spent:.2f} USD so far, by the prices at hand{unknown}", file=sys.stderr)
    missing = {name: outcome for name, outcome in result.outcomes.items() if outcome.unfinished}
    for name, outcome in missing.items():
        reason = f": {outcome.stopped.code}: {outcome.stopped.message}" if outcome.stopped else ""
        line = f"rig: {name}: {outcome.unfinished} cells not measured{reason}"
        print(printable(scrubber.scrub_text(line)), file=sys.stderr)
    if missing:
        print(f"rig: run again with --out {path} to resume", file=sys.stderr)
        return 2
    print(f"rig: run folder {path}", file=sys.stderr)
    return 0


def has_uvloop() -> bool:
    """Whether calls run on uvloop: where it is installed and RIG_NO_UVLOOP is not set."""
    if os.environ.get("RIG_NO_UVLOOP"):
        return False
    try:
        import uvloop  # noqa: F401
    except ImportError:
        return False
    return True


def _print_plan(prepared: Prepared, *, as_json: bool) -> None:
    rows = []
    for target in prepared.targets:
        cells = prepared.plan.of(target.name)
        audio_s = sum(cell.audio_s for cell in cells)
        at_once = target.config.concurrency or prepared.resolved.config.concurrency
        at_once = 1 if target.capabilities.one_at_a_time else at_once
        played_s = audio_s if target.capabilities.streams_audio else 0.0
        rows.append(
            {
                "target": target.name,
                "cells": len(cells),
                **{
                    str(condition): sum(cell.condition is condition for cell in cells)
                    for condition in prepared.resolved.config.conditions
                },
                "audio_minutes": round(audio_s / 60, 1),
                "wall_minutes": round((played_s + _ANSWER_ESTIMATE_S * len(cells)) / at_once / 60, 1),
            }
        )
    not_planned = [
        f"{left.target}: {left.cells} {left.condition} cells left out: {left.reason}"
        for left in prepared.plan.not_planned
    ]
    if as_json:
        planned = {
            target.name: [
                {"item": c.item_id, "variant": c.variant_id, "condition": str(c.condition), "repeat": c.repeat}
                for c in prepared.plan.of(target.name)
            ]
            for target in prepared.targets
        }
        inputs = list(prepared.input_errors)
        told = {"targets": rows, "not_planned": not_planned, "input_errors": inputs, "planned": planned}
        print(json.dumps(told))
        return
    table = Table(title=f"bank {prepared.bank.name} {prepared.bank.version}: the plan; nothing connected")
    for column in rows[0]:
        first = column == "target"
        table.add_column(column.replace("_", " "), justify="left" if first else "right", no_wrap=first)
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    console = report_console()
    console.print(table)
    console.print("wall minutes: estimate; targets run side by side, so the run takes about the longest of them")
    for line in not_planned:
        console.print(line, markup=False)
