"""The run's own log: one scrubbed JSON line per event in `logs/rig.jsonl` of the run folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog

from captures.capture import Capture, ErrorInfo
from captures.log_scrub import ScrubEvent
from captures.scrub import Scrubber
from rig.engine.plan import Cell
from rig.engine.runner import Observer


class LoggedRun:
    """Passes on what it is told to another observer, and logs it. Meets `rig.engine.runner.Observer`."""

    def __init__(self, observer: Observer, log: Any) -> None:
        self._observer = observer
        self._log = log

    def attempt_ended(self, cell: Cell, capture: Capture) -> None:
        """See `Observer`."""
        self._log.info(
            "attempt ended",
            **_names(cell),
            attempt=capture.attempt,
            ending=str(capture.ending),
            call=capture.first_call.name if capture.first_call else None,
            error=capture.error.code if capture.error else None,
            finished=capture.finished,
        )
        self._observer.attempt_ended(cell, capture)

    def waits(self, cell: Cell, error: ErrorInfo, wait_s: float) -> None:
        """See `Observer`."""
        self._log.warning("tried again", **_names(cell), code=error.code, message=error.message, wait_s=wait_s)
        self._observer.waits(cell, error, wait_s)

    def target_stopped(self, target: str, error: ErrorInfo) -> None:
        """See `Observer`."""
        self._log.error("target stopped", target=target, code=error.code, message=error.message, where=error.where)
        self._observer.target_stopped(target, error)


@contextmanager
def logged(observer: Observer, path: Path, scrubber: Scrubber) -> Iterator[LoggedRun]:
    """An observer that also logs to `path` (appended)."""
    with path.open("a", encoding="utf-8") as file:
        log = structlog.wrap_logger(
            structlog.WriteLogger(file),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                ScrubEvent(scrubber),
                structlog.processors.JSONRenderer(),
            ],
        )
        yield LoggedRun(observer, log)


def _names(cell: Cell) -> dict[str, Any]:
    return {
        "target": cell.target,
        "item": cell.item_id,
        "variant": cell.variant_id,
        "condition": str(cell.condition),
        "repeat": cell.repeat,
    }
