"""What the close of a templated agent's connection means, by RFC 6455 alone: its protocol has no codes that we know."""

from __future__ import annotations

from typing import Final

from adapters.foreign_json import brief
from captures.events import Failed, FailureKind, Refused
from captures.frames import ClosedBy

_FAULT_CLOSES: Final = frozenset({1002, 1003, 1007, 1008, 1009, 1010})


def fault_of_close(closed: ClosedBy, ready: bool) -> Refused | Failed:
    """What a close means that came before the end of the answer. `ready`: the session had been confirmed."""
    reason = f": {brief(closed.reason)}" if closed.reason else ""
    if closed.code is None:
        return Failed(FailureKind.TRANSIENT, "closed", f"the agent's connection was lost{reason}")
    when = "before its answer had ended" if ready else "before its event `ready`"
    code, text = f"close_{closed.code}", f"the agent closed the connection ({closed.code}) {when}{reason}"
    if closed.code in _FAULT_CLOSES or 4000 <= closed.code <= 4999:
        return Failed(FailureKind.PROTOCOL, code, text) if ready else Refused(code, text)
    return Failed(FailureKind.PROTOCOL if closed.code == 1000 else FailureKind.TRANSIENT, code, text)
