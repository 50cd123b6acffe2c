"""One connection to the agent under test, with every message of it in order. Nothing here judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import anyio

from adapters.foreign_json import JsonObject, decode, text_of
from adapters.rig_socket.wire import FromAgent
from captures.clock import Clock
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint, Transport, TransportError

MAX_MESSAGES = 20_000
"""Of one connection; a minute of speech in pieces of 20 ms is 3,000."""
MAX_BYTES = 32 * 1024 * 1024
"""Of one connection; eleven minutes of speech at 24 kHz."""
_TICK_S = 0.05

CONTENT = frozenset({FromAgent.TOOL_CALL.value, FromAgent.TEXT.value, FromAgent.TRANSCRIPT.value, "audio"})
"""What an answer is made of."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One message of the agent."""

    t_ns: int
    payload: bytes = field(repr=False)
    binary: bool
    fields: JsonObject | None = None
    """None of a binary message, and of a text message that is no JSON object."""

    @property
    def type(self) -> str:
        """Its `type`; `audio` of a binary message, empty where there is none."""
        return "audio" if self.binary else text_of(self.fields or {}, "type") or ""


class Talk:
    """A connection that is heard up to a bound. Never raises for what the agent does."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self.clock = clock
        self.heard: list[Heard] = []
        self.closed: ClosedBy | None = None
        """How the agent's side ended, if it has."""
        self.died = False
        """It ended before the rig had said goodbye."""
        self.flooded = False
        """It sent more than the bounds; what came after is not here."""
        self.opened_ns = clock.now_ns()
        self._transport = transport
        self._bytes = 0
        self._leaving = False
        self._changed = anyio.Event()

    async def connect(self, endpoint: Endpoint, limit_s: float) -> None:
        """Raises `TransportError`: refused, unreachable, or not within `limit_s` seconds."""
        with anyio.move_on_after(limit_s) as scope:
            await self._transport.connect(endpoint, self._on_frame, self._on_closed)
        if scope.cancelled_caught:
            raise TransportError(f"{endpoint.label} did not answer within {limit_s:g} s", code="timeout")

    def send(self, frames: Iterable[OutFrame]) -> None:
        """Send at once; dropped once the connection has ended."""
        for frame in frames:
            self._transport.write(frame)

    async def until(self, found: Callable[[], bool], limit_s: float) -> bool:
        """Wait until `found()`, the end of the connection or the limit in seconds; whether it was found."""
        deadline = anyio.current_time() + limit_s
        while not found():
            left_s = deadline - anyio.current_time()
            if left_s <= 0 or self.over:
                return False
            with anyio.move_on_after(min(left_s, _TICK_S)):  # the tick is for what silence decides
                await self._changed.wait()
        return True

    @property
    def over(self) -> bool:
        """Nothing more will be heard."""
        return self.closed is not None or self.flooded

    def expect_close(self) -> None:
        """From now on the agent may close."""
        self._leaving = True

    async def close(self) -> None:
        """Close the WebSocket; bounded, also when cancelled."""
        self._leaving = True
        with anyio.CancelScope(shield=True), anyio.move_on_after(5):
            await self._transport.close()

    def _on_frame(self, frame: InFrame) -> None:
        if self.flooded:
            return
        self._bytes += len(frame.payload)
        if len(self.heard) >= MAX_MESSAGES or self._bytes > MAX_BYTES:
            self.flooded = True
        else:
            fields = None if frame.binary else decode(frame.payload)
            self.heard.append(Heard(frame.t_ns, frame.payload, frame.binary, fields))
        self._wake()

    def _on_closed(self, closed: ClosedBy) -> None:
        self.closed = closed
        self.died = not self._leaving
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
