"""Silence of the caller between two turns, where audio must not pause. It waits for nothing and ends when told to."""

from __future__ import annotations

from collections.abc import Callable

from adapters.session import Session
from turn_control.pacing import chunk_ns, next_silence_due_ns
from turn_control.ticker import Scheduled, Ticker


class SilentCaller:
    """Sends paced silence into a session from `start` to `stop`."""

    def __init__(self, session: Session, rate_hz: int, chunk_ms: int) -> None:
        self._session = session
        self._frame = session.dialect.encode_silence(rate_hz, chunk_ms)
        self._step_ns = chunk_ns(chunk_ms, 1.0)
        self._due_ns = 0
        self._scheduled: Scheduled | None = None
        self.sent = 0
        """Pieces so far."""

    def start(self, ticker: Ticker, failed: Callable[[Exception], None]) -> None:
        """The first piece is due now: the audio before it has ended. `failed` is given what goes wrong later."""
        self._due_ns = self._session.clock.now_ns()
        self._scheduled = ticker.add(self._due_ns, self._tick, failed)

    def stop(self) -> None:
        """No piece from now on."""
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def _tick(self) -> int | None:
        if self._session.closed is not None:
            return None
        sent_ns = self._session.send_chunk(self._frame)
        self.sent += 1
        self._due_ns = next_silence_due_ns(self._due_ns, sent_ns, self._step_ns)
        return self._due_ns
