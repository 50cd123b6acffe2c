"""What a report says, as data: frozen, complete, without any text layout. Built by `rig.report.build`.

None stands for "does not apply" or "was not measured", never for zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from captures.capture import Condition, Ending
from rig.bank.models import CueKind
from rig.stats.bootstrap import Estimate

if TYPE_CHECKING:
    from rig.report.floors import FloorReport
    from rig.report.harm_model import Audit, HarmReport
    from rig.report.hearing_model import HearingReport
    from rig.report.null_model import Disagreements, NullTests, Repeats, Robustness
    from rig.report.transcripts import Transcripts

Verdict = Literal["above", "below", "none"]
PROBE_READINGS = ("strict_missing", "strict_wrong", "lenient_missing", "lenient_wrong")


@dataclass(frozen=True, slots=True)
class Tested:
    """A difference from the null, and what it amounts to after Holm's correction."""

    estimate: Estimate
    null: str
    """The target compared with."""
    family: str | None = None
    """The family of tests it belongs to; None outside of any (only contestants are tested)."""
    holm_p: float | None = None
    verdict: Verdict | None = None
    """None where there is no corrected p."""


@dataclass(frozen=True, slots=True)
class Family:
    """One family of tests."""

    name: str
    tested: tuple[str, ...]
    missing: tuple[str, ...]
    """Targets whose p-value could not be had: not counted in the family."""


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """One latency of one target, seconds. A percentile is None where `n` is too small for it."""

    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    n: int
    void: int
    """Measured, but spoilt by our own timing: in no percentile."""
    lo: float | None = None
    """Lower and …"""
    hi: float | None = None
    """… upper bound of the median's 95 % interval; None where there is none."""
    method: str = ""
    """Of that interval, or why there is none."""


@dataclass(frozen=True, slots=True)
class PacingSummary:
    """Lateness of our chunks over a target's paced captures, milliseconds."""

    p50_ms: float
    """Median of the captures' medians."""
    p99_ms: float
    """Largest of the captures' 99th percentiles."""
    max_ms: float
    captures: int


@dataclass(frozen=True, slots=True)
class Gaps:
    """How often the playback of replies would have run dry, over audio cells."""

    replies: int
    with_gaps: int
    seconds: float
    """Of all gaps together."""
    longest_share: float
    """Largest share of a reply's time, from its first to its last sample, that was such silence."""


@dataclass(frozen=True, slots=True)
class SecondTurns:
    """Second turns of one target: recorded beside the first turns and in no other measure."""

    recorded: int
    answered: int
    """Those in which the agent's answer was measured; the others say why not in their captures."""
    credit: Estimate | None
    """By the golds of the second turn, on audio cells; None where none was scored."""


@dataclass(frozen=True, slots=True)
class TargetReport:
    """All that was measured of one target."""

    name: str
    role: str
    adapter: str
    model: str
    chunk_ms: int | None
    pace: float | None
    """Both None where no capture streamed audio, as in file mode; a pace of 0 was streamed at once."""
    credit_cue_bearing: Estimate | None
    credit_neutral: Estimate | None
    credit_by_cue_kind: Mapping[CueKind, Estimate]
    selection_cue_bearing: Estimate | None
    """Credit by the tool's name alone."""
    first_call_cue_bearing: Estimate | None
    """Credit of the first call alone."""
    audio_minus_twin: Estimate | None
    null_gain: Tested | None
    has_text_path: bool
    """Whether any text twin was scored."""
    level_contrast: Tested | None
    """Only of targets without a text path."""
    both_right: Estimate | None
    both_right_against_null: Tested | None
    twin_both_right: Estimate | None
    """Self-check: 0 wherever golds differ."""
    control_credit: Estimate | None
    """Invariant controls, in no other measure."""
    probe: Mapping[str, Estimate | None] | None
    """The four readings."""
    probe_note: str
    """Why there is no probe, or how its answers were had."""
    endings: Mapping[Ending, int]
    """Cells by the ending of their last attempt; all seven."""
    attempts: int
    retried: int
    """Cells with more than one attempt."""
    several_calls: int
    """Scored turns with more than one call."""
    co_executed: int
    """Turns with the protective call and the words' default together."""
    latency: Mapping[str, LatencySummary | None]
    """Every latency name; None where not measured."""
    pacing: PacingSummary | None
    latency_parts: Mapping[str, LatencySummary | None] = field(default_factory=dict)
    """The parts of voice to voice; None where not measured."""
    second_turn: SecondTurns | None = None
    """None where no first call started one."""
    both_right_items: int = 0
    """Items that `both_right` is about; those of them that were measured are its `items`."""
    repeats: Repeats | None = None
    """None where no clip was answered twice."""
    null_tests: NullTests | None = None
    """None without a gain over a null."""
    robustness: Robustness | None = None
    """As `null_tests`."""
    transcripts: Transcripts | None = None
    """What was heard of the caller's words; None where no transcript was given."""
    provenance: tuple[tuple[str, str], ...] = ()
    """Model, route, versions, settings …: what and its value."""
    gaps: Gaps | None = None
    """None where no reply was heard, or none was watched for gaps."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One cell on which targets that should agree do not."""

    item_id: str
    variant_id: str | None
    condition: Condition
    repeat: int
    answers: Mapping[str, str]
    """Target → what it did, from what the agent sent: escape it."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the targets of one embedded agent or one family do the same, cell by cell."""

    group: str
    targets: tuple[str, ...]
    agree: int
    cells: int
    """Cells measured on at least two of them."""
    differing: tuple[Disagreement, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """One report on one or several runs over one bank."""

    runs: tuple[str, ...]
    bank: str
    targets: tuple[TargetReport, ...]
    null: str | None
    """The words-only target that gains are measured against: the first of `nulls`."""
    families: tuple[Family, ...]
    agreements: tuple[Agreement, ...]
    not_run: tuple[str, ...]
    calibrations: tuple[str, ...]
    """How far the rig's own marks were off, a line per run."""
    """What was not run and why, and what failed; one line each."""
    warnings: tuple[str, ...]
    void_limit_ms: tuple[float, ...]
    """The limits that the runs use."""
    roles_derived: bool
    """Some tool roles are derived from golds, not annotated."""
    audible_version: int
    """Of the rule for what counts as audible."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Latency → its origin in words."""
    harm: HarmReport | None = None
    hearing: HearingReport | None = None
    nulls: tuple[str, ...] = ()
    """All words-only targets that the null tests use."""
    disagreements: Disagreements | None = None
    """None without a verdict of the null test."""
    floors: FloorReport | None = None
    """Degenerate agents on the same clips, where asked for."""
    without_null_test: tuple[str, ...] = ()
    """Which contestants have no null test or no interval, and why; one line each."""
    audit: Audit | None = None
    """A person's check of classified outcomes, where one was given."""

    def target(self, name: str) -> TargetReport:
        """The target of that name; KeyError where there is none."""
        for target in self.targets:
            if target.name == name:
                return target
        raise KeyError(name)
