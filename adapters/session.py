"""The session shell: joins one dialect's client half to one transport, for one attempt.

It stamps, logs and hands on; it decides nothing about turns. File mode uses the same shell: its transport posts the
one frame that the dialect makes at commit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import anyio

from adapters.dialect import ClientDialect, EncodedClip, SeesToolsBeside, Setup, StampsAudio, Timed
from captures.capture import Mark, NetworkTimes
from captures.clock import Clock
from captures.events import Event, Failed, FailureKind, Refused, SessionReady, TimedEvent
from captures.frames import ClosedBy, Direction, InFrame, LoggedFrame, OutFrame
from transports.alarm import Alarm
from transports.transport import MeasuresNetwork, ReportsFailures, Transport, TransportError


class SessionError(Exception):
    """The session ended with `Refused` or `Failed` before a turn could be measured."""

    def __init__(self, event: Refused | Failed) -> None:
        super().__init__(f"{event.code}: {event.message}")
        self.event = event


MAX_RECEIVED_BYTES = 128 * 1024 * 1024
"""Of one session, all messages together: twice the largest single message, far beyond any honest turn."""
MAX_RECEIVED_FRAMES = 100_000
"""A minute of speech in pieces of 20 ms is 3,000."""


_BROKEN_BY_PEER = {1002: "protocol_error", 1007: "not_utf8", 1009: "message_too_big"}
"""Codes that our transport closes with when the peer breaks the WebSocket protocol or its limits."""


class Session:
    """One connection to a target, opened for one attempt and never reused."""

    def __init__(self, dialect: ClientDialect, transport: Transport, clock: Clock) -> None:
        self.dialect = dialect
        self.clock = clock
        self.log: list[LoggedFrame] = []
        """Every frame, both ways, in order."""
        self.events: list[TimedEvent] = []
        """Every event so far, in order."""
        self.marks: dict[Mark, int] = {}
        """Connection marks."""
        self.ready: SessionReady | None = None
        self.closed: ClosedBy | None = None
        """How the connection ended, once it has."""
        self.failure: Refused | Failed | None = None
        """The first failure; nothing after it counts as an answer."""
        self._transport = transport
        self._received_bytes = 0
        self._received_frames = 0
        self._listened = False
        if isinstance(transport, ReportsFailures):
            transport.on_failed = self._on_failed
        self._on_wire = dialect.on_wire if isinstance(dialect, StampsAudio) else None
        self._timed = dialect if isinstance(dialect, Timed) else None
        self._alarm = Alarm(clock, self._on_alarm) if self._timed is not None else None
        self._changed = anyio.Event()
        self._listener: Callable[[TimedEvent], None] | None = None
        self._close_listener: Callable[[ClosedBy], None] | None = None

    # --- opening and closing

    async def open(self, setup: Setup, limit_s: float) -> None:
        """Connect, send the setup and wait until the peer confirms it.

        Raises:
            SettingsError: the dialect cannot put `setup` on its wire; before any connection.
            SessionError: refused, failed, or not ready within `limit_s` seconds.
        """
        opening = self.dialect.open(setup)
        limit_s += self.dialect.capabilities.greeting_s
        if isinstance(self.dialect, SeesToolsBeside) and self.dialect.tool_channel is not None:
            self.dialect.tool_channel.attach(self.dialect.call_id, self._on_frame)
        self.marks[Mark.CONNECT_START] = self.clock.now_ns()
        with anyio.move_on_after(limit_s) as scope:
            try:
                await self._transport.connect(self.dialect.endpoint(), self._on_frame, self._on_closed)
            except TransportError as error:
                self._on_failed(error)
            else:
                self.marks[Mark.CONNECT_END] = self.clock.now_ns()
                sent_ns = self.send(opening)
                if self._timed is not None:
                    self._timed.opened(sent_ns)
                    self._on_alarm()
                able = self.dialect.capabilities
                if not (able.streams_audio and able.confirms_setup):
                    self._take(self.marks[Mark.CONNECT_END], SessionReady())
            grace_s = self.dialect.capabilities.ready_grace_s
            with anyio.move_on_after(math.inf if grace_s is None else grace_s) as grace:
                while self.ready is None and self.failure is None:
                    await self.wait_change()
            if grace.cancelled_caught and any(frame.direction is Direction.RECEIVED for frame in self.log):
                self._take(self.clock.now_ns(), SessionReady(echoed={"note": f"not confirmed within {grace_s:g} s"}))
            while self.ready is None and self.failure is None:
                await self.wait_change()
        if scope.cancelled_caught:
            self.failure = Failed(
                FailureKind.TRANSIENT,
                "not_ready",
                f"{self.dialect.endpoint().label} did not confirm the session's settings within {limit_s:g} s",
            )
        if self.failure is not None:
            raise SessionError(self.failure)

    async def close(self) -> None:
        """Send what is owed and close; bounded, also when cancelled, and safe to call twice."""
        self._end_alarm()
        if isinstance(self.dialect, SeesToolsBeside) and self.dialect.tool_channel is not None:
            self.dialect.tool_channel.detach(self.dialect.call_id)
        with anyio.CancelScope(shield=True), anyio.move_on_after(5):
            if self.closed is None:
                self.send(self.dialect.close())
            await self._transport.close()

    # --- verbs

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """See `ClientDialect.encode_clip`."""
        return self.dialect.encode_clip(pcm, rate_hz, chunk_ms)

    def send(self, frames: Iterable[OutFrame]) -> int:
        """Send frames now; the stamp of the last, or now if there are none (monotonic ns)."""
        t_ns = self.clock.now_ns()
        for frame in frames:
            t_ns = self.send_chunk(frame)
        return t_ns

    def send_chunk(self, frame: OutFrame) -> int:
        """Send one frame (the hot path); its stamp (monotonic ns), taken as it is handed to the transport."""
        t_ns = self.clock.now_ns()
        if frame.held:
            self.dialect.hold(frame)
            return t_ns
        if self._on_wire is not None and frame.binary:
            frame = self._on_wire(frame, t_ns)
        self._transport.write(frame)
        self.log.append(LoggedFrame(t_ns, Direction.SENT, frame.payload, frame.binary))
        return t_ns

    def ping(self) -> None:
        """Measure the way to the peer, where the transport can."""
        if isinstance(self._transport, MeasuresNetwork):
            self._transport.ping()

    def network_times(self) -> NetworkTimes | None:
        """What is known of the way to the peer; None where the transport measures none."""
        return self._transport.network_times() if isinstance(self._transport, MeasuresNetwork) else None

    def start_turn(self) -> int:
        """See `ClientDialect.start_turn`; returns the stamp."""
        sent_ns = self.send(self.dialect.start_turn())
        self._set_alarm()
        return sent_ns

    def commit_turn(self) -> int:
        """See `ClientDialect.commit_turn`; returns the stamp."""
        return self.send(self.dialect.commit_turn())

    def text(self, text: str) -> int:
        """See `ClientDialect.text`; returns the stamp."""
        return self.send(self.dialect.text(text))

    def tool_result(self, call_id: str, output: str) -> int:
        """See `ClientDialect.tool_result`; returns the stamp."""
        return self.send(self.dialect.tool_result(call_id, output))

    def cancel(self) -> int | None:
        """See `ClientDialect.cancel`; returns the stamp, None where the dialect has no such message."""
        return self._send_any(self.dialect.cancel())

    def truncate(self, audio_ms: int) -> int | None:
        """See `ClientDialect.truncate`; returns the stamp, None where the dialect has no such message."""
        return self._send_any(self.dialect.truncate(audio_ms))

    def _send_any(self, frames: Sequence[OutFrame]) -> int | None:
        return self.send(frames) if frames else None

    def backlog_bytes(self) -> int:
        """Bytes written but not yet taken by the operating system."""
        return self._transport.backlog_bytes()

    # --- what comes back

    def listen(
        self,
        listener: Callable[[TimedEvent], None] | None,
        on_closed: Callable[[ClosedBy], None] | None = None,
    ) -> None:
        """Call `listener` with every event from now on, on the event loop, before waiters wake. None stops it.

        `on_closed` is called once the connection has ended, after the events that its end gave rise to. The first
        listener is given what came before it, too: an agent that speaks or acts before the caller does is not unheard.
        """
        self._listener = listener
        self._close_listener = on_closed
        if listener is not None and not self._listened:
            self._listened = True
            for timed in tuple(self.events):
                if not isinstance(timed.event, SessionReady | Refused | Failed):
                    listener(timed)

    async def wait_change(self) -> None:
        """Wait until something new has arrived, or the connection has ended."""
        await self._changed.wait()

    def _on_frame(self, frame: InFrame) -> None:
        if self._received_frames > MAX_RECEIVED_FRAMES or self._received_bytes > MAX_RECEIVED_BYTES:
            return
        self._received_frames += 1
        self._received_bytes += len(frame.payload)
        if self._received_frames > MAX_RECEIVED_FRAMES or self._received_bytes > MAX_RECEIVED_BYTES:
            bounds = f"{MAX_RECEIVED_FRAMES:,} messages or {MAX_RECEIVED_BYTES >> 20} MiB"
            message = f"the peer sent more than {bounds} in one session"
            self._take(frame.t_ns, Failed(FailureKind.PROTOCOL, "flood", message))
            return
        self.log.append(LoggedFrame(frame.t_ns, Direction.RECEIVED, frame.payload, frame.binary))
        events, owed = self.dialect.receive(frame)
        self._take_all(frame.t_ns, events)
        self.send(owed)
        self._set_alarm()

    def _on_alarm(self) -> None:
        """What a timed dialect owes by now, and when it will owe more."""
        if self._timed is None or self.closed is not None or self.failure is not None:
            return
        now_ns = self.clock.now_ns()
        events, owed = self._timed.due(now_ns)
        self.send(owed)
        self._take_all(now_ns, events)
        self._set_alarm()

    def _set_alarm(self) -> None:
        if self._timed is not None and self._alarm is not None:
            self._alarm.set(self._timed.next_due_ns())

    def _end_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.set(None)
            self._alarm = None  # the two refer to each other, and would wait for the garbage collector

    def _on_failed(self, error: TransportError) -> None:
        self._take(self.clock.now_ns(), self.dialect.connect_failed(error))

    def _on_closed(self, closed: ClosedBy) -> None:
        self.closed = closed
        self._end_alarm()
        event: Event | None
        if not closed.by_peer and closed.code in _BROKEN_BY_PEER:
            event = Failed(FailureKind.PROTOCOL, _BROKEN_BY_PEER[closed.code], closed.reason)
        else:
            event = self.dialect.closed(closed) if closed.by_peer else None
        self._take_all(closed.t_ns, [] if event is None else [event])
        if self._close_listener is not None:
            self._close_listener(closed)

    def _take(self, t_ns: int, event: Event) -> None:
        self._take_all(t_ns, [event])

    def _take_all(self, t_ns: int, events: Sequence[Event]) -> None:
        for event in events:
            timed = TimedEvent(t_ns, event)
            self.events.append(timed)
            if isinstance(event, SessionReady) and self.ready is None:
                self.ready = event
                self.marks[Mark.SESSION_READY] = t_ns
            elif isinstance(event, Refused | Failed) and self.failure is None:
                self.failure = event
            if self._listener is not None:
                self._listener(timed)
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
