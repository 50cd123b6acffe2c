"""What an agent's refusals, errors and closes mean: refuse the target, try again, or report the cell as failed.

By the HTTP status of a refused handshake and the close codes of RFC 6455.
"""

from __future__ import annotations

from typing import Final

from adapters.foreign_json import brief
from adapters.rig_socket.wire import ErrorKind
from captures.events import Failed, FailureKind, Refused, Warned
from captures.frames import ClosedBy
from transports.transport import TransportError

_FAILURES: Final = {
    ErrorKind.TRANSIENT: FailureKind.TRANSIENT,
    ErrorKind.RATE_LIMIT: FailureKind.RATE_LIMIT,
    ErrorKind.QUOTA: FailureKind.QUOTA,
    ErrorKind.PROTOCOL: FailureKind.PROTOCOL,
}
_FAULT_CLOSES: Final = frozenset({1002, 1003, 1007, 1008, 1009, 1010})
"""A peer that sends these was given, or gave, what the same settings would give again."""


def fault_of_error(
    kind: ErrorKind, code: str, text: str, where: str, retry_after_s: float | None
) -> Refused | Failed | Warned:
    """The event of an `error` message."""
    if kind is ErrorKind.CONFIGURATION:
        return Refused(code, text, where)
    if kind is ErrorKind.WARNING:
        return Warned(code, text)
    return Failed(_FAILURES[kind], code, text, retry_after_s)


def fault_of_connect(error: TransportError) -> Refused | Failed:
    """What a refused or failed handshake means."""
    status = error.status
    if status is None:
        kind = FailureKind.PROTOCOL if error.code in ("message_too_big", "not_websocket") else FailureKind.TRANSIENT
        if error.code == "bad_address":
            return Refused(error.code, brief(str(error)), "base_url")
        return Failed(kind, error.code, brief(str(error)), error.retry_after_s)
    code = f"http_{status}"
    text = brief(f"{error}: {error.body.strip()}" if error.body.strip() else str(error))
    if status == 429:
        return Failed(FailureKind.RATE_LIMIT, code, text, error.retry_after_s)
    if status >= 500 or status in (408, 425):
        return Failed(FailureKind.TRANSIENT, code, text, error.retry_after_s)
    if status in (401, 403):
        text = f"{text} (check the token: api_key_env or settings.headers)"
    return Refused(code, text)


def fault_of_close(closed: ClosedBy, ready: bool) -> Refused | Failed:
    """What a close means that came before the end of the answer. `ready`: the session had been confirmed."""
    reason = f": {brief(closed.reason)}" if closed.reason else ""
    if closed.code is None:
        return Failed(FailureKind.TRANSIENT, "closed", f"the agent's connection was lost before turn.end{reason}")
    code = f"close_{closed.code}"
    awaited = "turn.end" if ready else "session.ready"
    text = f"the agent closed the connection ({closed.code}) before {awaited}{reason}"
    if closed.code in _FAULT_CLOSES or 4000 <= closed.code <= 4999:
        return Failed(FailureKind.PROTOCOL, code, text) if ready else Refused(code, text)
    if closed.code == 1000:
        # A deliberate close: the agent takes its answer for finished, and would again.
        return Failed(FailureKind.PROTOCOL, code, text)
    return Failed(FailureKind.TRANSIENT, code, text)
