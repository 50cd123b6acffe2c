"""What a turn's calls are worth against one variant's gold (the action score of the scoring page). Pure.

Scores the first turn. It knows no captures, targets or endings: see `rig.scoring.cells`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from captures.capture import ObservedCall
from rig.bank.models import Gold, Tool
from rig.scoring.match import mismatch, shown


@dataclass(frozen=True, slots=True)
class ActionScore:
    """What one turn earned."""

    credit: float
    """0 to 1, by the released rule: more than one call earns 0."""
    passed: bool
    """Strict pass: credit 1 by the gold rule, no alternative counted."""
    selection_credit: float
    """By the first call's tool name alone."""
    first_call_credit: float
    """Credit of the first call, as though it were the only one."""
    reasons: tuple[str, ...]
    """Why it is no strict pass, one line each, naming parameter and position; empty on a pass."""
    called: tuple[str | None, ...]
    """Tool names in order; None where a call bears no name."""

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return len(self.called)


def score_action(calls: Sequence[ObservedCall], gold: Gold, menu: Sequence[Tool]) -> ActionScore:
    """Score `calls`, ordered by output index, against `gold`, where `menu` was offered.

    A call that is unreadable, cut off, unnamed or not on the menu is a wrong call, never "no call".
    """
    tools = {tool.name: tool for tool in menu}
    called = tuple(call.name for call in calls)
    if not calls:
        right = gold.tool is None
        worth = 1.0 if right else 0.0
        why = () if right else (f"no call made, expected {gold.tool}",)
        return ActionScore(worth, right, worth, worth, why, called)
    first = calls[0]
    reasons = _reasons(first, gold, tools)
    first_credit = 1.0 if not reasons else _alternative_credit(first, gold, tools)
    only = len(calls) == 1
    if not only:
        reasons = (*reasons, f"{len(calls)} calls made, expected {0 if gold.tool is None else 1}")
    return ActionScore(
        credit=first_credit if only else 0.0,
        passed=not reasons,
        selection_credit=_selection_credit(first, gold, tools),
        first_call_credit=first_credit,
        reasons=reasons,
        called=called,
    )


def no_answer_score() -> ActionScore:
    """The agent stayed silent past the turn limit: wrong on every gold, since nothing shows that it declined."""
    return ActionScore(0.0, False, 0.0, 0.0, ("no answer within the turn limit",), ())


def _reasons(call: ObservedCall, gold: Gold, tools: dict[str, Tool]) -> tuple[str, ...]:
    """Why `call` does not earn credit 1; empty where it does."""
    flaw = _flaw(call, tools)
    if flaw:
        return (flaw,)
    if gold.tool is None:
        return (f"called {call.name}, expected no call",)
    if call.name != gold.tool:
        return (f"called {call.name}, expected {gold.tool}",)
    given = _given(call, gold, tools[gold.tool])
    known = {param.name for param in tools[gold.tool].params}
    reasons = []
    for name, admissible in gold.args.items():
        if name not in given:
            reasons.append(f"missing required parameter {name}")
        elif problem := _problem(given[name], admissible, name):
            reasons.append(problem)
    for name, value in given.items():
        if name in gold.args:
            continue
        if name not in gold.optional_args:
            reasons.append(f"{'unexpected' if name in known else 'unknown'} parameter {shown(name)[1:-1]}")
            continue
        optional = gold.optional_args[name]
        if optional is not None and (problem := _problem(value, optional, name)):
            reasons.append(problem)
    return tuple(reasons)


def _flaw(call: ObservedCall, tools: dict[str, Tool]) -> str | None:
    """What makes a call wrong whatever the gold."""
    if not call.name:
        return "a call without a tool's name"
    if call.name not in tools:
        return f"called {shown(call.name)}, which was never offered"
    if not call.complete:
        return f"called {call.name}, cut off before its arguments were whole"
    if call.arguments is None:
        return f"called {call.name} with unreadable arguments"
    return None


def _given(call: ObservedCall, gold: Gold, tool: Tool) -> dict[str, object]:
    """The arguments, where null for an optional one counts as left out."""
    optional = set(gold.optional_args) | {param.name for param in tool.params if not param.required}
    arguments: dict[str, object] = call.arguments or {}
    return {
        name: value
        for name, value in arguments.items()
        if value is not None or name in gold.args or name not in optional
    }


def _problem(value: object, admissible: Sequence[object], name: str) -> str | None:
    """Why `value` is none of the admissible ones, said against the first of them."""
    found = [mismatch(value, expected) for expected in admissible]
    if None in found:
        return None
    first = next(one for one in found if one is not None)
    others = f" (or {len(found) - 1} other admissible)" if len(found) > 1 else ""
    return f"wrong value: {name}{first.path} {first.message}{others}"


def _alternative_credit(call: ObservedCall, gold: Gold, tools: dict[str, Tool]) -> float:
    """Best credit among the acceptable actions with this tool whose stated arguments match; others are free."""
    if _flaw(call, tools):
        return 0.0
    arguments = call.arguments or {}
    return max(
        (
            alternative.credit
            for alternative in gold.acceptable
            if alternative.tool == call.name
            and all(
                name in arguments and _problem(arguments[name], admissible, name) is None
                for name, admissible in alternative.args.items()
            )
        ),
        default=0.0,
    )


def _selection_credit(call: ObservedCall, gold: Gold, tools: dict[str, Tool]) -> float:
    if not call.name or call.name not in tools:
        return 0.0
    if call.name == gold.tool:
        return 1.0
    return max((one.credit for one in gold.acceptable if one.tool == call.name), default=0.0)
