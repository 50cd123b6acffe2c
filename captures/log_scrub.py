"""Keeps secrets out of logs and of what the interpreter prints by itself. It sets up no logging of its own.

Put `ScrubFilter` on every handler (a logger's filter does not see what its children pass up), `scrub_event` before
structlog's renderer, and run the program inside `scrubbed_hooks`.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from captures.scrub import Scrubber

_STANDARD = frozenset(vars(logging.makeLogRecord({})))


class ScrubFilter(logging.Filter):
    """Scrubs a record's message, arguments, traceback, stack and extra fields. Passes every record."""

    def __init__(self, scrubber: Scrubber) -> None:
        super().__init__()
        self._scrubber = scrubber

    def filter(self, record: logging.LogRecord) -> bool:
        scrub = self._scrubber.scrub_text
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - the arguments are anything's own __str__; logging must not print them raw
            message = f"{record.msg} (arguments could not be formatted)"
        record.msg, record.args = scrub(message), ()
        if record.exc_info:
            record.exc_text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            record.exc_info = None
        if record.exc_text:
            record.exc_text = scrub(record.exc_text)
        if record.stack_info:
            record.stack_info = scrub(record.stack_info)
        for name in vars(record).keys() - _STANDARD:
            setattr(record, name, _scrubbed(self._scrubber, getattr(record, name)))
        return True


class ScrubEvent:
    """A structlog processor that scrubs every field of an event; `exc_info` becomes the text `exception`."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        exc_info = event.pop("exc_info", None)
        if exc_info is True:
            exc_info = sys.exc_info()
        elif isinstance(exc_info, BaseException):
            exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
        if isinstance(exc_info, tuple) and exc_info[1] is not None:
            event["exception"] = "".join(traceback.format_exception(*exc_info)).rstrip("\n")
        for name, value in event.items():
            event[name] = _scrubbed(self._scrubber, value)
        return event


@contextmanager
def scrubbed_hooks(scrubber: Scrubber) -> Iterator[None]:
    """Uncaught exceptions (main thread, other threads, destructors) are printed to standard error scrubbed."""

    def show(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None, head: str) -> None:
        text = head + "".join(traceback.format_exception(kind, error, trace))
        print(scrubber.scrub_text(text), end="", file=sys.stderr)

    before = sys.excepthook, threading.excepthook, sys.unraisablehook
    sys.excepthook = lambda kind, error, trace: show(kind, error, trace, "")
    threading.excepthook = lambda args: show(
        args.exc_type, args.exc_value, args.exc_traceback, f"In thread {args.thread and args.thread.name}:\n"
    )
    sys.unraisablehook = lambda args: show(
        args.exc_type, args.exc_value, args.exc_traceback, f"{args.err_msg or 'Ignored in'}: {args.object!r}\n"
    )
    try:
        yield
    finally:
        sys.excepthook, threading.excepthook, sys.unraisablehook = before


def _scrubbed(scrubber: Scrubber, value: Any) -> Any:
    """Plain numbers stay; everything else is printed and scrubbed, since any object may print a secret."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return scrubber.scrub_text(value if isinstance(value, str) else repr(value))
