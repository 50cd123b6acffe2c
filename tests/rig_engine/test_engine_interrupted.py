"""Ctrl-C in the middle of an answer: sessions are closed, what was measured stays, and the run can go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from captures.run_folder import RunFolder

ITEMS = ["i1", "i2", "i3", "i4"]
_RUN = [sys.executable, "-m", "rig", "run", "config.yaml", "--out", "run", "--json"]


@pytest.fixture(autouse=True)
def ctrl_c_works() -> Iterator[None]:
    """Tests that were started in the background would hand on that SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_and_resume(rig: Any, serve: Any, ga: Any, banks: Any) -> None:
    folder: Path = rig.folder
    banks.write_bank(
        folder / "bank", {"clear": banks.wav(banks.tone(0.1))}, items=tuple(banks.BOOKING | {"id": i} for i in ITEMS)
    )
    right, third = [*ga.COMMITTED, *ga.called()], threading.Event()
    server = serve(right, right, [*ga.COMMITTED, ("send", ga.created()), ("call", third.set), ("silent",)])
    (folder / "config.yaml").write_text(yaml.safe_dump(rig.config(server.ws_url, preflight=False)))

    with subprocess.Popen(_RUN, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert third.wait(30)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "interrupted; what was measured is in run. Run again with --out run to go on"
    assert [capture.item_id for capture in RunFolder.open(folder / "run").read_captures()] == ITEMS[:2]
    assert server.connections[2].closed

    server.play(right)
    again = subprocess.run(_RUN, cwd=folder, capture_output=True, text=True, timeout=60)
    assert again.returncode == 0, again.stderr
    assert "2 cells are done already; 2 to go" in again.stderr
    assert len(server.connections) == 2
    target = json.loads(again.stdout)["targets"]["agent"]
    assert (target["credit"]["neutral"]["mean"], target["credit"]["neutral"]["n"]) == (1, len(ITEMS))
    assert (target["attempts"], target["retried"]) == (len(ITEMS), 0)
