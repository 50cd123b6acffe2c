"""B26 for logs and for what the interpreter prints: no handler, hook or traceback shows the key."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from collections.abc import Callable

import pytest

from captures.log_scrub import ScrubEvent, ScrubFilter
from captures.scrub import MASK, Scrubber

Leaks = Callable[[bytes], list[str]]


class _Request:
    def __init__(self, key: str) -> None:
        self.key = key

    def __repr__(self) -> str:
        return f"<Request wss://api.example.com/v1/live?key={self.key}>"


@pytest.fixture
def log(key: str) -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(ScrubFilter(Scrubber([key])))
    logger = logging.Logger("test", logging.DEBUG)
    logger.addHandler(handler)
    return logger, stream


def test_messages_arguments_and_tracebacks(log: tuple[logging.Logger, io.StringIO], key: str, leaks: Leaks) -> None:
    logger, stream = log
    logger.debug("> Authorization: Bearer %s", key)
    logger.debug("request %r", _Request(key))
    try:
        raise ConnectionError(f"401 for {_Request(key)!r}")
    except ConnectionError:
        logger.exception("handshake", stack_info=True)
    written = stream.getvalue()
    assert leaks(written.encode()) == []
    assert "Traceback" in written
    assert f"ConnectionError: 401 for <Request wss://api.example.com/v1/live?key={MASK}" in written


def test_a_message_that_cannot_be_formatted(
    log: tuple[logging.Logger, io.StringIO], key: str, leaks: Leaks, capsys: pytest.CaptureFixture[str]
) -> None:
    logger, stream = log
    logger.info("%d sessions", key)
    assert "could not be formatted" in stream.getvalue()
    assert leaks(stream.getvalue().encode() + capsys.readouterr().err.encode()) == []


def test_extra_fields(key: str, leaks: Leaks) -> None:
    record = logging.makeLogRecord({"msg": "x", "headers": {"Authorization": key}, "count": 3})
    ScrubFilter(Scrubber([key])).filter(record)
    assert leaks(str(vars(record)).encode()) == []
    assert vars(record)["count"] == 3


def test_structlog_events(key: str, leaks: Leaks) -> None:
    try:
        raise ValueError(key)
    except ValueError as error:
        event = ScrubEvent(Scrubber([key]))(None, "error", {"event": f"bad {key}", "exc_info": error, "n": 1, "r": key})
    assert leaks(str(event).encode()) == []
    assert event["n"] == 1
    assert "Traceback" in event["exception"]


_PROGRAM = """
import asyncio, logging, sys, threading
from captures.log_scrub import ScrubFilter, scrubbed_hooks
from captures.scrub import Scrubber

key = sys.argv[1]
handler = logging.StreamHandler()
handler.addFilter(ScrubFilter(Scrubber([key])))
logging.basicConfig(level=logging.DEBUG, handlers=[handler])

async def fail():
    raise ConnectionError("unretrieved ?key=" + key)

async def main():
    task = asyncio.ensure_future(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del task

class Broken:
    def __del__(self):
        raise ValueError("destructor " + key)

def in_thread():
    raise ValueError("thread " + key)

with scrubbed_hooks(Scrubber([key])):
    asyncio.run(main())
    thread = threading.Thread(target=in_thread)
    thread.start(); thread.join()
    broken = Broken()
    del broken
    sys.excepthook(*(lambda error: (type(error), error, error.__traceback__))(KeyError("uncaught " + key)))
"""


def test_hooks_and_unretrieved_tasks(key: str, leaks: Leaks) -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM, key], capture_output=True, check=True, timeout=60)
    output = done.stdout + done.stderr
    assert leaks(output) == []
    for said in (b"unretrieved ?key=", b"thread ", b"destructor ", b"uncaught "):
        assert said + MASK.encode() in output
