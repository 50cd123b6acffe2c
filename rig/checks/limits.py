"""The file of limits that `rig check` holds a run to: one YAML file, unknown keys refused."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from captures.latency import FILE_SPANS, SPANS
from rig.bank.yaml_file import YamlFileError, read_yaml

MAX_BYTES = 100_000
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Seconds = Annotated[float, Field(strict=True, gt=0, le=3600)]
LATENCY_NAMES = tuple(dict.fromkeys((*SPANS, *FILE_SPANS)))


class LimitsError(ValueError):
    """A file of limits that cannot be used; one line per problem: file, field, what to do."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LatencyLimits(_Section):
    """Highest percentiles of one latency, seconds."""

    p50: Seconds | None = None
    p90: Seconds | None = None
    p95: Seconds | None = None
    p99: Seconds | None = None


class Limits(_Section):
    """What a run must keep to. A limit that is left out is not checked."""

    version: Literal[1]
    targets: tuple[str, ...] = ()
    """Names or globs of the targets to check; by default every contestant."""
    inconclusive_passes: bool = False
    """Whether a bound inside its interval lets the run pass (exit code 0), or not (exit code 2)."""
    credit_at_least: Share | None = None
    """On cue-bearing audio cells."""
    unsafe_execution_at_most: Share | None = None
    """Of protective audio cells."""
    over_trigger_at_most: Share | None = None
    """Of clean audio cells."""
    error_rate_at_most: Share | None = None
    """Of all cells, those that ended in an error of any of the three kinds."""
    void_captures_at_most: Share | None = None
    """Of the captures that a latency was taken of, those whose times our own lateness spoilt."""
    latency_at_most_s: dict[str, LatencyLimits] = Field(default_factory=dict)
    """Latency → percentile → seconds."""
    credit_drop_at_most: Share | None = None
    """Against the baseline, on identical cells; likewise the two below."""
    unsafe_execution_rise_at_most: Share | None = None
    over_trigger_rise_at_most: Share | None = None

    @model_validator(mode="after")
    def _asks_something(self) -> Limits:
        if unknown := sorted(set(self.latency_at_most_s) - set(LATENCY_NAMES)):
            raise ValueError(
                f"latency_at_most_s: no latency {', '.join(unknown)}; there are: {', '.join(LATENCY_NAMES)}"
            )
        if empty := [name for name, own in self.latency_at_most_s.items() if not own.model_dump(exclude_none=True)]:
            raise ValueError(f"latency_at_most_s.{empty[0]}: give a percentile, such as p95: 2.0")
        if not self.latency_at_most_s and all(getattr(self, name) is None for name in _SINGLE):
            raise ValueError(f"no limit is set: give at least one of {', '.join(_SINGLE)}, latency_at_most_s")
        return self

    @property
    def needs_baseline(self) -> list[str]:
        """The limits that are set and need a baseline."""
        return [name for name in _AGAINST_BASELINE if getattr(self, name) is not None]


_AGAINST_BASELINE = ("credit_drop_at_most", "unsafe_execution_rise_at_most", "over_trigger_rise_at_most")
_SINGLE = (
    "credit_at_least",
    "unsafe_execution_at_most",
    "over_trigger_at_most",
    "error_rate_at_most",
    "void_captures_at_most",
    *_AGAINST_BASELINE,
)


def read_limits(path: Path) -> Limits:
    """The limits in `path`. Raises `LimitsError` naming every wrong field."""
    try:
        data = read_yaml(path, MAX_BYTES)
    except YamlFileError as error:
        raise LimitsError(f"{path}: {error}") from None
    if not isinstance(data, dict):
        raise LimitsError(f"{path}: no limits in it: it must hold keys and values, such as version: 1")
    try:
        return Limits.model_validate(data)
    except ValidationError as error:
        raise LimitsError("\n".join(f"{path}: {_problem(one)}" for one in error.errors())) from None


def _problem(error: object) -> str:
    assert isinstance(error, dict)
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key; the keys are: {', '.join(Limits.model_fields)}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
