"""The two embedded agents: `local-cascade` works from words alone, `local-acoustic` is told what the audio sounds like.

They know the session's setup and the caller's bytes, nothing of items, golds or files. They speak in stock clips.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np
import soundfile

from adapters.cascade.wire import tags_in
from adapters.dialect import Setup
from adapters.server import Reply, ReplyCall
from rig.agents.brain_client import Ears
from rig.agents.chooser import choose_action, choose_option
from rig.agents.lexical import stems
from rig.prompts.templates import parse

LOCAL_CASCADE = "local-cascade"
LOCAL_ACOUSTIC = "local-acoustic"
AGENT_NAMES = (LOCAL_CASCADE, LOCAL_ACOUSTIC)

WORDS_ALONE = "I work from the caller's words alone and cannot tell what else was in the recording."

_STOCK_WORDS = {
    "acting": "One moment while I do that for you.",
    "escalated": "I have passed you to a colleague.",
    "nothing_needed": "All right, nothing more is needed.",
    "heard": "Here is what I heard.",
    "not_understood": "I did not catch that.",
}
_HANDOVER = stems("escalate human colleague transfer")
_ASKING_BACK = stems("ask clarify clarifying question repeat")


@dataclass(frozen=True, slots=True)
class Earlier:
    """The caller turn before this one, and the call it led to, which has its result."""

    words: str
    """As heard, or as written."""
    call: ReplyCall


@dataclass(frozen=True, slots=True)
class _Clip:
    pcm: bytes
    rate_hz: int


@dataclass(frozen=True, slots=True)
class Traits:
    """How an agent falls short of itself, for tests of comparisons: the same turn always falls the same way."""

    acts: float = 1.0
    """Share of turns in which it makes the call that it would make."""
    hears: float = 1.0
    """Share of clips in which it notices more than words."""
    seed: int = 0

    def falls(self, what: str, share: float, turn: bytes) -> bool:
        """True where the draw for this turn is above `share`."""
        return share < 1 and random.Random(f"{self.seed}/{what}/{hashlib.sha256(turn).hexdigest()}").random() >= share


AS_IT_IS = Traits()


class EmbeddedAgent:
    """One of `AGENT_NAMES`. Holds no state between turns."""

    def __init__(self, name: str, ears: Ears, traits: Traits = AS_IT_IS) -> None:
        """Raises ValueError for an unknown name."""
        if name not in AGENT_NAMES:
            raise ValueError(f"no agent {name!r}; there are {', '.join(AGENT_NAMES)}")
        self.name = name
        self._ears = ears
        self._traits = traits

    async def reply(
        self, setup: Setup, pcm: bytes, rate_hz: int, text: str | None, earlier: Earlier | None = None
    ) -> Reply:
        """The answer to one caller turn: `text`, or else PCM16 mono. Raises BrainError.

        Where `earlier` was asked back, this turn completes its words, and the same is not asked again.
        """
        if text is None:
            heard = await self._ears.hear(pcm, rate_hz)
            words, tags, transcript = heard.words, heard.tags, heard.words
            if self._traits.falls("hears", self._traits.hears, pcm):
                tags = frozenset()
        else:
            # A text may carry what somebody else measured in the audio: one of the two makes something of it.
            (words, tags), transcript = tags_in(text), None
        acoustic = self.name == LOCAL_ACOUSTIC
        prompt = parse(setup.instructions)
        if prompt.is_probe:
            told = text is None or words != text  # bare words say nothing of what was heard
            option = choose_option(prompt.options, tags) if acoustic and told else None
            return _spoken("heard", option or WORDS_ALONE, transcript)
        tools = setup.tools
        if earlier is not None and stems(earlier.call.name) & _ASKING_BACK:
            tools = tuple(tool for tool in tools if tool.name != earlier.call.name)
            words = f"{words} {earlier.words}".strip()  # the answer first: its values count before those in doubt
        tags = tags if acoustic else frozenset()
        call = choose_action(tools, words, policy=prompt.policy, tags=tags)
        idle = self._traits.falls("acts", self._traits.acts, setup.instructions.encode() + (pcm or words.encode()))
        if call is not None and not idle:
            return Reply(calls=(call,), input_transcript=transcript)
        spoken = _spoken("nothing_needed" if words else "not_understood", None, transcript)
        return replace(spoken, input_tags=tuple(sorted(tags)))

    def after_result(self, call: ReplyCall | None) -> Reply:
        """What is said once the result of a call is there; None when no call is known."""
        handed_over = call is not None and bool(stems(call.name) & _HANDOVER)
        return _spoken("escalated" if handed_over else "acting", None, None)


def _spoken(clip_name: str, text: str | None, transcript: str | None) -> Reply:
    clip = _stock(clip_name)
    return Reply(text=text or _STOCK_WORDS[clip_name], pcm=clip.pcm, rate_hz=clip.rate_hz, input_transcript=transcript)


@cache
def _stock(name: str) -> _Clip:
    with files("rig.agents").joinpath("stock", f"{name}.flac").open("rb") as file:
        samples, rate_hz = soundfile.read(file, dtype="int16")
    return _Clip(np.asarray(samples, dtype="<i2").tobytes(), int(rate_hz))
