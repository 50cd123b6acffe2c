"""A run folder with the cells it was made of, planned again from its own `run.json`. Needs no key and no network."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adapters import registry
from adapters.dialect import ClientDialect, OwnTransport
from captures.capture import Capture
from captures.cassette import read_cassette
from captures.frames import LoggedFrame
from captures.run_folder import RunFolder
from rig.config import parse_config
from rig.engine.plan import Cell
from rig.engine.prepare import Prepared, prepare
from rig.engine.replay_cascade import replayed_cell

_PLACEHOLDER = "not-needed-to-read"


class ReplayError(ValueError):
    """Stored frames that cannot be read again; one line that says why and what to do."""


@dataclass(frozen=True, slots=True)
class StoredCall:
    """One attempt: what was captured, the cell it was made for, and its frames."""

    capture: Capture
    cell: Cell
    frames: tuple[LoggedFrame, ...]


class StoredRun:
    """A run folder, with its plan."""

    def __init__(self, path: Path) -> None:
        """Raises RunFolderError, BankError, ConfigError, and ReplayError for a run that was not made here."""
        self.folder = RunFolder.open(path)
        config = copy.deepcopy(self.folder.run_json.get("config"))
        if not isinstance(config, dict):
            raise ReplayError(f"{path}: was imported and holds no frames")
        self.prepared = _prepared(self.folder, config, path)
        self.cells: Mapping[str, Cell] = {cell.identity: cell for cell in self.prepared.plan.cells}

    def call(self, capture: Capture) -> StoredCall:
        """The attempt behind `capture`.

        Raises ReplayError where it has no frames, or bank or settings are no longer those of the run; CassetteError
        where its frames cannot be read.
        """
        cell = self.cells.get(capture.identity) or replayed_cell(self.prepared, capture)
        if cell is None:
            raise ReplayError("bank or config are no longer those of the run; give its own bank")
        if capture.cassette is None:
            raise ReplayError("no frames were kept")
        try:
            _, frames = read_cassette(self.folder.path / capture.cassette)
        except OSError as error:
            raise ReplayError(f"{capture.cassette} cannot be read ({error.strerror})") from None
        return StoredCall(capture, cell, tuple(frames))

    def client(self, target: str) -> ClientDialect:
        """A new client half for one attempt at `target`."""
        config = next(one for one in self.prepared.resolved.config.targets if one.name == target)
        dialect = registry.dialect(config.adapter)
        pending = "http://127.0.0.1:1/v1" if isinstance(dialect, OwnTransport) else "ws://127.0.0.1:1/"
        return dialect.client(self.prepared.settings(config, pending if config.embedded_agent else None))


class _Anything(dict[str, str]):
    """An environment in which every name is set: what is read again is sent nowhere."""

    def get(self, key: str, default: object = None) -> str:
        return _PLACEHOLDER


def _prepared(folder: RunFolder, config: dict[str, Any], path: Path) -> Prepared:
    described = folder.run_json.get("targets")
    for target in config["targets"] if isinstance(config.get("targets"), list) else ():
        # What a Python class declared then: the class itself is not needed again, and may have changed.
        told = described.get(target["name"], {}).get("declared") if isinstance(described, dict) else None
        if told is not None:
            target["settings"]["declared"] = told
    resolved = parse_config(json.dumps(config), str(path / "run.json"), Path(), _Anything())
    bank = folder.run_json.get("bank")
    where = bank.get("path") if isinstance(bank, dict) else None
    if isinstance(where, str):
        resolved = replace(resolved, config=resolved.config.model_copy(update={"bank": where}))
    return prepare(resolved)
