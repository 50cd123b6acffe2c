"""From measures to tags: which measures speak for a tag, which other tags speak against it, and how sure it is.

A condition is a measure above or below its limit, and counts from 0 to 1 by a logistic curve that is 0.5 at the limit.
A tag is as sure as its weakest condition, and no surer than the tags that rule it out leave room for. The limits are
data: `hearing_limits.yaml`, written by `rig.agents.evaluation`. Pure but for reading that file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml

AUDIBLE = 0.5
"""A tag that is at least this sure is given."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a tag rests on: measures that must lie above or below their limit, and tags that rule it out."""

    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    """Tags of earlier rules."""

    @property
    def measures(self) -> tuple[str, ...]:
        """All its measures."""
        return (*self.above, *self.below)


@dataclass(frozen=True, slots=True)
class Limit:
    """Where a condition is as good as not met: its measure's value, and the value's change that makes e to 1 of it."""

    at: float
    scale: float


_ALARMS = ("co_alarm", "smoke_alarm", "monitor_beep", "beeping", "siren")
RULES: dict[str, Rule] = {
    "keypad": Rule(above=("keypad_digits",)),
    "siren": Rule(above=("siren_db", "siren_cents")),
    "co_alarm": Rule(above=("temporal_four",), unless=("keypad", "siren")),
    "smoke_alarm": Rule(above=("temporal_three",), unless=("keypad", "siren")),
    "monitor_beep": Rule(above=("monitor",), unless=("keypad", "siren")),
    "beeping": Rule(above=("repeated",), unless=("keypad", "siren")),
    "noise_burst": Rule(above=("noise_s",)),
    "background_noise": Rule(below=("floor_gap_db",), unless=("noise_burst",)),
    "whispered": Rule(below=("voiced_share",), unless=("noise_burst", "background_noise")),
    # Bursts and keys are louder than the caller, so they would stand for the caller's level.
    "loud": Rule(above=("speech_dbfs",), unless=("noise_burst", "keypad")),
    "agitated": Rule(above=("speech_dbfs", "onsets_per_s"), unless=("noise_burst", "keypad")),
    "quiet": Rule(below=("speech_dbfs",)),
    "child_voice": Rule(above=("f0_hz",), unless=("loud", "whispered")),
    # What is left of a voice under a tone or a noise looks like a second pitch.
    "second_voice": Rule(
        above=("both_voices_s",),
        below=("voiced_run_s", "range_st"),
        unless=("whispered", "keypad", "background_noise", *_ALARMS),
    ),
    "cut_off": Rule(above=("cut_db",), below=("end_flatness",), unless=("noise_burst", "keypad", *_ALARMS)),
    "breathy": Rule(
        below=("clarity",),
        above=("soft_share",),
        unless=("noise_burst", "whispered", "background_noise", "second_voice", "child_voice"),
    ),
    "blurred": Rule(
        below=("articulation_db", "onsets_per_s"), unless=("noise_burst", "background_noise", "whispered", "siren")
    ),
    "exaggerated": Rule(
        above=("range_st",),
        below=("articulation_db",),
        unless=(
            *("child_voice", "second_voice", "whispered", "noise_burst", "background_noise", "loud", "keypad"),
            *("blurred", *_ALARMS),
        ),
    ),
}
"""Tag → rule. A later rule may refer to earlier ones."""

BY_HAND: dict[str, dict[str, Limit]] = {
    "keypad": {"keypad_digits": Limit(1.5, 0.3)},
    "siren": {"siren_db": Limit(18.0, 0.5), "siren_cents": Limit(1000.0, 80.0)},
    **{
        tag: {measure: Limit(0.75, 0.05)}
        for tag, measure in (
            ("co_alarm", "temporal_four"),
            ("smoke_alarm", "temporal_three"),
            ("monitor_beep", "monitor"),
            ("beeping", "repeated"),
        )
    },
}
"""Limits of what has a standard behind it, or too few clips to fit anything: likeness to the known pattern."""

Limits = Mapping[str, Mapping[str, Limit]]
"""Tag → measure → limit."""


def limits_path() -> Path:
    """The packaged data file."""
    return Path(str(files("rig.agents").joinpath("hearing_limits.yaml")))


@cache
def fitted_limits() -> Limits:
    """The limits of the packaged data file, and those by hand."""
    found = yaml.safe_load(limits_path().read_text(encoding="utf-8"))["limits"]
    fitted = {
        tag: {measure: Limit(float(at), float(scale)) for measure, (at, scale) in conditions.items()}
        for tag, conditions in found.items()
    }
    return {**fitted, **BY_HAND}


def confidences(measures: Mapping[str, float], limits: Limits | None = None) -> dict[str, float]:
    """Tag → how sure, 0 to 1, for every tag that there are limits for."""
    limits = fitted_limits() if limits is None else limits
    sure: dict[str, float] = {}
    for tag, rule in RULES.items():
        if tag not in limits:
            continue  # while limits are being fitted; rules refer to earlier ones only
        own = [_met(measures[name], limits[tag][name], 1.0) for name in rule.above]
        own += [_met(measures[name], limits[tag][name], -1.0) for name in rule.below]
        sure[tag] = min(*own, *(1.0 - sure[other] for other in rule.unless), 1.0)
    return sure


def _met(value: float, limit: Limit, sign: float) -> float:
    return 1.0 / (1.0 + math.exp(min(60.0, max(-60.0, -sign * (value - limit.at) / limit.scale))))
