"""Rollouts of one target's clips → pass^k, pass@k, agreement and the list of flakes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from captures.capture import Capture, Condition
from rig.report.agreement import Answer, answers_of, same
from rig.report.null_model import Flake, Repeats
from rig.scoring.cells import ScoredCell
from rig.stats.repeats import Reliability, Rollouts, sizes


def repeats(captures: Sequence[Capture], cells: Sequence[ScoredCell]) -> Repeats | None:
    """None where no clip was answered twice. Controls and held items are left out."""
    answers = answers_of(captures, cells)
    by_clip: dict[tuple[str, str], list[tuple[int, bool, Answer]]] = {}
    for cell in cells:
        if cell.condition is Condition.AUDIO and cell.headline and cell.action is not None:
            answer = answers[cell.item_id, cell.variant_id, cell.condition, cell.repeat]
            by_clip.setdefault((cell.item_id, cell.variant_id), []).append((cell.repeat, cell.action.passed, answer))
    rollouts = []
    for (item, variant), own in sorted(by_clip.items()):
        own.sort(key=lambda one: one[0])
        rollouts.append(
            Rollouts(item, variant, tuple(passed for _, passed, _ in own), _kinds(answer for _, _, answer in own))
        )
    most = max((len(one.did) for one in rollouts), default=0)
    if most < 2:
        return None
    drawn = Reliability(rollouts)
    return Repeats(
        rollouts=most,
        cells=sum(len(one.did) > 1 for one in rollouts),
        pass_all={k: drawn.pass_all(k) for k in sizes(most)},
        pass_any={k: drawn.pass_any(k) for k in sizes(most)},
        agreement=drawn.agreement(),
        flakes=tuple(
            Flake(one.item, one.variant, sum(one.passed), len(one.passed))
            for one in rollouts
            if len(set(one.passed)) > 1
        ),
    )


def _kinds(answers: Iterable[Answer]) -> tuple[int, ...]:
    """Equal numbers where the answers are the same."""
    known: list[Answer] = []
    found = []
    for answer in answers:
        kind = next((index for index, other in enumerate(known) if same(answer, other)), len(known))
        if kind == len(known):
            known.append(answer)
        found.append(kind)
    return tuple(found)
