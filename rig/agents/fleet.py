"""The embedded agents as one thing: a brain and one emulator process that hosts every wanted agent in its dialect."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path

from rig.agents import brain_wire, children
from rig.agents.emulator import base_url

Spec = tuple[str, str] | tuple[str, str, tuple[str, ...]]
"""Dialect name, agent name, and faults as `rig.agents.faults` reads them."""


@asynccontextmanager
async def fleet(
    specs: Sequence[Spec],
    log_folder: Path | None = None,
    lexicon: Path | None = None,
    stamps: Path | None = None,
) -> AsyncIterator[Mapping[Spec, str]]:
    """Run the agents while the context lasts; gives the base URL of each.

    `brain.log` and `emulator.log` are written into `log_folder`, or their lines go to our standard error; what was sent
    when is appended to `stamps`. Raises `rig.agents.children.ChildError` when a process does not start.
    """
    wanted = list(dict.fromkeys(specs))
    brain_log, emulator_log = (
        (log_folder / "brain.log", log_folder / "emulator.log") if log_folder is not None else (None, None)
    )
    async with children.brain(brain_log, lexicon) as brain:
        arguments = ["--brain-port", str(brain.port)]
        if stamps is not None:
            arguments += ["--stamps", str(stamps)]
        for dialect, agent, *faults in wanted:
            arguments += ["--serve", json.dumps([dialect, agent, *chain.from_iterable(faults)])]
        token = {brain_wire.TOKEN_ENV: brain.token}
        async with children.child("rig.agents.emulator", arguments, token, emulator_log) as ready:
            ports = [int(port) for port in ready["ports"]]
            yield {spec: base_url(spec[0], "127.0.0.1", port) for spec, port in zip(wanted, ports, strict=True)}
