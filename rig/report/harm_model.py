"""What a report says of harm, as data. Built by `rig.report.harm`; None stands for "not measured", never for zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rig.bank.models import Grounding
from rig.report.model import Family, Tested
from rig.scoring.harm import HarmCell, Outcome, Response, Situation
from rig.stats.bootstrap import Estimate


@dataclass(frozen=True, slots=True)
class TargetHarm:
    """Harm of one target, or of several pooled: every rate without weights, then risk."""

    counts: Mapping[Situation, Mapping[Outcome, int]]
    """Scored turns on clips, controls and held items left out."""
    rates: Mapping[str, Estimate | None]
    """Those of `rig.stats.harm.RATES`, on clips."""
    twin_rates: Mapping[str, Estimate | None]
    """The same on the text twin."""
    responses: Mapping[Response, Estimate | None]
    """On protective clips; they add up to 1."""
    co_execution: Estimate | None
    """Protective call and the words' default in one turn, on protective clips."""
    over_reaction: Estimate | None
    balanced_credit: Estimate | None
    risk: Mapping[tuple[str, str], Estimate | None]
    """(tiers, outcomes) → per 100 calls."""
    risk_without_service: Estimate | None
    """Primary weights, protective and clean clips alone."""
    without_severity: int
    """Clips whose item states no severity: in no weighting but the flat ones."""
    derived: int
    """Clips whose roles are derived from golds, not annotated."""
    unsafe_against_null: Tested | None = None
    unsafe_against_twin: Tested | None = None

    @property
    def clips(self) -> int:
        """Scored turns on clips."""
        return sum(sum(counts.values()) for counts in self.counts.values())

    @property
    def beyond_equal_rates(self) -> bool | None:
        """Whether unsafe execution is more frequent than over-triggering; None where either was not measured."""
        unsafe, over = self.rates["unsafe_execution"], self.rates["over_trigger"]
        return None if unsafe is None or over is None else unsafe.mean > over.mean


@dataclass(frozen=True, slots=True)
class NobodyRight:
    """A clip on which no contestant passes."""

    item_id: str
    variant_id: str
    situation: Situation
    cue: str
    gold: str
    contestants: int
    usual: str
    """What most of them did, from what they sent: escape it."""
    usual_count: int
    heard: int
    """Contestants whose probe was right on this clip …"""
    probed: int
    """… of those asked."""


@dataclass(frozen=True, slots=True)
class Departures:
    """Who departs from one cited rule: exposure, not a rate of the rule's own."""

    citation: str
    grounding: Grounding | None
    items: tuple[str, ...]
    cells: int
    """Cue-bearing clips of those items."""
    by_target: Mapping[str, tuple[int, int]]
    """Target → (clips on which its first call is not the prescribed one, clips measured)."""
    any_: tuple[str, ...]
    """Contestants that depart on at least one clip."""
    half: tuple[str, ...]
    """… on at least half of them."""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One classified outcome for a person to check. Our class stands beside it, never in the file."""

    target: str
    item_id: str
    variant_id: str
    repeat: int
    situation: Situation
    scenario: str
    policy: str
    transcript: str
    cue: str
    right_action: str
    rationale: str
    words_default: str
    called: str
    """From what the agent sent: escape it."""
    outcome: Outcome

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Which cell it is."""
        return self.target, self.item_id, self.variant_id, self.repeat


@dataclass(frozen=True, slots=True)
class Audit:
    """How far a person agrees with our classes."""

    judged: int
    agree: int
    lo: float
    hi: float
    """95 % Wilson interval of the share that agrees, on the outcomes judged."""
    unjudged: int
    """Rows left blank."""
    differing: tuple[tuple[AuditRow, Outcome, str], ...]
    """Row, the person's class, and note."""


@dataclass(frozen=True, slots=True)
class HarmReport:
    """Harm over all targets of a report."""

    targets: Mapping[str, TargetHarm]
    pooled: Mapping[str, TargetHarm]
    """Several contestants together: name of the group → theirs."""
    families: tuple[Family, ...]
    nobody_right: tuple[NobodyRight, ...]
    departures: tuple[Departures, ...]
    cells: Mapping[str, tuple[HarmCell, ...]]
    """Target → its classified turns, on clips and twins."""
    sample: tuple[AuditRow, ...]
    """Drawn with a fixed seed, up to ten of each class, 60 in all where there are as many."""
