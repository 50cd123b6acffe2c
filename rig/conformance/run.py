"""Holds the conversations that the chosen checks need, and judges them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from adapters.dialect import Capabilities, TurnMode
from adapters.foreign_json import brief, masked, text_of
from adapters.rig_socket.faults import fault_of_connect
from captures.events import Refused
from rig.conformance.audio import AUDIO_CHECKS
from rig.conformance.caller import Scene, SceneName, Stage
from rig.conformance.findings import Check, Evidence, Finding, NotSeen, Verdict
from rig.conformance.messages import MESSAGE_CHECKS, TOOL_CHECKS
from rig.conformance.scenes import SCENES
from rig.conformance.turns import SESSION_CHECKS, TURN_CHECKS

CHECKS: tuple[Check, ...] = (*SESSION_CHECKS, *TURN_CHECKS, *MESSAGE_CHECKS, *AUDIO_CHECKS, *TOOL_CHECKS)
MAX_FINDINGS = 3
"""Of one check; more are counted."""
_NEEDS_OUR_TOOLS = frozenset({"tool-names", "tool-schema", "no-tools"})


class ConformanceError(RuntimeError):
    """Nothing could be judged: no agent answered, or there is no such check. One line."""


@dataclass(frozen=True, slots=True)
class Result:
    """Of one check."""

    name: str
    rule: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    more: int = 0
    """Findings beyond `MAX_FINDINGS`."""
    note: str = ""
    """Why it could not be judged."""


@dataclass(frozen=True, slots=True)
class Report:
    """Of one agent."""

    address: str
    """Without secrets."""
    agent: str | None
    """The name that it states."""
    results: tuple[Result, ...]

    def count(self, verdict: Verdict) -> int:
        """Checks with this verdict."""
        return sum(result.verdict is verdict for result in self.results)


def chosen_checks(names: Sequence[str]) -> tuple[Check, ...]:
    """The named checks in their own order; all of them where none is named. Raises `ConformanceError`."""
    known = {check.name for check in CHECKS}
    for name in names:
        if name not in known:
            raise ConformanceError(f"no check {brief(name, 60)!r}; there are {', '.join(c.name for c in CHECKS)}")
    return tuple(check for check in CHECKS if not names or check.name in names)


async def conform(
    stage: Stage,
    checks: Sequence[Check] = CHECKS,
    secrets: Sequence[str] = (),
    on_scene: Callable[[SceneName], None] = lambda _: None,
) -> Report:
    """Hold the conversations and judge them; `secrets` are masked in what the agent said.

    Raises:
        ConformanceError: the first connection cannot be made.
    """
    client = stage.client()
    needed = {name for check in checks for name in check.scenes}
    held: dict[SceneName, list[Scene]] = {}
    for name, scene_of in SCENES.items():
        if name not in needed or _impossible(name, client.capabilities, stage):
            continue
        on_scene(name)
        held[name] = await scene_of(stage)
        failure = held[name][0].failure
        if len(held) == 1 and failure is not None:
            fault = fault_of_connect(failure)
            remedy = "" if isinstance(fault, Refused) else "; is the agent running there?"
            raise ConformanceError(masked(f"{fault.message}{remedy}", secrets))
    ready = next((scene.ready for scenes in held.values() for scene in scenes if scene.ready is not None), None)
    named = text_of(ready.fields or {}, "agent") if ready is not None else None
    return Report(
        client.endpoint().label,
        None if named is None else masked(brief(named, 100), secrets),
        tuple(_judged(check, held, client.capabilities, stage, secrets) for check in checks),
    )


def _impossible(name: SceneName, able: Capabilities, stage: Stage) -> str:
    """Why this agent cannot be in a scene; empty when it can."""
    if name is SceneName.NO_TOOLS and not able.takes_setup:
        return "the agent has tools of its own"
    if name is SceneName.WORDS and not able.text_twin:
        return "the agent takes no turns in words"
    if name in (SceneName.EMPTY, SceneName.CANCEL) and stage.turn_control.mode is not TurnMode.MANUAL:
        return "the agent itself finds the end of the caller's turn"
    return ""


def _judged(check: Check, held: Evidence, able: Capabilities, stage: Stage, secrets: Sequence[str]) -> Result:
    note = ""
    if not able.takes_setup and check.name in _NEEDS_OUR_TOOLS:
        note = "the agent has tools of its own"
    elif check.name == "one-end" and able.ends_by_silence_s is not None:
        note = "the agent's answers end by silence"
    elif not any(name in held for name in check.scenes):
        note = next(filter(None, (_impossible(name, able, stage) for name in check.scenes)), "")
    if note:
        return Result(check.name, check.rule, Verdict.NOT_SEEN, note=note)
    judgement = check.judge([scene for name in check.scenes for scene in held.get(name, ())], stage.limits)
    if isinstance(judgement, NotSeen):
        return Result(check.name, check.rule, Verdict.NOT_SEEN, note=judgement.reason)
    shown = tuple(_masked(finding, secrets) for finding in judgement[:MAX_FINDINGS])
    verdict = Verdict.FAILED if judgement else Verdict.PASSED
    return Result(check.name, check.rule, verdict, shown, len(judgement) - len(shown))


def _masked(finding: Finding, secrets: Sequence[str]) -> Finding:
    message = None if finding.message is None else masked(finding.message, secrets)
    return replace(finding, mend=masked(finding.mend, secrets), message=message)
