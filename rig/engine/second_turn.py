"""The second turn of an attempt: the result of a clarifying call goes back, and the caller's scripted reply is played.

Recorded beside the first turn, which it never changes: what goes wrong here is told here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass

from adapters.dialect import InputTooLargeError
from adapters.session import Session
from captures.capture import Ending, ObservedCall, SecondTurn
from rig.bank.models import Item
from rig.engine.clips import PreparedClip
from rig.engine.heard import later_turn
from turn_control.silence import SilentCaller
from turn_control.turn import CallerTurn, ResultTurn, SpokenTurn, TextTurn, TurnRecord

OTHER_RESULT = "done"
"""Result of further calls beside the clarifying one: vendors go on only once every call has one."""

Play = Callable[[CallerTurn], Awaitable[TurnRecord]]
"""Plays a turn in the attempt's session."""
Encode = Callable[[PreparedClip], Awaitable[SpokenTurn]]


@dataclass(frozen=True, slots=True)
class PlannedReply:
    """A second turn, should the first call start it."""

    trigger_tools: tuple[str, ...]
    result: str
    reply: str
    clip: PreparedClip | None
    """The reply as audio; None: it is given as text."""
    not_playable: str = ""
    """Why it can be given neither way."""

    def identity(self) -> dict[str, object]:
        """Its part of the cell's identity."""
        return {
            "trigger_tools": self.trigger_tools,
            "result": self.result,
            "reply": self.reply,
            "pcm": [self.clip.pcm_sha256, self.clip.source_rate_hz] if self.clip else None,
            "not_playable": self.not_playable,
        }


def planned_reply(
    item: Item, clip: PreparedClip | None, clip_error: str | None, text_twin: bool
) -> PlannedReply | None:
    """The item's second turn on one cell: as audio where there is a clip of it, else as text; None without one.

    A clip that cannot be read is not replaced by text.
    """
    if item.followup is None:
        return None
    why = clip_error or ""
    if not why and clip is None and not text_twin:
        why = "the bank has no clip of the reply, and the adapter has no text turn"
    return PlannedReply(item.followup.trigger_tools, item.followup.result, item.followup.reply, clip, why)


def started_by(planned: PlannedReply | None, first: TurnRecord) -> ObservedCall | None:
    """The first call, if it starts the second turn."""
    if planned is None or first.ending is not Ending.CALLED or not first.calls:
        return None
    call = first.calls[0]
    return call if call.complete and call.name in planned.trigger_tools else None


async def play_second_turn(
    planned: PlannedReply,
    call: ObservedCall,
    first: TurnRecord,
    session: Session,
    play: Play,
    encode: Encode,
    quiet: SilentCaller | None,
) -> SecondTurn:
    """Send the results, wait for the end of the answer to them, give the reply, wait for its answer.

    `quiet` sends silence while nobody speaks, where the caller's audio must not pause. An agent that acts on the result
    alone has had its say: no reply is given.
    """
    base = SecondTurn(call_id=call.call_id, tool=call.name or "", result=planned.result, reply=planned.reply)
    if planned.not_playable:
        return base.model_copy(update={"not_played": planned.not_playable})
    if first.closed is not None or session.failure is not None:
        return base.model_copy(update={"not_played": "the connection ended with the first turn"})
    try:
        with quiet or nullcontext():
            reply = TextTurn(planned.reply) if planned.clip is None else await encode(planned.clip)
            results = {one.call_id: OTHER_RESULT for one in first.calls if one.complete}
            after = await play(ResultTurn(results | {call.call_id: planned.result}))
            base = base.model_copy(update={"after_result": await later_turn(after)})
        if why := _over(after):
            return base.model_copy(update={"not_played": why})
        answer = await play(reply)
    except InputTooLargeError as too_large:
        return base.model_copy(update={"not_played": str(too_large)})
    said_as = "text" if planned.clip is None else "audio"
    return base.model_copy(update={"reply_as": said_as, "answer": await later_turn(answer)})


def _over(after: TurnRecord) -> str:
    """Why no reply follows the answer to the result; empty where one does."""
    if after.calls:
        return "the agent acted on the result alone"
    if after.closed is not None or not after.ending.scored:
        return "the session failed before the reply"
    return ""
