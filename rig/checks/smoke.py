"""A fixed small suite and its own limits: does an agent hear, answer, and call tools at all? Pure but for the list.

Counts of this one run, without intervals: eight items say whether an agent works, not how good it is. That is what a
run over a whole bank and `rig check` are for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from captures.capture import Capture, Condition, Ending
from rig.checks.judge import Judged, Measured, Outcome

SMOKE_ITEMS = (
    *("demo-collections-01", "demo-emergency-01", "demo-government-01", "demo-homesecurity-01", "demo-legal-01"),
    *("demo-maritime-01", "demo-museum-01", "demo-utilities-01"),
)
"""Eight of the items of `rig demo --quick`, with every kind of cue and a control."""
CONDITIONS = (Condition.AUDIO, Condition.TEXT_TWIN)


def judge_smoke(target: Measured, credit_at_least: float | None = None) -> list[Judged]:
    """Whether every cell ended without an error and was answered, tools were called on audio, and the least credit.

    A target of which nothing was measured (it could not be reached, say) has one limit, unmeasured. `credit_at_least`:
    mean credit over the audio cells of this run.
    """
    if target.unfinished > len(target.captures) and not any(one.ending.scored for one in target.captures):
        detail = "the target was stopped before anything was measured" + _first_message(target.captures)
        return [_judged(target, "the agent can be reached", Outcome.UNMEASURED, detail)]
    heard = [one for one in target.captures if one.condition is Condition.AUDIO]
    found = [_no_errors(target), _all_answer(target)]
    if heard:
        found.append(_calls(target, heard))
    if credit_at_least is not None:
        found.append(_credit(target, credit_at_least))
    return found


def _no_errors(target: Measured) -> Judged:
    wrong = [one for one in target.captures if not one.ending.scored]
    kinds = Counter(f"{one.ending.value} {one.error.code if one.error else ''}".strip() for one in wrong)
    detail = f"{len(wrong)} of {len(target.captures)} cells" + "".join(f"; {n} {kind}" for kind, n in kinds.items())
    untried = max(0, target.unfinished - len(wrong))
    if untried:
        detail += f"; {untried} more were not tried"
    outcome = Outcome.FAIL if wrong else Outcome.UNMEASURED if untried else Outcome.PASS
    return _judged(target, "no cell ends in an error", outcome, detail + _first_message(wrong))


def _first_message(wrong: Iterable[Capture]) -> str:
    return next((f"; the first: {one.error.message} ({_where(one)})" for one in wrong if one.error), "")


def _all_answer(target: Measured) -> Judged:
    asked = [one for one in target.captures if one.ending.scored]
    limit = "every cell is answered"
    if not asked:
        return _judged(target, limit, Outcome.UNMEASURED, "every cell ended in an error")
    silent = [one for one in asked if one.ending is Ending.NO_ANSWER]
    detail = f"{len(asked) - len(silent)} of {len(asked)} cells" + (f"; not {_where(silent[0])}" if silent else "")
    return _judged(target, limit, Outcome.FAIL if silent else Outcome.PASS, detail)


def _calls(target: Measured, heard: list[Capture]) -> Judged:
    """An agent that calls nothing on eight calls that nearly all want an action has no tools, or hears nothing."""
    asked = [one for one in heard if one.ending.scored]
    limit = "a tool is called on audio"
    if not asked:
        return _judged(target, limit, Outcome.UNMEASURED, "every audio cell ended in an error")
    calling = sum(bool(one.calls) for one in asked)
    return _judged(
        target, limit, Outcome.PASS if calling else Outcome.FAIL, f"on {calling} of {len(asked)} audio cells"
    )


def _credit(target: Measured, bound: float) -> Judged:
    earned = [cell.credit for cell in target.cells if cell.condition is Condition.AUDIO and cell.credit is not None]
    limit = f"mean credit on audio ≥ {bound:g}"
    if not earned:
        return _judged(target, limit, Outcome.UNMEASURED, "no audio cell was scored")
    mean = sum(earned) / len(earned)
    return _judged(target, limit, Outcome.PASS if mean >= bound else Outcome.FAIL, f"{mean:.3f}, {len(earned)} cells")


def _where(capture: Capture) -> str:
    variant = f"/{capture.variant_id}" if capture.variant_id else ""
    return f"{capture.item_id}{variant}, {capture.condition.value}"


def _judged(target: Measured, limit: str, outcome: Outcome, detail: str) -> Judged:
    return Judged(target.name, limit, outcome, None, detail)
