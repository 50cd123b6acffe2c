"""Emulators of the shipped templates' agents, for all tests of templates."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    command = [sys.executable, "-m", "rig", "emulate", "template-socket", "--agent", "local-acoustic", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as served:
        assert served.stderr is not None
        line = served.stderr.readline()
        yield next(word for word in line.split() if word.startswith("ws://")).rstrip("/")
        served.terminate()
