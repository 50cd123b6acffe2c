"""Silence of the caller between two turns, where audio must not pause. It decides nothing about turns."""

from __future__ import annotations

from types import TracebackType

from adapters.session import Session
from turn_control.pacing import chunk_ns, next_silence_due_ns
from turn_control.ticker import Scheduled, Ticker


class SilentCaller:
    """Sends paced silence into a session while its context lasts, or until the session has closed."""

    def __init__(self, session: Session, ticker: Ticker, rate_hz: int, chunk_ms: int) -> None:
        self._session = session
        self._ticker = ticker
        self._frame = session.dialect.encode_silence(rate_hz, chunk_ms)
        self._step_ns = chunk_ns(chunk_ms, 1.0)
        self._due_ns = 0
        self._scheduled: Scheduled | None = None
        self._fault: Exception | None = None
        self.sent = 0
        """Pieces so far."""

    def __enter__(self) -> SilentCaller:
        """The first piece is due now: the audio before it has ended."""
        self._due_ns = self._session.clock.now_ns()
        self._scheduled = self._ticker.add(self._due_ns, self._tick, self._failed)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
        if self._fault is not None and error is None:
            raise self._fault

    def _failed(self, error: Exception) -> None:
        self._fault = error

    def _tick(self) -> int | None:
        if self._session.closed is not None:
            return None
        sent_ns = self._session.send_chunk(self._frame)
        self.sent += 1
        self._due_ns = next_silence_due_ns(self._due_ns, sent_ns, self._step_ns)
        return self._due_ns
