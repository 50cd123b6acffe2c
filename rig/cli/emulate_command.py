"""`rig emulate`: an embedded agent, served until interrupted."""

from __future__ import annotations

import sys

import anyio

from rig.agents.emulator import emulate


def serve(dialect: str, agent: str, host: str, port: int) -> int:
    """Serve until Ctrl-C; the exit code."""

    def ready(url: str) -> None:
        print(f"{agent} listens at {url} ({dialect}); Ctrl-C ends it", file=sys.stderr, flush=True)

    try:
        anyio.run(emulate, dialect, agent, host, port, ready)
    except KeyboardInterrupt:
        return 130
    return 0
