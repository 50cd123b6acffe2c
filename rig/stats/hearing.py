"""Hearing against deciding: recognition corrected for guessing, detection, and what better hearing or better deciding
would be worth. Pure.

Credit = π R_h + (1 − π) R_m exactly, with π the share of cues truly heard, R_h the credit where heard, R_m where
missed. The probe is right with P = π + (1 − π) g: a missed cue is guessed with chance g. So cells with a wrong answer
were missed, and those with a right one are a mixture that is taken apart by g.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from statistics import NormalDist
from typing import Literal

import numpy as np

from rig.scoring.hearing import CleanCell, Fate, Heard, HeardCell
from rig.stats.bootstrap import SEED, Estimate, Sample, proportion
from rig.stats.joint import Floats, Joint, Row, Statistic, Sums, ratio

Correction = Literal["none", "options", "false_alarms"]
CORRECTIONS: tuple[Correction, ...] = ("none", "options", "false_alarms")
"""Which g: 0; 1/k; or the false-alarm rate on clean clips spread over the cue options."""

RECOGNITION_COLUMNS = ("cue", "heard", "one_of_options", "one_of_cues", "false_alarm", "probed_clean")
"""All that π depends on."""

FACTORS = ("hearing", "deciding", "acting_when_missed")

_NORMAL = NormalDist()


def rows_of(heard: Iterable[Heard], prefix: str = "") -> list[Row]:
    """All cells of one target, or of several pooled, as rows of sums; `prefix` tells two respondents apart."""
    rows = []
    for one in heard:
        rows += [Row(c.cell.item_id, c.cell.repeat, _prefixed(_cue_columns(c), prefix)) for c in one.cue]
        rows += [Row(c.item_id, c.repeat, _prefixed(_clean_columns(c), prefix)) for c in one.clean]
    return rows


def part(heard: Heard, contrast: str, group: str) -> Heard:
    """The cue-bearing cells of one group, and the clean ones of their items."""
    cue = tuple(one for one in heard.cue if one.groups.get(contrast) == group)
    items = {one.cell.item_id for one in cue}
    return Heard(cue, tuple(one for one in heard.clean if one.item_id in items), 0)


def shared(heard: Heard, cells: set[tuple[str, str]]) -> Heard:
    """Only the (item, variant) cells given, and the clean ones of their items."""
    cue = tuple(one for one in heard.cue if (one.cell.item_id, one.cell.variant_id) in cells)
    items = {one.cell.item_id for one in cue}
    return Heard(cue, tuple(one for one in heard.clean if one.item_id in items), 0)


def fates(heard: Iterable[Heard], seed: int = SEED) -> dict[Fate, Estimate | None]:
    """The share of each fate among cue-bearing cells with a probe answer; None without cells."""
    cells = [one for target in heard for one in target.cue]
    return {
        fate: proportion((Sample(float(one.fate is fate), one.cell.item_id, one.cell.repeat) for one in cells), seed)
        for fate in Fate
    }


def heard_share(heard: Iterable[Heard]) -> Estimate | None:
    """The share of cue clips whose probe answer is right."""
    return proportion(_sample(one, one.heard) for target in heard for one in target.cue)


def words_action_given_heard(heard: Iterable[Heard]) -> Estimate | None:
    """The share of heard protective clips on which the words' default was taken all the same."""
    return proportion(
        _sample(one, one.words_action)
        for target in heard
        for one in target.cue
        if one.heard and one.words_action is not None
    )


def shares(heard: Iterable[Heard]) -> dict[str, Estimate | None]:
    """Plain shares: heard, false alarms on clean clips, strict passes where heard, the words' action where heard."""
    heard = list(heard)
    return {
        "heard": heard_share(heard),
        "false_alarm": proportion(
            Sample(float(one.false_alarm), one.item_id, one.repeat)
            for target in heard
            for one in target.clean
            if one.false_alarm is not None
        ),
        "strict_given_heard": proportion(
            _sample(one, one.cell.passed) for target in heard for one in target.cue if one.heard
        ),
        "words_action_given_heard": words_action_given_heard(heard),
    }


def credit_parts(heard: Iterable[Heard]) -> dict[str, Estimate | None]:
    """Credit, and credit where the probe was right and where it was wrong."""
    cue = [one for target in heard for one in target.cue]
    return {
        "credit": proportion(_sample(one, one.cell.credit) for one in cue),
        "right_given_heard": proportion(_sample(one, one.cell.credit) for one in cue if one.heard),
        "right_given_missed": proportion(_sample(one, one.cell.credit) for one in cue if not one.heard),
    }


def recognition(drawn: Joint, correction: Correction) -> Estimate | None:
    """π; None where g cannot be had or is 1. It may be negative: worse than guessing."""
    return drawn.estimate(lambda sums: _pi(sums, correction), "cue")


def policy_when_heard(drawn: Joint, correction: Correction) -> Estimate | None:
    """R_h: credit where truly heard; None where π is not above 0."""
    return drawn.estimate(lambda sums: _when_heard(sums, correction), "cue")


def perfect_hearing(drawn: Joint, correction: Correction) -> Estimate | None:
    """What credit would gain with π = 1 and the same policy; None where nothing was heard."""
    return drawn.estimate(lambda sums: _when_heard(sums, correction) - sums.mean("credit", "cue"), "cue")


def perfect_deciding(drawn: Joint, correction: Correction) -> Estimate | None:
    """What credit would gain were every heard cue acted on rightly; None where π is below 0."""

    def gain(sums: Sums) -> Floats:
        pi = _pi(sums, correction)
        found: Floats = np.where(pi < 0, np.nan, pi - _heard_part(sums, correction, pi))
        return found

    return drawn.estimate(gain, "cue")


def detection(drawn: Joint) -> dict[str, Estimate | None]:
    """d′ and c of reporting a cue, and of taking a cue variant's action, on cue clips and their clean siblings.

    Log-linear correction: half a case is added to each count and one to each total.
    """
    found = {}
    for name, columns in (("", ("hit", "detect_cue", "false_alarm", "probed_clean")),
                          ("action_", ("act", "act_cue", "act_alarm", "act_clean"))):  # fmt: skip
        for statistic in ("d_prime", "criterion"):
            found[f"{name}{statistic}"] = drawn.estimate(_signal(*columns, statistic), columns[1])
    return found


def shapley(drawn: Joint, correction: Correction) -> dict[str, Estimate | None]:
    """The gap in credit, reference − own, split over the three factors, each the mean over all orders of swapping.

    `drawn` holds both respondents' columns, prefixed `own_` and `ref_`. None where one of them missed no cue or heard
    none, so that a factor is unknown.
    """

    def share(factor: int) -> Statistic:
        def value(sums: Sums) -> Floats:
            own, ref = _factors(sums, correction, "own_"), _factors(sums, correction, "ref_")
            total = np.zeros_like(own[0])
            orders = list(permutations(range(3)))
            for order in orders:
                mixed = list(own)
                for swapped in order:
                    before = _credit_of(mixed)
                    mixed[swapped] = ref[swapped]
                    if swapped == factor:
                        total = total + _credit_of(mixed) - before
            result: Floats = total / len(orders)
            return result

        return value

    found = {name: drawn.estimate(share(index), "own_cue") for index, name in enumerate(FACTORS)}
    found["gap"] = drawn.estimate(
        lambda sums: sums.mean("ref_credit", "ref_cue") - sums.mean("own_credit", "own_cue"), "own_cue"
    )
    return found


def _factors(sums: Sums, correction: Correction, prefix: str) -> tuple[Floats, Floats, Floats]:
    missed = sums.mean(f"{prefix}credit_missed", f"{prefix}missed")
    return _pi(sums, correction, prefix), _when_heard(sums, correction, prefix), missed


def _credit_of(factors: Sequence[Floats]) -> Floats:
    pi, when_heard, when_missed = factors
    return pi * when_heard + (1 - pi) * when_missed


def _guess(sums: Sums, correction: Correction, prefix: str = "") -> Floats:
    """g: the chance that a missed cue is named all the same."""
    if correction == "none":
        return np.zeros_like(sums[f"{prefix}cue"])
    if correction == "options":
        return sums.mean(f"{prefix}one_of_options", f"{prefix}cue")
    alarms = sums.mean(f"{prefix}false_alarm", f"{prefix}probed_clean")
    return alarms * sums.mean(f"{prefix}one_of_cues", f"{prefix}cue")


def _pi(sums: Sums, correction: Correction, prefix: str = "") -> Floats:
    guess = _guess(sums, correction, prefix)
    return ratio(sums.mean(f"{prefix}heard", f"{prefix}cue") - guess, 1 - guess)


def _heard_part(sums: Sums, correction: Correction, pi: Floats, prefix: str = "") -> Floats:
    """π R_h: the credit of right answers less that of lucky ones. With nothing missed there are no lucky ones."""
    missed = sums.mean(f"{prefix}credit_missed", f"{prefix}missed")
    lucky = np.where(sums[f"{prefix}missed"] == 0, 0.0, (1 - pi) * _guess(sums, correction, prefix) * missed)
    found: Floats = sums.mean(f"{prefix}credit_heard", f"{prefix}cue") - lucky
    return found


def _when_heard(sums: Sums, correction: Correction, prefix: str = "") -> Floats:
    pi = _pi(sums, correction, prefix)
    found: Floats = np.where(pi > 0, ratio(_heard_part(sums, correction, pi, prefix), pi), np.nan)
    return found


def _signal(hits: str, cues: str, alarms: str, cleans: str, statistic: str) -> Statistic:
    def value(sums: Sums) -> Floats:
        hit = _quantile((sums[hits] + 0.5) / (sums[cues] + 1))
        alarm = _quantile((sums[alarms] + 0.5) / (sums[cleans] + 1))
        found = hit - alarm if statistic == "d_prime" else -(hit + alarm) / 2
        result: Floats = np.where((sums[cues] > 0) & (sums[cleans] > 0), found, np.nan)
        return result

    return value


def _quantile(shares_: Floats) -> Floats:
    """Quantiles of the normal distribution; counts repeat, so each value is worked out once."""
    values, places = np.unique(shares_, return_inverse=True)
    found: Floats = np.array([_NORMAL.inv_cdf(float(value)) for value in values])[places]
    return found


def _cue_columns(one: HeardCell) -> Mapping[str, float]:
    assert one.cell.action is not None
    credit = one.cell.action.credit
    columns = {
        "cue": 1.0,
        "credit": credit,
        "heard": float(one.heard),
        "missed": float(not one.heard),
        "credit_heard": credit * one.heard,
        "credit_missed": credit * (not one.heard),
        "one_of_options": 1 / one.options,
        "one_of_cues": 1 / one.cue_options,
    }
    if one.cue_reported is not None:
        columns |= {"detect_cue": 1.0, "hit": float(one.cue_reported)}
    if one.cue_action is not None:
        columns |= {"act_cue": 1.0, "act": float(one.cue_action)}
    return columns


def _clean_columns(one: CleanCell) -> Mapping[str, float]:
    columns: dict[str, float] = {}
    if one.false_alarm is not None:
        alarm = float(one.false_alarm)
        columns |= {"probed_clean": 1.0, "false_alarm": alarm}
    if one.over_reaction is not None:
        columns |= {"act_clean": 1.0, "act_alarm": float(one.over_reaction)}
    return columns


def _prefixed(columns: Mapping[str, float], prefix: str) -> Mapping[str, float]:
    return {f"{prefix}{name}": value for name, value in columns.items()} if prefix else columns


def _sample(one: HeardCell, value: float | None) -> Sample:
    return Sample(float(value or 0), one.cell.item_id, one.cell.repeat)
