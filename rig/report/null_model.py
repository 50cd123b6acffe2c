"""What a report says beside the null gain, as data: the null test's company, robustness, repeats, verdicts compared.

None stands for "does not apply" or "was not measured", never for zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rig.report.model import Tested, Verdict
from rig.stats.bootstrap import Estimate
from rig.stats.robustness import LeftOut

Measure = Literal["null gain", "level contrast"]


@dataclass(frozen=True, slots=True)
class EveryNull:
    """The intersection–union test over all nulls: above just where it is above each of them."""

    nulls: tuple[str, ...]
    holm_p: float | None
    """The largest of the corrected p-values; 1 where the gains do not all point one way."""
    verdict: Verdict | None
    """None where one of them has none."""
    weakest: str
    """The null that the gain is smallest against."""


@dataclass(frozen=True, slots=True)
class NullTests:
    """One target against all nulls, and how often it acts at all."""

    measure: Measure
    """Null gain; level contrast for a target without a text path."""
    against: Mapping[str, Tested]
    """Null → the gain against it, the first null first."""
    every_null: EveryNull | None
    """None where the target shares no cell with one of the nulls."""
    equivalent: Mapping[float, bool | None]
    """Margin → whether the gain over the first null is shown to lie within it."""
    shift: Tested | None
    """Own audio − twin less the highest null's upper bound."""
    shift_note: str
    """The bound and whose it is, or why there is none."""
    incomplete: Estimate | None
    """Null gain from all cells, also those that lack a part; None without a text path."""
    incomplete_cells: int
    """How many of those lack a part."""
    acts_on_audio: Estimate | None
    """Share of clips on which any tool was called."""
    acts_on_twin: Estimate | None
    twin_seldom_acts: bool | None
    """The gain may rest on a twin that seldom acts; None without a gain or a twin."""


@dataclass(frozen=True, slots=True)
class Robustness:
    """One target's gain under other choices."""

    columns: Mapping[str, Tested | None]
    """Column (see `COLUMNS` in `rig.report.robustness`) → the gain under that choice, corrected within the column."""
    notes: Mapping[str, str]
    """Column → why it is None."""
    left_out: Mapping[str, LeftOut | None]
    """`family`, `sector`, `voice vendor` → the range when each is left out in turn; None with fewer than two."""


@dataclass(frozen=True, slots=True)
class Flake:
    """A clip that passes on some rollouts and not on others."""

    item_id: str
    variant_id: str
    passed: int
    rollouts: int


@dataclass(frozen=True, slots=True)
class Repeats:
    """Reliability over several rollouts of a cell, on clips."""

    rollouts: int
    """Most of any cell."""
    cells: int
    """Clips with at least two rollouts."""
    pass_all: Mapping[int, Estimate | None]
    """k → pass^k: chance that k rollouts all pass."""
    pass_any: Mapping[int, Estimate | None]
    """k → pass@k: chance that at least one of k rollouts passes."""
    agreement: Estimate | None
    """Share of pairs of rollouts of one clip that did the same."""
    flakes: tuple[Flake, ...]


@dataclass(frozen=True, slots=True)
class VerdictRule:
    """One way to say who acts on sound, against the null test's verdicts."""

    name: str
    compared: int
    """Contestants that have both."""
    credited: tuple[str, ...]
    disagree: tuple[str, ...]
    """Of the compared, those on which the rule and the null test differ."""
    lo: float | None
    """95 % bootstrap range of the number that disagree, the null test's verdicts held fixed; None where the …"""
    hi: float | None
    """… rule is a test itself."""
    rho: float | None
    """Spearman's rank correlation of what the rule goes by with the null gain; None with fewer than three, or ties."""
    rho_lo: float | None
    rho_hi: float | None
    threshold: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Disagreements:
    """Verdicts of other rules against those of the null test."""

    tested: tuple[str, ...]
    """Contestants with a verdict of the null test."""
    above: tuple[str, ...]
    rules: tuple[VerdictRule, ...]
