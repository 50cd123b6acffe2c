"""Devices that stop in the middle of a call, or do not open: said, and never waited for without end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

pytestmark = pytest.mark.device


@contextmanager
def caller(repo_dir: Path, cables: dict[str, str], rate_hz: int = 48_000) -> Iterator[subprocess.Popen[str]]:
    script = Path(__file__).parent / "caller_at_cables.py"
    environment = os.environ | cables | {"PYTHONPATH": str(repo_dir)}
    command = [sys.executable, str(script), str(rate_hz)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["gone", "hanging"])
def test_a_sound_server_that_stops_is_no_silent_agent(
    repo_dir: Path, own_cables: tuple[dict[str, str], subprocess.Popen[bytes]], how: signal.Signals
) -> None:
    cables, pulse = own_cables
    with caller(repo_dir, cables) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        pulse.send_signal(how)
        said, _ = process.communicate(timeout=60)
    *told, last = said.splitlines()
    assert last == "closed by us"
    assert orjson.loads(told[-1]).items() >= {"event": "rig.device_status", "input_stopped": 1}.items()
    assert process.returncode == 0


def test_a_rate_that_a_device_does_not_have_is_named(repo_dir: Path, cables: dict[str, str]) -> None:
    with caller(repo_dir, cables, rate_hz=1_000_000) as process:
        said, _ = process.communicate(timeout=60)
    assert said == "device_rate device 'from_agent_monitor' cannot be opened at 1000000 Hz: Invalid sample rate\n"
