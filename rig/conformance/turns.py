"""Checks of sessions and turns: what must come, what must not, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from adapters.dialect import TurnMode
from adapters.foreign_json import int_of
from adapters.rig_socket import wire
from adapters.rig_socket.wire import FromAgent
from rig.conformance.caller import Limits, Scene, SceneName, Turn, is_failure
from rig.conformance.findings import NO_SESSION, Check, Finding, Judgement, NotSeen, broken, in_session
from rig.conformance.messages import TALKING, faults_of
from rig.conformance.talk import CONTENT, Heard

_CONFIGURATION = "error of kind configuration"


def _failure_in(messages: list[Heard]) -> Heard | None:
    return next((message for message in messages if is_failure(message)), None)


# --- sessions


def _ready(scenes: list[Scene], limits: Limits) -> Judgement:
    found = []
    for scene in scenes:
        heard = scene.talk.heard
        if scene.ready is None and scene.failure is None:
            error = _failure_in(heard)
            if error is not None:
                found.append(broken("the agent refused the setup; answer session.ready", scene, error))
            else:
                what = f"answer session.setup with session.ready within {limits.ready_s:g} s"
                found.append(broken(what, scene, heard[0] if heard else None))
        elif scene.ready is not None and heard[0] is not scene.ready and heard[0].type != FromAgent.ERROR:
            found.append(broken("send session.ready before anything else", scene, heard[0]))
    return found


def _ready_fields(scenes: list[Scene], _: Limits) -> Judgement:
    found = []
    for scene in in_session(scenes):
        assert scene.ready is not None
        assert scene.ready.fields is not None
        fields = scene.ready.fields
        if int_of(fields, "version") not in wire.VERSIONS:
            spoken = ", ".join(map(str, wire.VERSIONS))
            found.append(broken(f"state in version one that session.setup offered: {spoken}", scene, scene.ready))
        found += [
            broken(f"session.ready: {fault}", scene, scene.ready)
            for fault in faults_of(fields)[1]
            if not fault.startswith(("version: ", "'version' "))
        ]
    return found if in_session(scenes) else NO_SESSION


def _unknown_version(scenes: list[Scene], limits: Limits) -> Judgement:
    found = []
    for scene in scenes:
        if scene.failure is not None:
            return NotSeen("no connection")
        wanted = f"refuse a version that you do not speak: {_CONFIGURATION} with code version_mismatch, then close"
        if scene.ready is not None or any(message.type == FromAgent.READY for message in scene.talk.heard):
            found.append(broken(wanted, scene, scene.talk.heard[0]))
            continue
        error = _failure_in(scene.talk.heard)
        if error is None:
            told = scene.talk.heard[0] if scene.talk.heard else None
            found.append(broken(f"{wanted} (within {limits.ready_s:g} s nothing of it came)", scene, told))
        elif (error.fields or {}).get("kind") != "configuration":
            found.append(broken(f"{wanted}; other kinds are tried again", scene, error))
    return found


def _input_rates(scenes: list[Scene], _: Limits) -> Judgement:
    found = []
    for scene in scenes:
        error = _failure_in(scene.talk.heard)
        refused = error is not None and (error.fields or {}).get("kind") == "configuration"
        if scene.failure is None and scene.ready is None and not refused:
            what = f"take input_rate_hz {scene.setup.input_rate_hz}, or refuse it with {_CONFIGURATION}"
            found.append(broken(what, scene, error))
    return found


def _stays(scenes: list[Scene], _: Limits) -> Judgement:
    found = []
    for scene in scenes:
        if scene.failure is not None:
            found.append(Finding(f"take every connection: {scene.failure}", scene.name))
        elif scene.talk.died and scene.talk.closed is not None:
            code = scene.talk.closed.code
            how = "lost its connection" if code is None else f"closed with {code}"
            last = scene.talk.heard[-1] if scene.talk.heard else None
            found.append(broken(f"stay until session.close: the agent {how}; its last message is shown", scene, last))
    return found


# --- turns


def _before_commit(scenes: list[Scene], _: Limits) -> Judgement:
    if not in_session(scenes):
        return NO_SESSION
    found = []
    for scene in in_session(scenes):
        turn = scene.turns[0] if scene.turns else None
        # With voice detection of its own, an agent may speak before the clip has ended.
        manual = scene.setup.turn_control.mode is TurnMode.MANUAL
        until = None if turn is None else turn.asked if manual else turn.first
        early = next((message for message in scene.talk.heard[:until] if message.type in CONTENT), None)
        if early is not None:
            sign = "turn.commit or turn.text" if manual else "the caller speaks"
            found.append(broken(f"say and call nothing before {sign} (a greeting too is an answer)", scene, early))
    return found


def _ends(which: Callable[[Turn], bool], what: str) -> Callable[[list[Scene], Limits], Judgement]:
    """A check that the turns of a kind come to their end."""

    def judged(scenes: list[Scene], limits: Limits) -> Judgement:
        turns = [(scene, turn) for scene in in_session(scenes) for turn in scene.turns if which(turn)]
        found = []
        for scene, turn in turns:
            if turn.ended:
                continue
            answer = scene.answer(turn)
            error = _failure_in(answer)
            if error is not None:
                found.append(broken(f"{what} met an error", scene, error))
            elif turn.cut or turn.asked is None:
                found.append(
                    broken(f"{what} had no end: the connection ended first", scene, answer[-1] if answer else None)
                )
            else:
                mend = f"{what} had no turn.end within {limits.turn_s:g} s: send it right behind the answer"
                found.append(broken(mend, scene, answer[-1] if answer else None))
        if turns:
            return found
        return NO_SESSION if not in_session(scenes) else NotSeen("there was no such turn")

    return judged


def _one_end(scenes: list[Scene], _: Limits) -> Judgement:
    found = []
    ended = False
    for scene in in_session(scenes):
        for turn in scene.turns:
            answer = scene.answer(turn)
            place = next((index for index, message in enumerate(answer) if message.type == FromAgent.TURN_END), None)
            if place is None:
                continue
            ended = True
            for message in answer[place + 1 :]:
                if message.type == FromAgent.TURN_END:
                    found.append(broken("send turn.end once per turn", scene, message))
                elif message.type in CONTENT:
                    found.append(broken("send nothing of the answer behind its turn.end", scene, message))
    return found if ended else NotSeen("no turn.end came")


def _goes_on(scenes: list[Scene], limits: Limits) -> Judgement:
    if not in_session(scenes):
        return NO_SESSION
    called = [scene for scene in in_session(scenes) if any(m.type == FromAgent.TOOL_CALL for m in scene.talk.heard)]
    if not called:
        return NotSeen("the agent called no tool, though asked to")
    after = [replace(scene, turns=scene.turns[1:]) for scene in called if len(scene.turns) > 1]
    if not after:
        return NotSeen("its calls had no call_id to answer")
    return _ends(lambda _turn: True, "the answer behind tool.result")(after, limits)


def _cancel(scenes: list[Scene], limits: Limits) -> Judgement:
    found = []
    judged = False
    for scene in in_session(scenes):
        if scene.cancelled_ns is None:
            continue
        judged = True
        turn = scene.turns[0]
        answer = scene.answer(turn)
        bound_ns = scene.cancelled_ns + round(limits.cancel_s * 1e9)
        late = next((m for m in answer if m.type in CONTENT and m.t_ns > bound_ns), None)
        if late is not None:
            found.append(broken(f"stop within {limits.cancel_s:g} s of turn.cancel", scene, late))
        elif not turn.ended:
            last = _failure_in(answer) or (answer[-1] if answer else None)
            mend = f"behind turn.cancel, end the turn within {limits.cancel_s:g} s: turn.end with reason cancelled"
            found.append(broken(mend, scene, last))
        else:
            place = next(index for index, message in enumerate(answer) if message.type == FromAgent.TURN_END)
            more = next((message for message in answer[place + 1 :] if message.type in CONTENT), None)
            if more is not None:
                found.append(broken("send nothing of a cancelled answer behind its turn.end", scene, more))
    return found if judged else NO_SESSION


def _second(scenes: list[Scene], limits: Limits) -> Judgement:
    later = [replace(scene, turns=scene.turns[1:]) for scene in in_session(scenes) if scene.turns[0].ended]
    return _ends(lambda _turn: True, "the second turn of a session")(later, limits)


def _answers_each(what: str) -> Callable[[list[Scene], Limits], Judgement]:
    """A check that every connection of a scene is taken, set up, and its turns answered."""
    ends = _ends(lambda _turn: True, what)

    def judged(scenes: list[Scene], limits: Limits) -> Judgement:
        found = [
            Finding(f"{what}: {scene.failure or 'no session.ready came'}", scene.name)
            for scene in scenes
            if scene.ready is None
        ]
        ended = ends(scenes, limits)
        return found + (ended if isinstance(ended, list) else [])

    return judged


SESSION_CHECKS = (
    Check("ready", "session.ready comes first", TALKING, _ready),
    Check("ready-fields", "session.ready states version and rate rightly", TALKING, _ready_fields),
    Check("unknown-version", "an unknown version is refused", (SceneName.VERSION,), _unknown_version),
    Check("input-rates", "caller audio at each rate is taken or refused", (SceneName.RATES,), _input_rates),
    Check("stays", "the agent stays until session.close", TALKING, _stays),
    Check("two-calls", "two calls at once are answered", (SceneName.TWO,), _answers_each("a call beside another")),
    Check("hang-up", "a caller who hangs up harms no other", (SceneName.HANG_UP,), _answers_each("the next call")),
)
TURN_CHECKS = (
    Check("waits", "nothing is said before the caller has finished", TALKING, _before_commit),
    Check(
        "ends-speech",
        "a spoken turn is answered and ended",
        (SceneName.SPEECH,),
        _ends(lambda turn: turn.spoken, "a spoken turn"),
    ),
    Check(
        "ends-text",
        "a turn in words is answered and ended",
        (SceneName.WORDS,),
        _ends(lambda turn: not turn.spoken, "a turn in words"),
    ),
    Check(
        "second-turn",
        "a session holds more than one turn",
        (SceneName.SPEECH,),
        _second,
    ),
    Check(
        "empty-turn",
        "a turn without audio is ended too",
        (SceneName.EMPTY,),
        _ends(lambda _turn: True, "a turn without audio"),
    ),
    Check("one-end", "one turn.end, and nothing behind it", TALKING, _one_end),
    Check("tool-result", "the agent goes on behind tool.result", (SceneName.CALL,), _goes_on),
    Check("cancel", "turn.cancel ends the answer", (SceneName.CANCEL,), _cancel),
    Check("truncate", "reply.truncate is borne", (SceneName.TRUNCATE,), _answers_each("a turn around reply.truncate")),
    Check(
        "ignores-unknown",
        "unknown types and fields are ignored",
        (SceneName.UNKNOWN,),
        _answers_each("a turn behind them"),
    ),
)
