"""Whole calls on a virtual clock: an agent's WebSocket server at one end, the rig as Twilio at the other."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import async_solipsism
import numpy as np
import orjson
import pytest

from adapters.dialect import Setup, TargetSettings, TurnMode
from adapters.session import Session, SessionError
from adapters.template_socket.sound import Format
from adapters.tool_requests import frame_of
from adapters.twilio_media.client import TwilioClient
from captures.capture import Ending, Mark
from captures.clock import LoopClock
from captures.frames import Direction, InFrame
from captures.playback import play
from transports.memory import MemoryTransport, MemoryWire
from transports.transport import Endpoint
from turn_control.ticker import Ticker
from turn_control.turn import SpokenTurn, TurnRecord, play_turn

MULAW = Format("mulaw", 8000)
LOUD = MULAW.encode((np.sin(np.arange(1600) * 0.3) * 8000).astype("<i2").tobytes())
"""0.2 s."""
SETUP = Setup("", (), 8000)
Step = tuple[float, Callable[["Agent"], None]]


class Hub:
    """The session's end of a tool channel."""

    def __init__(self) -> None:
        self.open: dict[str, Callable[[InFrame], None]] = {}

    def attach(self, call_id: str, on_frame: Callable[[InFrame], None]) -> None:
        self.open[call_id] = on_frame

    def detach(self, call_id: str) -> None:
        self.open.pop(call_id, None)

    def request(self, body: dict[str, Any]) -> None:
        (on_frame,) = self.open.values()
        on_frame(frame_of("webhook", {"body": body}, None, LoopClock().now_ns()))


@dataclass
class Agent:
    """What the agent's server sees, and what it does at which second after `start`."""

    steps: list[Step] = field(default_factory=list)
    hub: Hub = field(default_factory=Hub)
    got: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    stream: str = ""

    def connected(self, wire: MemoryWire, endpoint: Endpoint) -> None:
        self.wire = wire
        self.loop = asyncio.get_running_loop()

    def received(self, frame: InFrame) -> None:
        assert not frame.binary
        message = orjson.loads(frame.payload)
        self.got.append((round(self.loop.time(), 6), message))
        if message["event"] == "start":
            self.stream = message["streamSid"]
            for seconds, act in self.steps:
                self.loop.call_later(seconds, act, self)

    def disconnected(self, code: int, reason: str) -> None:
        pass

    def send(self, event: str, **details: Any) -> None:
        fields = {"event": event, "streamSid": self.stream} | ({event: details} if details else {})
        self.wire.send(orjson.dumps(fields))

    def say(self, ulaw: bytes, mark: str = "") -> None:
        self.send("media", payload=base64.b64encode(ulaw).decode())
        if mark:
            self.send("mark", name=mark)

    def of(self, event: str) -> list[tuple[float, dict[str, Any]]]:
        return [(t, message) for t, message in self.got if message["event"] == event]

    def marks(self) -> dict[str, float]:
        return {message["mark"]["name"]: t for t, message in self.of("mark")}


def settings(hub: Hub | None = None, **more: Any) -> TargetSettings:
    given = {"tools": ["pay"], "tool_calls": {"webhook": {}}, "greeting": "none", **more}
    return TargetSettings("", "ws://127.0.0.1:1/media", None, given, hub)


def call(
    agent: Agent, *, clip_s: float = 1.0, speech_end_s: float | None = None, **more: Any
) -> tuple[TurnRecord, Session]:
    """One spoken turn on the virtual clock."""

    async def main() -> tuple[TurnRecord, Session]:
        clock = LoopClock()
        ticker = Ticker(clock, random.Random(7))
        client = TwilioClient(settings(agent.hub, **more))
        session = Session(client, MemoryTransport(clock, agent), clock)
        try:
            await session.open(SETUP, 15.0)
            samples = np.full(round(8000 * clip_s), 5000, "<i2").tobytes()
            turn = SpokenTurn(session.encode_clip(samples, 8000, 20), speech_end_s)
            return await play_turn(session, turn, ticker=ticker, clock=clock, mode=TurnMode.SERVER_VAD), session
        finally:
            await session.close()

    return run(main)


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    loop = async_solipsism.EventLoop()
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


def five_pieces(agent: Agent) -> None:
    for number in range(1, 6):
        agent.say(LOUD[:160], f"m{number}")


def test_b13_marks_come_back_when_the_audio_has_played() -> None:
    agent = Agent([(0.5, five_pieces)])
    call(agent)
    begun = agent.of("start")[0][0] + 0.5
    assert {name: round(t - begun, 3) for name, t in agent.marks().items()} == {
        "m1": 0.02, "m2": 0.04, "m3": 0.06, "m4": 0.08, "m5": 0.1,
    }  # fmt: skip


def test_b13_clear_stops_playing_and_lets_the_marks_go() -> None:
    agent = Agent([(1.5, five_pieces), (1.55, lambda one: one.send("clear"))])
    record, _ = call(agent)
    begun = agent.of("start")[0][0] + 1.5
    assert {name: round(t - begun, 3) for name, t in agent.marks().items()} == {
        "m1": 0.02, "m2": 0.04, "m3": 0.05, "m4": 0.05, "m5": 0.05,
    }  # fmt: skip
    heard = play(record.reply_pieces, 8000)
    assert heard.received_s == pytest.approx(0.05, abs=0.001)
    assert "the agent cleared 0.05 s of its speech before it was heard" in record.warnings


def test_latency_is_from_when_a_piece_starts_to_play() -> None:
    # Quarter of a second of silence, then speech, all queued at once: it is audible when its turn to play has come.
    def speak(agent: Agent) -> None:
        agent.say(b"\xff" * 2000)
        agent.say(LOUD)

    agent = Agent([(1.6, speak)])
    record, _ = call(agent)
    heard = play(record.reply_pieces, 8000)
    assert heard.first_audible_ns is not None
    arrived_s = agent.of("start")[0][0] + 1.6
    assert heard.first_audible_ns / 1e9 == pytest.approx(arrived_s + 0.25, abs=0.011)


def test_the_callers_audio_never_pauses_and_is_numbered() -> None:
    agent = Agent([(1.5, lambda one: one.say(LOUD))])
    record, _ = call(agent, clip_s=1.0, end_silence_s=1.0)
    media = agent.of("media")
    times = [t for t, _ in media]
    assert np.diff(times) == pytest.approx([0.02] * (len(times) - 1), abs=0.0201)
    assert [message["media"]["chunk"] for _, message in media] == [str(n + 1) for n in range(len(media))]
    numbers = [int(message["sequenceNumber"]) for _, message in agent.got if "sequenceNumber" in message]
    assert numbers == list(range(1, len(numbers) + 1))
    start_s = agent.of("start")[0][0]
    for t, message in media[::20]:
        assert int(message["media"]["timestamp"]) == pytest.approx((t - start_s) * 1000, abs=1.001)
    assert {len(base64.b64decode(message["media"]["payload"])) for _, message in media} == {160}
    assert record.ending is Ending.DECLINED


def test_the_first_messages_are_twilios() -> None:
    agent = Agent([(1.2, lambda one: one.say(LOUD))])
    call(agent, parameters={"tenant": "demo"}, dtmf="1#")
    kinds = [message["event"] for _, message in agent.got]
    assert kinds[:2] == ["connected", "start"]
    assert kinds[-1] == "stop"
    assert agent.got[0][1] == {"event": "connected", "protocol": "Call", "version": "1.0.0"}
    start = agent.got[1][1]["start"]
    assert start["mediaFormat"] == {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1}
    assert start["customParameters"] == {"tenant": "demo"}
    assert (start["callSid"][:2], start["streamSid"][:2], len(start["callSid"])) == ("CA", "MZ", 34)
    assert [message["dtmf"]["digit"] for _, message in agent.of("dtmf")] == ["1", "#"]
    assert agent.got[-1][1]["stop"]["callSid"] == start["callSid"]


def test_b14_a_short_last_frame_is_filled_with_silence_and_the_turn_ends_before_it() -> None:
    client = TwilioClient(settings())
    pcm = MULAW.decode(LOUD[:1000])
    clip = client.encode_clip(pcm, 8000, 20)
    frames = [base64.b64decode(frame.payload) for frame in clip.frames]
    assert (len(frames), {len(frame) for frame in frames}) == (7, {160})
    assert frames[-1] == LOUD[960:1000] + b"\xff" * 120
    assert (clip.samples, clip.filler_samples) == (1000, 120)
    assert base64.b64decode(client.encode_silence(8000, 20).payload) == b"\xff" * 160

    agent = Agent([(0.5, lambda one: one.say(LOUD))])
    record, _ = call(agent, clip_s=0.125)
    assert record.marks[Mark.CALLER_AUDIO_END] - record.marks[Mark.FIRST_CHUNK] == 125_000_000
    first = record.marks[Mark.FIRST_CHUNK] / 1e9
    # Silence goes on where the filled frame ends, so the stream keeps its grid.
    after = [t for t, _ in agent.of("media") if t > first + 0.121]
    assert after[0] - first == pytest.approx(0.140, abs=0.001)


def test_a_greeting_is_waited_for_and_is_no_answer() -> None:
    agent = Agent([(0.3, lambda one: one.say(LOUD * 5, "greeting")), (4.0, lambda one: one.say(LOUD))])
    record, session = call(agent, greeting={"quiet_s": 0.5})
    start_s = agent.of("start")[0][0]
    assert agent.marks()["greeting"] == pytest.approx(start_s + 1.3, abs=0.001)
    assert session.marks[Mark.SESSION_READY] / 1e9 == pytest.approx(start_s + 1.8, abs=0.001)
    assert record.marks[Mark.FIRST_CHUNK] / 1e9 == pytest.approx(start_s + 1.8, abs=0.021)
    assert session.ready is not None
    assert session.ready.echoed["greeting_s"] == pytest.approx(1.0)
    assert play(record.reply_pieces, 8000).received_s == pytest.approx(0.2)
    assert record.marks[Mark.FIRST_AUDIO] / 1e9 == pytest.approx(start_s + 4.0, abs=0.001)


def test_an_agent_that_does_not_greet_is_waited_for_no_longer_than_said() -> None:
    agent = Agent([(3.5, lambda one: one.say(LOUD))])
    _, session = call(agent, greeting={"wait_s": 2.0})
    start_s = agent.of("start")[0][0]
    assert session.marks[Mark.SESSION_READY] / 1e9 == pytest.approx(start_s + 2.0, abs=0.001)


def test_a_greeting_without_end_is_bounded() -> None:
    agent = Agent([(0.5 * n, lambda one: one.say(LOUD * 3)) for n in range(1, 40)])
    _, session = call(agent, greeting={"max_s": 4.0}, end_silence_s=1.0)
    start_s = agent.of("start")[0][0]
    assert session.marks[Mark.SESSION_READY] / 1e9 == pytest.approx(start_s + 4.0, abs=0.001)


def test_a_tool_request_is_the_answers_call() -> None:
    agent = Agent([(1.4, lambda one: one.hub.request({"name": "pay", "arguments": {"amount": 4}}))])
    record, session = call(agent, end_silence_s=1.0)
    assert record.ending is Ending.CALLED
    (made,) = record.calls
    assert (made.name, made.arguments) == ("pay", {"amount": 4})
    start_s = agent.of("start")[0][0]
    assert record.marks[Mark.FIRST_CALL_COMPLETE] / 1e9 == pytest.approx(start_s + 1.4, abs=0.001)
    assert agent.hub.open == {}
    stored = [frame for frame in session.log if b"rig.tool_request" in frame.payload]
    assert [frame.direction for frame in stored] == [Direction.RECEIVED]


def test_a_look_up_before_the_caller_speaks_is_no_answer() -> None:
    agent = Agent(
        [
            (0.2, lambda one: one.hub.request({"name": "look_up", "arguments": {}})),
            (4.5, lambda one: one.hub.request({"name": "pay", "arguments": {}})),
        ]
    )
    record, _ = call(agent, greeting={"wait_s": 3.0}, end_silence_s=1.0)
    assert [made.name for made in record.calls] == ["pay"]
    assert "call_before_turn: look_up was called before the caller spoke; it is no answer" in record.warnings


def test_without_a_view_of_tools_an_answer_is_neither_called_nor_declined() -> None:
    agent = Agent([(1.5, lambda one: one.say(LOUD))])
    record, _ = call(agent, tool_calls={"none": True}, tools=[])
    assert record.ending is Ending.ANSWERED


def test_an_agent_that_hangs_up_has_answered_and_one_that_is_lost_has_not() -> None:
    hung_up, _ = call(Agent([(1.4, lambda one: one.say(LOUD)), (1.7, lambda one: one.wire.close(1000))]))
    assert (hung_up.ending, hung_up.detail) == (Ending.DECLINED, "the agent hung up")
    lost, _ = call(Agent([(1.4, lambda one: one.say(LOUD)), (1.7, lambda one: one.wire.close(None, "gone"))]))
    assert lost.ending is Ending.INFRASTRUCTURE_ERROR
    assert lost.error is not None
    assert lost.error.message == "the agent's connection was lost during the call: gone"


def test_an_agent_that_closes_before_the_caller_speaks_is_never_ready() -> None:
    with pytest.raises(SessionError, match="lost before the caller spoke"):
        call(Agent([(0.5, lambda one: one.wire.close(1000))]), greeting={})


@pytest.mark.parametrize(
    ("payload", "binary", "told"),
    [
        (b"\x00\x01", True, "a binary message"),
        (b"{", False, "is not a JSON object"),
        (b'{"event": "connected"}', False, "connected: Twilio takes media, mark and clear alone"),
        (
            b'{"event": "media", "streamSid": "MZother", "media": {"payload": ""}}',
            False,
            "without this call's streamSid",
        ),
    ],
)
def test_what_twilio_would_not_take_is_said_once(payload: bytes, binary: bool, told: str) -> None:
    def send(agent: Agent) -> None:
        agent.wire.send(payload, binary=binary)
        agent.wire.send(payload, binary=binary)
        agent.say(LOUD)

    record, _ = call(Agent([(1.5, send)]))
    (note,) = [warning for warning in record.warnings if warning.startswith("not_twilio")]
    assert told in note
    assert record.ending is Ending.DECLINED


def test_a_file_header_in_the_audio_is_said() -> None:
    record, _ = call(Agent([(1.5, lambda one: (one.say(b"RIFF" + LOUD), one.say(LOUD))[0])]))
    assert any("begins with a file's header" in warning for warning in record.warnings)
    assert play(record.reply_pieces, 8000).received_s == pytest.approx(0.2)


def test_more_audio_than_any_turn_holds_is_a_flood() -> None:
    record, _ = call(Agent([(1.5, lambda one: one.say(b"\x10" * 5_000_000))]))
    assert record.ending is Ending.INFRASTRUCTURE_ERROR
    assert record.error is not None
    assert record.error.code == "flood"
