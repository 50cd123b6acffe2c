"""Starts the processes of Python agents, and asks a class what it can do before anything is planned."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from rig.agents.children import process

TOKEN_ENV = "RIG_AGENT_TOKEN"
_DESCRIBE_LIMIT_S = 120.0
_MAX_ANSWER_BYTES = 64 * 1024
_LOG_TAIL_LINES = 1


@dataclass(frozen=True, slots=True)
class Spec:
    """One class to run."""

    driver: str
    folder: Path
    """Of the config: files and modules are looked for there."""
    python: str | None = None
    arguments: tuple[tuple[str, str], ...] = field(default=())

    def command(self, *more: str) -> list[str]:
        """What starts it."""
        host = str(files("rig.python_agents").joinpath("host.py"))
        arguments = [part for name, value in self.arguments for part in ("--argument", f"{name}={value}")]
        where = ["--driver", self.driver, "--folder", str(self.folder)]
        return [self.python or sys.executable, host, *where, *arguments, *more]


class AgentClassError(ValueError):
    """A class that cannot be used. `problems`: one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


def spec_of(settings: Mapping[str, Any], folder: Path) -> Spec:
    """Of a target's `settings:`, which the dialect has checked."""
    arguments = tuple(sorted(dict(settings.get("arguments") or {}).items()))
    return Spec(str(settings["driver"]), folder, settings.get("python"), arguments)


@cache
def describe(spec: Spec) -> Mapping[str, Any]:
    """What the class declares, by running it once. Raises AgentClassError."""
    try:
        done = subprocess.run(
            spec.command("--describe"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_DESCRIBE_LIMIT_S,
            check=False,
        )
    except OSError as error:
        raise AgentClassError([f"interpreter {spec.python!r} cannot be started ({error.strerror})"]) from None
    except subprocess.TimeoutExpired:
        raise AgentClassError([f"{spec.driver} was not loaded within {_DESCRIBE_LIMIT_S:g} s"]) from None
    try:
        answer = json.loads(done.stdout[:_MAX_ANSWER_BYTES])
        if answer["ready"]:
            return {name: value for name, value in answer.items() if name != "ready"}
        problems = [str(problem) for problem in answer["problems"]]
    except (ValueError, KeyError, TypeError):
        told = done.stderr.decode(errors="replace").strip().splitlines()[-_LOG_TAIL_LINES:]
        problems = [f"{spec.driver}: its process ended with {done.returncode}: {' '.join(told)}"]
    raise AgentClassError(problems)


@asynccontextmanager
async def hosts(specs: Mapping[str, Spec], logs: Path | None) -> AsyncIterator[Mapping[str, str]]:
    """Run the agents while the context lasts; target name → address, token included. Raises ChildError."""
    addresses: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        for target, spec in specs.items():
            token = secrets.token_urlsafe(32)
            log = None if logs is None else logs / f"agent-{target}.log"
            ready = await stack.enter_async_context(
                process(spec.command(), {TOKEN_ENV: token}, log, name=f"agent {spec.driver}", folder=spec.folder)
            )
            addresses[target] = f"tcp://127.0.0.1:{int(ready['port'])}/?token={token}"
        yield addresses
