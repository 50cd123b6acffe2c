"""Runs of the real engine against scripted servers."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
import yaml

from captures.capture import Capture, ErrorInfo
from captures.run_folder import RunFolder
from captures.scrub import Scrubber
from rig.config import parse_config
from rig.engine.plan import Cell
from rig.engine.prepare import Prepared, prepare
from rig.engine.run import RunResult, open_folder, run
from rig.replay.derive import derive, differences
from rig.replay.source import StoredRun
from rig.report.as_json import report_json
from rig.report.build import build_report


def _module(name: str) -> ModuleType:
    """A file beside this one (tests have no packages)."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_SERVER, _BANKS, _EVENTS = (_module(name) for name in ("scripted_server", "banks", "realtime_events"))


@pytest.fixture
def serve() -> Iterator[Callable[..., Any]]:
    """Start a scripted server: `serve(*scripts)`."""
    with ExitStack() as stack:
        yield lambda *scripts: stack.enter_context(_SERVER.serving(*scripts))


@pytest.fixture
def banks() -> ModuleType:
    """`banks.py`."""
    return _BANKS


@pytest.fixture
def ga() -> ModuleType:
    """`realtime_events.py`."""
    return _EVENTS


@dataclass
class Watch:
    """An `Observer` that keeps what it is told."""

    captures: list[Capture] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    stopped: dict[str, ErrorInfo] = field(default_factory=dict)

    def attempt_ended(self, cell: Cell, capture: Capture) -> None:
        self.captures.append(capture)

    def waits(self, cell: Cell, error: ErrorInfo, wait_s: float) -> None:
        self.waits_s.append(wait_s)
        self.messages.append(f"{error.code}: {error.message}")

    def target_stopped(self, target: str, error: ErrorInfo) -> None:
        self.stopped[target] = error


@dataclass
class Finished:
    """A run that is over."""

    result: RunResult
    folder: RunFolder
    watch: Watch
    prepared: Prepared

    @property
    def captures(self) -> list[Capture]:
        """As they are on disk."""
        return self.folder.read_captures()

    @property
    def only(self) -> Capture:
        """The one capture."""
        (capture,) = self.captures
        return capture

    def report(self) -> Any:
        """`rig report --json`, as data."""
        return report_json(build_report([self.folder.path], self.prepared.bank))

    def replayed(self) -> list[str]:
        """What `rig replay` would derive otherwise than it was captured, a line each."""
        stored = StoredRun(self.folder.path)
        problems = []
        for capture in stored.folder.finished().values():
            derived = derive(stored.call(capture), stored.client(capture.target), stored.prepared.resolved.config)
            problems += [f"{capture.target}: {one}" for one in differences(capture, derived)]
        return problems


class Rig:
    """Runs configs in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def config(self, url: str, **changes: Any) -> dict[str, Any]:
        """One realtime target `agent` at `url`, audio of `./bank`, one at a time, quick limits, no preflight."""
        target = {"name": "agent", "adapter": "openai_realtime", "model": "m", "base_url": url}
        target |= changes.pop("target", {})
        limits = {"setup_s": 5, "turn_s": 5, "backoff_s": 0.02} | changes.pop("limits", {})
        return {
            "version": 1,
            "bank": "bank",
            "conditions": ["audio"],
            "concurrency": 1,
            "limits": limits,
            "preflight": False,
            "targets": [target],
        } | changes

    def run(
        self, config: Mapping[str, Any], out: str = "run", environ: Mapping[str, str] | None = None, **also: Any
    ) -> Finished:
        """Prepare, run, read back. `also`: an async function given the loop, run beside it as `beside=`."""
        resolved = parse_config(yaml.safe_dump(dict(config)), "config.yaml", self.folder, environ or {})
        prepared = prepare(resolved)
        scrubber = Scrubber(resolved.secrets)
        folder = open_folder(prepared, self.folder / out, scrubber)
        watch = Watch()
        before: Callable[[], None] = also.get("before", lambda: None)

        async def main() -> RunResult:
            before()
            return await run(prepared, folder, watch, scrubber)

        return Finished(anyio.run(main), folder, watch, prepared)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """Runs configs whose bank is `tmp_path / "bank"`."""
    return Rig(tmp_path)
