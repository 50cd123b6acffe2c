"""Server half of the rig socket: the agent's side of docs/bring-your-own-agent.md, from which emulators are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import orjson

from adapters.dialect import Setup, TurnMode
from adapters.foreign_json import JsonObject, brief, decode, text_of
from adapters.misbehaviour import without_end
from adapters.rig_socket import wire
from adapters.rig_socket.wire import ErrorKind, FromAgent, FromRig, SetupError, control
from adapters.server import (
    AnswerCancelled,
    AnswerWanted,
    AudioGiven,
    Reply,
    ServerStep,
    SetupGiven,
    ToolResultGiven,
)
from captures.frames import InFrame, OutFrame

_PIECE_MS = 100


def _cut_arguments(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """The arguments of every call as a string of JSON that stops half-way (`adapters.misbehaviour`)."""
    for frame in frames:
        fields = None if frame.binary else decode(frame.payload)
        if fields is not None and text_of(fields, "type") == FromAgent.TOOL_CALL:
            arguments = without_end(orjson.dumps(fields["arguments"]).decode())
            yield OutFrame(orjson.dumps({**fields, "arguments": arguments}))
        else:
            yield frame


class RigSocketServer:
    """`ServerDialect` of the rig socket for one connection."""

    answer_faults = MappingProxyType({"cut-arguments": _cut_arguments})

    def __init__(self, agent: str = "rig emulator", output_rate_hz: int = wire.OUTPUT_RATE_HZ) -> None:
        self._agent = agent
        self._output_rate_hz = output_rate_hz
        self._setup: Setup | None = None
        self._calls = 0
        self._open_calls: set[str] = set()

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """Nothing: the rig speaks first."""
        return ()

    def receive(self, frame: InFrame) -> ServerStep:
        """Intents of one message of the rig."""
        if frame.binary:
            if self._setup is None:
                return _wrong("audio before session.setup")
            return ServerStep(intents=[AudioGiven(frame.payload, self._setup.input_rate_hz)])
        fields = decode(frame.payload)
        kind = None if fields is None else text_of(fields, "type")
        if fields is None or kind is None:
            return _wrong("a text frame must hold one JSON object with a type")
        if kind == FromRig.SETUP:
            return self._on_setup(fields)
        if kind == FromRig.CLOSE:
            return ServerStep(close=(1000, ""))
        if self._setup is None:
            return _wrong(f"{brief(kind, 100)} before session.setup")
        match kind:
            case FromRig.TURN_COMMIT:
                return ServerStep(intents=[AnswerWanted()])
            case FromRig.TURN_TEXT:
                return ServerStep(intents=[AnswerWanted(text_of(fields, "text") or "")])
            case FromRig.TURN_CANCEL:
                return ServerStep(intents=[AnswerCancelled()])
            case FromRig.TOOL_RESULT:
                return self._on_tool_result(fields)
        return ServerStep()

    def _on_setup(self, fields: JsonObject) -> ServerStep:
        try:
            setup = wire.read_setup(fields)
            if setup.turn_control.mode is not TurnMode.MANUAL:
                # No voice detection here: such a turn would never end.
                raise SetupError("bad_setup", "this agent waits for turn.commit: use mode manual", "turn_control.mode")
        except SetupError as error:
            refusal = control(
                FromAgent.ERROR,
                kind=ErrorKind.CONFIGURATION.value,
                code=error.code,
                message=str(error),
                where=error.where,
                versions=[wire.VERSION] if error.code == "version_mismatch" else None,
            )
            return ServerStep([refusal], close=(wire.CLOSE_REFUSED, error.code))
        self._setup = setup
        ready = control(FromAgent.READY, version=wire.VERSION, agent=self._agent, output_rate_hz=self._output_rate_hz)
        return ServerStep([ready], [SetupGiven(setup)])

    def _on_tool_result(self, fields: JsonObject) -> ServerStep:
        call_id, output = text_of(fields, "call_id"), text_of(fields, "output")
        if call_id not in self._open_calls or call_id is None or output is None:
            return _wrong("tool.result needs the call_id of an open call and a string in output")
        self._open_calls.remove(call_id)
        result = ToolResultGiven(call_id, output)
        return ServerStep(intents=[result] if self._open_calls else [result, AnswerWanted()])

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """Transcript of the caller, words, speech, calls, usage, and the end of the turn.

        Raises:
            ValueError: speech at another rate than `session.ready` stated.
        """
        if reply.pcm and reply.rate_hz != self._output_rate_hz:
            raise ValueError(f"speech must be at {self._output_rate_hz} Hz, as session.ready states")
        if reply.input_transcript is not None:
            yield control(FromAgent.INPUT_TRANSCRIPT, text=reply.input_transcript)
        if reply.text:
            yield control(FromAgent.TRANSCRIPT if reply.pcm else FromAgent.TEXT, text=reply.text)
        piece = 2 * (self._output_rate_hz * _PIECE_MS // 1000)
        for start in range(0, len(reply.pcm), piece):
            yield OutFrame(reply.pcm[start : start + piece], binary=True)
        for call in reply.calls:
            call_id = f"call-{self._calls}"
            self._calls += 1
            self._open_calls.add(call_id)
            yield control(FromAgent.TOOL_CALL, call_id=call_id, name=call.name, arguments=dict(call.arguments))
        if reply.usage:
            yield control(FromAgent.USAGE, counts=dict(reply.usage))
        yield control(FromAgent.TURN_END, reason="completed")

    def failure(self, code: str, message: str) -> Sequence[OutFrame]:
        """An `error` that may be tried again."""
        return [control(FromAgent.ERROR, kind=ErrorKind.TRANSIENT.value, code=code, message=message)]


def _wrong(text: str) -> ServerStep:
    return ServerStep(
        [control(FromAgent.ERROR, kind=ErrorKind.PROTOCOL.value, code="unexpected_message", message=text)]
    )
