"""Do targets that share an agent or a family do the same, cell by cell? Compares what they did, not what it earned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from captures.capture import Capture, Condition, Ending, ObservedCall
from rig.report.model import Agreement, Disagreement
from rig.report.runs import TargetRun
from rig.scoring.cells import ScoredCell, counted_calls
from rig.scoring.match import shown, values_match
from rig.scoring.probe import ProbeReading

_Key = tuple[str, str | None, Condition, int]
Answer = ObservedCall | ProbeReading | str
"""The first call, the probe's reading, or in words why there is neither."""


def agreements(targets: Sequence[TargetRun], cells: Mapping[str, Iterable[ScoredCell]]) -> tuple[Agreement, ...]:
    """One entry per embedded agent and per family that several targets share."""
    groups: dict[tuple[str, ...], str] = {}
    for kind in ("embedded_agent", "family"):
        shared: dict[str, list[str]] = {}
        for target in targets:
            if name := target.settings.get(kind):
                shared.setdefault(str(name), []).append(target.name)
        for name, members in shared.items():
            if len(members) > 1:
                groups.setdefault(tuple(members), f"{kind.replace('_', ' ')} {name}")
    answers = {target.name: answers_of(target.captures, cells[target.name]) for target in targets}
    return tuple(_agreement(group, members, answers) for members, group in groups.items())


def answers_of(captures: Iterable[Capture], cells: Iterable[ScoredCell]) -> dict[_Key, Answer]:
    """What the target did in each cell where that was measured."""
    readings = {cell.identity: cell.probe for cell in cells if cell.probe is not None}
    found: dict[_Key, Answer] = {}
    for capture in captures:
        answer: Answer | None
        if not capture.ending.scored:
            answer = None
        elif capture.ending is Ending.NO_ANSWER:
            answer = "no answer"
        elif capture.condition is Condition.PROBE:
            answer = readings.get(capture.identity)
        else:
            calls = counted_calls(capture)
            answer = calls[0] if calls else "no call"
        if answer is not None:
            found[capture.item_id, capture.variant_id, capture.condition, capture.repeat] = answer
    return found


def _agreement(group: str, members: tuple[str, ...], answers: Mapping[str, Mapping[_Key, Answer]]) -> Agreement:
    measured = {
        key: {member: answers[member][key] for member in members if key in answers[member]}
        for key in dict.fromkeys(key for member in members for key in answers[member])
    }
    compared = {key: given for key, given in measured.items() if len(given) > 1}
    differing = [
        Disagreement(*key, answers={member: _described(answer) for member, answer in given.items()})
        for key, given in compared.items()
        if not _all_same(list(given.values()))
    ]
    return Agreement(
        group=group,
        targets=members,
        agree=len(compared) - len(differing),
        cells=len(compared),
        differing=tuple(differing),
    )


def _all_same(answers: Sequence[Answer]) -> bool:
    return all(same(answers[0], other) for other in answers[1:])


def same(first: Answer, second: Answer) -> bool:
    """Whether two answers are the same: name and arguments of the first call, or the reading of a probe."""
    if isinstance(first, ObservedCall) and isinstance(second, ObservedCall):
        if first.name != second.name:
            return False
        if first.arguments is None or second.arguments is None:
            return first.arguments_json == second.arguments_json
        return values_match(first.arguments, second.arguments)
    if isinstance(first, ProbeReading) and isinstance(second, ProbeReading):
        return first.strict == second.strict
    return first == second


def _described(answer: Answer) -> str:
    if isinstance(answer, ObservedCall):
        given = shown(answer.arguments) if answer.arguments is not None else "unreadable arguments"
        return f"{answer.name or 'unnamed call'} {given}"
    if isinstance(answer, ProbeReading):
        return answer.strict or "names no option"
    return answer
