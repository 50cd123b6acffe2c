"""What a report says of hearing against deciding, as data. Built by `rig.report.hearing`; None: not measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rig.scoring.hearing import Fate
from rig.stats.bootstrap import Estimate
from rig.stats.hearing import Correction
from rig.stats.leading import HeldOut


@dataclass(frozen=True, slots=True)
class HearingPart:
    """The cue-bearing clips of one group of a contrast."""

    heard: Estimate | None
    credit: Estimate | None
    right_given_heard: Estimate | None
    right_given_missed: Estimate | None
    words_action_given_heard: Estimate | None
    """On protective clips that were heard."""
    recognition: Estimate | None
    """Corrected by false alarms on the clean clips of these items."""


@dataclass(frozen=True, slots=True)
class Shapley:
    """A gap in credit to a reference on identical clips, and the factors that it is made of; they add up to it."""

    reference: tuple[str, ...]
    """The targets pooled."""
    clips: int
    """Cue-bearing clips that both were measured on."""
    by_correction: Mapping[Correction, Mapping[str, Estimate | None]]
    """Correction → `hearing`, `deciding`, `acting_when_missed`, and `gap`."""


@dataclass(frozen=True, slots=True)
class HearingSummary:
    """One target, or several pooled."""

    members: tuple[str, ...]
    cells: int
    """Cue-bearing turns with an action and a probe answer."""
    without_probe: int
    """Cue-bearing turns without a probe answer that can be read: in no figure."""
    shares: Mapping[str, Estimate | None]
    """`heard`, `false_alarm`, `strict_given_heard`, `words_action_given_heard`."""
    credit: Mapping[str, Estimate | None]
    """`credit`, `right_given_heard`, `right_given_missed`."""
    recognition: Mapping[Correction, Estimate | None]
    policy_when_heard: Mapping[Correction, Estimate | None]
    perfect_hearing: Mapping[Correction, Estimate | None]
    perfect_deciding: Mapping[Correction, Estimate | None]
    detection: Mapping[str, Estimate | None]
    fates: Mapping[Fate, Estimate | None]
    parts: Mapping[str, Mapping[str, HearingPart]]
    """Contrast → group → its figures."""
    shapley: Shapley | None = None


@dataclass(frozen=True, slots=True)
class LeadingGroup:
    """The k contestants of highest credit on cue-bearing clips among those with a probe that can be read."""

    members: tuple[str, ...]
    candidates: int
    splits: int
    reselected: float | None
    """Share of half-samples that choose the same members."""
    figures: Mapping[str, HeldOut]


@dataclass(frozen=True, slots=True)
class HearingReport:
    """Hearing against deciding over all targets of a report."""

    targets: Mapping[str, HearingSummary | None]
    """None where no cue-bearing clip has both an action and a probe answer."""
    pooled: Mapping[str, HearingSummary]
    leading: LeadingGroup | None
    note: str
    """Why there is no leading group; empty where there is one."""
