"""Progress of a run: bars with the time left on a terminal, plain lines elsewhere. On standard error."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from captures.capture import Capture, Ending, ErrorInfo
from captures.scrub import Scrubber
from rig.cli.failures import printable
from rig.engine.plan import Cell

_LINE_EVERY_S = 10.0


class RunProgress:
    """Shows how far each target is. Meets `rig.engine.runner.Observer`; a context manager."""

    def __init__(self, scrubber: Scrubber, *, verbose: bool) -> None:
        self._scrubber = scrubber
        self._verbose = verbose
        self._console = Console(stderr=True)
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._total: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._problems: Counter[str] = Counter()
        self._hosts: dict[str, str] = {}
        self._told: set[tuple[str, str, str]] = set()
        self._said_at_s = time.monotonic()

    def __enter__(self) -> RunProgress:
        if self._console.is_terminal:
            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
                TimeRemainingColumn(compact=True),
                console=self._console,
            )
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def planned(self, cells: Iterable[Cell]) -> None:
        """These cells are about to be run."""
        self._total.update(cell.target for cell in cells)
        if self._bars is not None:
            for name, total in self._total.items():
                self._tasks[name] = self._bars.add_task(escape(name), total=total, note="")

    def attempt_ended(self, cell: Cell, capture: Capture) -> None:
        """See `Observer`."""
        self._hosts[cell.target] = capture.host
        if capture.ending is Ending.NO_ANSWER or not capture.ending.scored:
            self._problems[cell.target] += 1
        if capture.finished:
            self._done[cell.target] += 1
        if self._verbose:
            what = f"{cell.target} {cell.item_id} {cell.variant_id or '-'} {cell.condition}: {capture.ending}"
            self.say(what + (f" {capture.first_call.name}" if capture.first_call else ""))
        self._show(cell.target)

    def waits(self, cell: Cell, error: ErrorInfo, wait_s: float) -> None:
        """See `Observer`."""
        told = (cell.target, error.code, error.message)
        if told not in self._told or self._verbose:
            self._told.add(told)
            self.say(f"{cell.target}: {error.code}: {error.message}; tried again (said once; all tries are recorded)")

    def target_stopped(self, target: str, error: ErrorInfo) -> None:
        """See `Observer`."""
        host = self._hosts.get(target, "")
        at = f" at {host}" if host and host not in error.message else ""
        where = f" ({error.where})" if error.where else ""
        self.say(f"{target} stopped{at}: {error.code}: {error.message}{where}")

    def say(self, line: str) -> None:
        """One line, scrubbed, without what a terminal would act on."""
        clean = printable(self._scrubber.scrub_text(line))
        if self._bars is not None:
            self._console.print(escape(clean), highlight=False)
        else:
            print(clean, file=sys.stderr, flush=True)

    def _show(self, target: str) -> None:
        if self._bars is not None:
            problems = self._problems[target]
            note = f"{problems} not measured" if problems else ""
            self._bars.update(self._tasks[target], completed=self._done[target], note=note)
        elif time.monotonic() - self._said_at_s >= _LINE_EVERY_S:
            self._said_at_s = time.monotonic()
            self.say("  ".join(f"{name} {self._done[name]}/{total}" for name, total in self._total.items()))
