"""The real `rig` command as a process of its own, beside scripted servers on loopback."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest
import yaml

_ENGINE_TESTS = Path(__file__).resolve().parent.parent / "rig_engine"
_END_S = 60.0
"""When a process that should have ended is given up."""


def _module(name: str) -> ModuleType:
    """A helper file of the engine's tests, which stand on their own."""
    own_name = f"rig_cli_{name}"
    spec = importlib.util.spec_from_file_location(own_name, _ENGINE_TESTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[own_name] = module
    spec.loader.exec_module(module)
    return module


_SERVER, _BANKS, _EVENTS = (_module(name) for name in ("scripted_server", "banks", "realtime_events"))


@pytest.fixture
def serve() -> Iterator[Callable[..., Any]]:
    """Start a scripted server: `serve(*scripts)`."""
    with ExitStack() as stack:
        yield lambda *scripts: stack.enter_context(_SERVER.serving(*scripts))


@pytest.fixture(scope="session")
def serving() -> Callable[..., AbstractContextManager[Any]]:
    """`with serving(*scripts) as server:` for fixtures that outlast a test."""
    made: Callable[..., AbstractContextManager[Any]] = _SERVER.serving
    return made


@pytest.fixture(scope="session")
def banks() -> ModuleType:
    """Makes small banks."""
    return _BANKS


@pytest.fixture(scope="session")
def ga() -> ModuleType:
    """Server events of OpenAI Realtime."""
    return _EVENTS


class _WithoutAliases(yaml.SafeDumper):
    """Writes what is used twice out twice, as people do."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class Cli:
    """Runs `rig` in a folder, with an environment that holds no key but those given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[str]] = []

    def __call__(self, *arguments: object, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run to the end."""
        process = self.start(*arguments, **environ)
        out, err = process.communicate(timeout=_END_S)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def start(self, *arguments: object, **environ: str) -> subprocess.Popen[str]:
        """Start and return at once; ended, if need be, when the test is over."""
        kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_TOKEN"))}
        process = subprocess.Popen(
            [sys.executable, "-m", "rig", *map(str, arguments)],
            cwd=self.folder,
            env=kept | environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def one_line(self, *arguments: object, code: int = 2, **environ: str) -> str:
        """What a command that cannot be done says: one line and no more."""
        done = self(*arguments, **environ)
        assert done.returncode == code, done.stderr
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert line.startswith("rig: ")
        return line

    def config(self, name: str = "config.yaml", **content: Any) -> Path:
        """Write a config of `./bank`: audio, one at a time, quick limits."""
        path = self.folder / name
        limits = {"setup_s": 5, "turn_s": 5, "backoff_s": 0.02, "attempts": 2} | content.pop("limits", {})
        whole = {"version": 1, "bank": "bank", "conditions": ["audio"], "concurrency": 1, "limits": limits}
        path.write_text(yaml.dump(whole | content, Dumper=_WithoutAliases))
        return path

    def end_all(self) -> None:
        """No process outlives its test."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@contextmanager
def _cli(folder: Path) -> Iterator[Cli]:
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # tests started in the background: what we start would ignore Ctrl-C as well
        signal.signal(signal.SIGINT, signal.default_int_handler)
    started = Cli(folder)
    try:
        yield started
    finally:
        started.end_all()
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """`cli("report", path)` runs `rig report path`."""
    with _cli(tmp_path) as started:
        yield started


@pytest.fixture(scope="session")
def cli_in() -> Callable[[Path], AbstractContextManager[Cli]]:
    """`with cli_in(folder) as cli:` for fixtures that outlast a test."""
    return _cli


@pytest.fixture
def ended_children() -> Callable[[subprocess.Popen[str], int], None]:
    """Send a process a signal and see that it and all that it started end."""

    def send(process: subprocess.Popen[str], number: int) -> None:
        children = psutil.Process(process.pid).children(recursive=True)
        assert children, "nothing was started"
        process.send_signal(number)
        process.wait(_END_S)
        _, alive = psutil.wait_procs(children, timeout=_END_S)
        assert not alive

    return send


@pytest.fixture
def realtime() -> Callable[..., dict[str, Any]]:
    """A realtime target at an address."""
    return lambda url, **changes: (
        {
            "name": "agent",
            "adapter": "openai_realtime",
            "model": "m",
            "base_url": url,
        }
        | changes
    )
