"""A config whose every target stands once for each way of ending turns that is to be tried."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from adapters.dialect import TurnMode
from rig.bank.loader import load_bank
from rig.bank.models import Bank, CueKind
from rig.config import ConfigError, ResolvedConfig, parse_config
from rig.engine.prepare import bank_location, checked_targets

DEFAULT: Mapping[TurnMode, Mapping[str, Sequence[Any]]] = {
    TurnMode.SERVER_VAD: {"silence_duration_ms": (200, 500, 800)},
    TurnMode.SEMANTIC_VAD: {},
    TurnMode.MANUAL: {},
}
MAX_POINTS = 200
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Point:
    """One way of ending turns, on one target."""

    name: str
    """The target's name in the run."""
    target: str
    """Its name in the config."""
    mode: TurnMode
    parameters: Mapping[str, Any]

    @property
    def label(self) -> str:
        """`server_vad silence_duration_ms 500`."""
        return " ".join([self.mode, *(f"{name} {value}" for name, value in self.parameters.items())])


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is run."""

    resolved: ResolvedConfig
    points: tuple[Point, ...]
    left_out: tuple[str, ...]
    """What a target does not offer, one line each."""


def expanded(resolved: ResolvedConfig, environ: Mapping[str, str]) -> Sweep:
    """The sweep of a config.

    Its own `sweep:` says what is tried, else `DEFAULT`; items are those whose caller hesitates or is cut, unless it
    names some itself. Raises ConfigError where nothing is left to try.
    """
    config = resolved.config
    tried = config.sweep or DEFAULT
    points: list[Point] = []
    targets: list[dict[str, Any]] = []
    left_out: list[str] = []
    for raw, target in zip(resolved.public["targets"], config.targets, strict=True):
        for mode, parameters in _ways(tried):
            point = Point(_name(target.name, mode, parameters), target.name, mode, parameters)
            made = {**raw, "name": point.name, "turn_control": {"mode": str(mode), "parameters": dict(parameters)}}
            refused = _refused({**resolved.public, "targets": [made]}, environ)
            if refused is not None:
                left_out.append(f"{target.name}: {point.label}: {refused}")
                continue
            points.append(point)
            targets.append(made)
    if not points:
        raise ConfigError("config", ["sweep: nothing of it is offered by any target", *left_out])
    if len(points) > MAX_POINTS:
        raise ConfigError("config", [f"sweep: {len(points)} points; at most {MAX_POINTS} are run"])
    raw_config = {**resolved.public, "conditions": ["audio"], "targets": targets}
    raw_config.pop("sweep", None)
    if config.items == ("*",):
        raw_config["items"] = _hesitant(load_bank(bank_location(resolved), config.engine))
    again = parse_config(json.dumps(raw_config), "config", resolved.folder, environ)
    return Sweep(again, tuple(points), tuple(left_out))


def _ways(tried: Mapping[TurnMode, Mapping[str, Sequence[Any]]]) -> Iterator[tuple[TurnMode, dict[str, Any]]]:
    for mode, values in tried.items():
        for chosen in product(*values.values()):
            yield mode, dict(zip(values, chosen, strict=True))


def _name(target: str, mode: TurnMode, parameters: Mapping[str, Any]) -> str:
    parts = [target, str(mode), *(f"{name}-{value}" for name, value in parameters.items())]
    return _UNFIT.sub("_", ".".join(parts))[:_LONGEST_NAME]


def _refused(raw: Mapping[str, Any], environ: Mapping[str, str]) -> str | None:
    """Why a config of one target cannot be used; None when it can."""
    try:
        _, problems = checked_targets(parse_config(json.dumps(raw), "config", Path(), environ))
    except ConfigError as error:
        return error.problems[0]
    return problems[0] if problems else None


def _hesitant(bank: Bank) -> list[str]:
    found = [
        item.id
        for item in bank.items
        if any(bank.cue_kind(item, variant) is CueKind.DISFLUENCY_SILENCE for variant in item.variants)
    ]
    if not found:
        raise ConfigError("config", ["items: no item of the bank hesitates or breaks off; name some"])
    return found
