"""A broken agent for every check: each check can fail, says what to mend, and shows the message that broke it."""

from __future__ import annotations

import array
import asyncio
import base64
from typing import Any

import pytest
from aiohttp import web

from rig.conformance.audio import paced_hz
from rig.conformance.caller import Limits
from rig.conformance.findings import Verdict
from rig.conformance.run import CHECKS, ConformanceError
from rig.conformance.talk import Heard


class NeverReady:
    async def ready(self: Any) -> None:
        pass


class AudioBeforeReady:
    async def ready(self: Any) -> None:
        await self.ws.send_bytes(b"\x00\x01")
        await self.say("session.ready", version=1)


class OtherVersion:
    async def ready(self: Any) -> None:
        await self.say("session.ready", version=2)


class HugeRate:
    stated_hz = 96_000


class TakesAnyVersion:
    async def on_setup(self: Any, message: Any) -> None:
        self.tools = message["tools"]
        await self.ready()


class TransientVersion:
    async def on_setup(self: Any, message: Any) -> None:
        await self.say("error", kind="transient", code="version_mismatch", message="no")


class DiesAtARate:
    async def on_setup(self: Any, message: Any) -> None:
        if message["audio"]["input_rate_hz"] == 8000:
            await self.ws.close(code=1011)
        else:
            await self.ready()


class Dies:
    async def text(self: Any) -> None:
        self.ws._req.transport.abort()


class OneAtATime:
    async def on_setup(self: Any, message: Any) -> None:
        self.house["open"] = self.house.get("open", 0) + 1
        if self.house["open"] == 1:
            await self.ready()

    async def on_text(self: Any, message: Any) -> None:
        await asyncio.sleep(0.2)
        await self.end()


class Sulks:
    def left(self: Any) -> None:
        self.house["hung up"] = True

    async def on_setup(self: Any, message: Any) -> None:
        if not self.house.get("hung up"):
            await self.ready()


class Greets:
    async def ready(self: Any) -> None:
        await self.say("session.ready", version=1)
        await self.say("reply.text", text="Welcome!")


class CannotWait:
    async def on_audio(self: Any, pcm: bytes) -> None:
        await self.say("reply.text", text="I know already.")


class NeverEnds:
    async def end(self: Any) -> None:
        pass


class OneTurnOnly:
    async def on_text(self: Any, message: Any) -> None:
        if self.turns == 0:
            await self.end()


class NeedsAudio:
    async def on_commit(self: Any, message: Any) -> None:
        if self.heard:
            await self.end()


class EndsTwice:
    async def end(self: Any) -> None:
        await self.say("turn.end")
        await self.say("turn.end", reason="completed")


class SpeaksOn:
    async def end(self: Any) -> None:
        await self.say("turn.end")
        await self.ws.send_bytes(b"\x00\x01" * 50)


class ForgetsResults:
    async def on_result(self: Any, message: Any) -> None:
        pass


class IgnoresCancel:
    async def on_text(self: Any, message: Any) -> None:
        for _ in range(30):
            await self.text()
            await asyncio.sleep(0.02)
        await self.end()


class CancelsSilently:
    async def on_text(self: Any, message: Any) -> None:
        pass


class FearsTruncation:
    async def on_truncate(self: Any, message: Any) -> None:
        await self.ws.close(code=1011)


class FearsTheUnknown:
    async def on_unknown(self: Any, message: Any) -> None:
        if message["type"] != "session.close":
            await self.say("error", kind="protocol", code="unknown", message=message["type"])


class BrokenJson:
    async def text(self: Any) -> None:
        await self.ws.send_str('{"type": "reply.text", "text": NaN')


class NoType:
    async def text(self: Any) -> None:
        await self.ws.send_str('{"event": "reply.text"}')


class OtherTypes:
    async def text(self: Any) -> None:
        await self.say("response.text.delta", delta="Hello")


class OtherFields:
    async def text(self: Any) -> None:
        await self.say("reply.text", text="Hello", lang="en")


class WrongValues:
    async def text(self: Any) -> None:
        await self.say("reply.text", text=5)


class Base64Audio:
    async def speak(self: Any) -> None:
        await self.say("audio", audio=base64.b64encode(self.speech()[:960]).decode())


class Floods:
    async def speak(self: Any) -> None:
        for _ in range(34):
            await self.ws.send_bytes(bytes(1 << 20))


class HalfASample:
    def speech(self: Any) -> bytes:
        return b"\x00\x01" * 500 + b"\x00"


class BigEndian:
    def speech(self: Any) -> bytes:
        samples = array.array("h", [round(8000 * (i % 120 - 60) / 60) for i in range(6000)])
        samples.byteswap()
        return samples.tobytes()


class WavFile:
    def speech(self: Any) -> bytes:
        return b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(2000)


class MuLaw:
    def speech(self: Any) -> bytes:
        return bytes((0x80 | 37 * i % 64) if i % 4 < 2 else 37 * i % 64 for i in range(8000))


class TooFast:
    stated_hz = 48_000
    transcript = "All of this was said within a second and a half, at another rate than I state."


class TooSlow:
    stated_hz = 8_000
    transcript = "Eleven words."
    transcript += " Or so."

    def speech(self: Any) -> bytes:
        return array.array("h", [round(8000 * ((i // 60) % 2 - 0.5)) for i in range(72_000)]).tobytes()


class CallsAnother:
    async def call(self: Any, name: str) -> None:
        await self.say("tool.call", call_id="a", name="launch_rocket", arguments={})


class RepeatsIds:
    async def call(self: Any, name: str) -> None:
        self.awaited.add("same")
        await self.say("tool.call", call_id="same", name=name, arguments={})


class StringArguments:
    async def call(self: Any, name: str) -> None:
        await self.say("tool.call", call_id="a", name=name, arguments="{}")


class MisfittingArguments:
    async def call(self: Any, name: str) -> None:
        await self.say("tool.call", call_id="a", name="note_callback", arguments={"when": "never"})


class CallsAnyway:
    async def on_text(self: Any, message: Any) -> None:
        await self.say("tool.call", call_id="a", name="place_on_hold", arguments={})
        await self.end()


SOON = Limits(ready_s=20, turn_s=20, cancel_s=1, quiet_s=0.01)
UNTIL_QUIET = Limits(ready_s=20, turn_s=20, cancel_s=0.2, quiet_s=0.3)
"""For what must not come: it comes at once, and is waited for."""
NEVER_READY = Limits(ready_s=0.5, turn_s=20, cancel_s=1, quiet_s=0.01)
NEVER_ENDS = Limits(ready_s=20, turn_s=0.5, cancel_s=0.2, quiet_s=0.01)
LIMITS: dict[type, Limits] = {
    **dict.fromkeys((NeverReady, Sulks, OneAtATime), NEVER_READY),
    **dict.fromkeys((NeverEnds, OneTurnOnly, NeedsAudio, ForgetsResults, CancelsSilently), NEVER_ENDS),
    **dict.fromkeys((Greets, CannotWait, EndsTwice, SpeaksOn, Dies, IgnoresCancel), UNTIL_QUIET),
}
"""Those whose fault is that nothing comes wait for a bound; all others end by what they send."""

BROKEN = [
    (NeverReady, "ready", "answer session.setup with session.ready", None),
    (AudioBeforeReady, "ready", "session.ready before anything else", "binary, 2 bytes: 00 01"),
    (OtherVersion, "ready-fields", "one that session.setup offered: 1", '"version": 2'),
    (HugeRate, "ready-fields", "96000 is greater than the maximum of 48000", '"output_rate_hz": 96000'),
    (TakesAnyVersion, "unknown-version", "code version_mismatch", "session.ready"),
    (TransientVersion, "unknown-version", "kind configuration", '"kind": "transient"'),
    (DiesAtARate, "input-rates", "input_rate_hz 8000", None),
    (Dies, "stays", "stay until session.close: the agent lost its connection", "turn.end"),
    (OneAtATime, "two-calls", "a call beside another", None),
    (Sulks, "hang-up", "the next call", None),
    (Greets, "waits", "a greeting too", "Welcome!"),
    (CannotWait, "waits", "before turn.commit", "I know already."),
    (NeverEnds, "ends-speech", "no turn.end within", "reply.transcript"),
    (NeverEnds, "ends-text", "no turn.end within", "You wrote something."),
    (OneTurnOnly, "second-turn", "the second turn of a session had no turn.end", None),
    (NeedsAudio, "empty-turn", "a turn without audio", None),
    (EndsTwice, "one-end", "once per turn", '"reason": "completed"'),
    (SpeaksOn, "one-end", "nothing of the answer behind", "binary, 100 bytes"),
    (ForgetsResults, "tool-result", "the answer behind tool.result had no turn.end", None),
    (IgnoresCancel, "cancel", "of turn.cancel", "You wrote something."),
    (CancelsSilently, "cancel", "turn.end with reason cancelled", None),
    (FearsTruncation, "truncate", "the connection ended first", None),
    (FearsTheUnknown, "ignores-unknown", "met an error", "x_conformance.future"),
    (BrokenJson, "json", "one JSON object", "NaN"),
    (NoType, "json", "a string in type", "event"),
    (OtherTypes, "known-types", "there is no type 'response.text.delta'", '"delta": "Hello"'),
    (OtherFields, "known-fields", "reply.text has no field lang; misspelt?", '"lang": "en"'),
    (WrongValues, "values", "text: 5 is not of type 'string'", '"text": 5'),
    (Base64Audio, "binary-audio", "not as base64", '"type": "audio"'),
    (Floods, "no-flood", "more than 20,000 messages or 32 MiB", "binary, 1048576 bytes"),
    (HalfASample, "whole-samples", "half a sample", "binary, 1001 bytes"),
    (BigEndian, "pcm16", "big-endian", "binary, "),
    (WavFile, "pcm16", "as a WAV file does", "52 49 46 46"),
    (MuLaw, "pcm16", "reads as noise", "binary, "),
    (TooFast, "audio-rate", "48000 Hz this speech is too fast", "binary, "),
    (TooSlow, "audio-rate", "8000 Hz this speech is too slow", "binary, "),
    (CallsAnother, "tool-names", "place_on_hold, note_callback", "launch_rocket"),
    (RepeatsIds, "tool-ids", "a call_id of its own", '"same"'),
    (StringArguments, "tool-arguments", "must be a JSON object", '"arguments": "{}"'),
    (MisfittingArguments, "tool-schema", "'never' is not one of", '"when": "never"'),
    (CallsAnyway, "no-tools", "keep nothing from other sessions", "place_on_hold"),
]


@pytest.mark.parametrize(
    ("broken", "check", "mend", "message"), BROKEN, ids=[f"{b[1]}-{b[0].__name__}" for b in BROKEN]
)
def test_a_broken_agent_is_named(
    hold: Any, scripted: Any, broken: type, check: str, mend: str, message: str | None
) -> None:
    agent = type(broken.__name__, (broken, scripted), {})
    (result,) = hold(agent, check, limits=LIMITS.get(broken, SOON)).results
    assert result.verdict is Verdict.FAILED, result
    finding = next((f for f in result.findings if mend in f.mend), None)
    assert finding is not None, result.findings
    if message is not None:
        assert message in (finding.message or "")
        assert finding.at_s is not None


def test_every_check_has_a_broken_agent() -> None:
    assert {check for _, check, _, _ in BROKEN} == {check.name for check in CHECKS}


@pytest.mark.parametrize(
    ("piece_bytes", "every_s", "rate_hz"),
    [(320, 0.02, 8000), (960, 0.02, 24_000), (960, 0.001, None), (1150, 0.02, None)],
)
def test_the_rate_of_paced_speech(piece_bytes: int, every_s: float, rate_hz: int | None) -> None:
    """A standard rate, kept for longer than a second and a half; a burst or another speed tells nothing."""
    pieces = [Heard(round(number * every_s * 1e9), bytes(piece_bytes), True) for number in range(90)]
    assert paced_hz(pieces) == rate_hz


def test_findings_are_bounded_and_secrets_masked(hold: Any, scripted: Any) -> None:
    class Chatty(scripted):  # type: ignore[misc]
        async def text(self) -> None:
            for _ in range(5):
                await self.say("reply.words", text="TESTKEY-not-real-41" + "\x1b[31m" + "x" * 10_000)

    (result,) = hold(Chatty, "known-types").results
    assert len(result.findings) == 3
    assert result.more >= 2
    for finding in result.findings:
        assert finding.message is not None
        assert "TESTKEY" not in finding.message
        assert "\x1b" not in finding.message
        assert len(finding.message) < 300


def test_an_agent_that_refuses_all_is_judged_and_not_crashed_on(hold: Any, scripted: Any) -> None:
    class Refuses(scripted):  # type: ignore[misc]
        async def run(self, request: web.Request) -> Any:
            raise web.HTTPServiceUnavailable(text="full")

    with pytest.raises(ConformanceError, match="503"):
        hold(Refuses)
