"""`rig emulate`: an embedded agent, served until interrupted."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from rig.agents.emulator import EmulatorError, emulate


def serve(
    dialect: str,
    agent: str,
    host: str,
    port: int,
    tls: Path | None,
    faults: Sequence[str],
    stamps: Path | None,
    token_env: str | None,
) -> int:
    """Serve until Ctrl-C, over TLS with a new certificate written to `tls`; the exit code.

    Raises EmulatorError, among others where `token_env` is not set.
    """
    token = None if token_env is None else os.environ.get(token_env)
    if token_env is not None and not token:
        raise EmulatorError(f"environment variable {token_env} is not set; export the token that clients are to show")
    context = None
    if tls is not None:
        from rig.agents.tls import self_signed

        context = self_signed(host, tls)

    def ready(url: str) -> None:
        what = "; ".join([dialect, *faults])
        print(f"{agent} listens at {url} ({what}); Ctrl-C ends it", file=sys.stderr, flush=True)

    try:
        anyio.run(emulate, dialect, agent, host, port, ready, context, faults, stamps, token)
    except KeyboardInterrupt:
        return 130
    return 0
