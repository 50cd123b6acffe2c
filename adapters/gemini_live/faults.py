"""What the vendor's refusals and closes mean, read by their reason text: codes alone say little here.

1007 and 1008 are faults of ours or of the key; 1011 is the vendor's, but also a used-up quota, by a clean close. Facts:
ai.google.dev live-api pages, Vertex troubleshooting, kazunori279/interpretab#13, discuss.ai.google.dev/t/186392.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from adapters.foreign_json import JsonObject, brief, decode, int_of, list_of, masked, object_of, text_of
from captures.events import Failed, FailureKind, Refused
from captures.frames import ClosedBy
from transports.transport import TransportError

_QUOTA: Final = re.compile(r"quota|billing|prepa(?:y|id)|spend(?:ing)? (?:cap|limit)", re.IGNORECASE)
_RATE: Final = re.compile(r"rate.?limit|too many (?:requests|concurrent)|resource.?exhausted", re.IGNORECASE)
_KEY: Final = re.compile(
    r"api.?key|unauthenticated|permission.?denied|credential|access token|not authorized", re.IGNORECASE
)
_MODEL: Final = re.compile(r"model\S* .*(?:not found|not supported)|is not found|not enabled", re.IGNORECASE)
_FAULT_CLOSES: Final = frozenset({1002, 1003, 1007, 1008, 1009, 1010})
_DELAY: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?)s")


def fault_of_reason(code: str, message: str, *, ready: bool) -> Refused | Failed | None:
    """The fault that a reason names; None when it names none of these.

    A model that was taken (`ready`) is never at fault: 1008 "not enabled" then is a glitch (google/adk-python#4679).
    """
    if _QUOTA.search(message):
        return Failed(FailureKind.QUOTA, code, message)
    if _RATE.search(message):
        return Failed(FailureKind.RATE_LIMIT, code, message)
    if _KEY.search(message) or (not ready and _MODEL.search(message)):
        return Refused(code, message)
    return None


def fault_of_close(closed: ClosedBy, *, ready: bool, leaving: bool, secrets: Iterable[str]) -> Refused | Failed:
    """What a close before the end of the answer means.

    `ready`: the setup had been confirmed. `leaving`: the vendor had announced it (`goAway`).
    """
    reason = brief(masked(closed.reason, secrets))
    code = "closed" if closed.code is None else f"close_{closed.code}"
    shown = "lost" if closed.code is None else str(closed.code)
    message = f"connection closed ({shown})" + (f": {reason}" if reason else "")
    if leaving:
        return Failed(FailureKind.TRANSIENT, code, f"{message} (the session's time was up)")
    if reason and (fault := fault_of_reason(code, message, ready=ready)) is not None:
        return fault
    if closed.code is not None and (closed.code in _FAULT_CLOSES or 4000 <= closed.code <= 4999):
        # The same setup would be refused again; a fault in the middle of a turn concerns this cell alone.
        if not ready:
            return Refused(code, message)
        # 1008 came and went by itself while audio flowed (autonomous-ai/autonomous-os#237): another try may pass.
        kind = FailureKind.TRANSIENT if closed.code == 1008 else FailureKind.PROTOCOL
        return Failed(kind, code, message)
    return Failed(FailureKind.TRANSIENT, code, message)


def fault_of_connect(error: TransportError, label: str, secrets: Iterable[str]) -> Refused | Failed:
    """What a refused or failed handshake means, by HTTP status and the explanation in the body."""
    host = urlsplit(label).netloc
    explained = object_of(decode(error.body.encode(errors="replace")) or {}, "error")
    status = error.status
    if status is None:
        kind = FailureKind.PROTOCOL if error.code == "message_too_big" else FailureKind.TRANSIENT
        return Failed(kind, error.code, brief(masked(str(error), secrets)), error.retry_after_s)
    code = brief(masked(text_of(explained, "status") or f"http_{status}", secrets), 100)
    message = brief(masked(text_of(explained, "message") or error.body or str(error), secrets))
    if status in (401, 403) or (status == 400 and _KEY.search(message)):
        # The vendor's own sentence may repeat parts of the key: its code says enough.
        return Refused(f"http_{status}", f"the key was refused by {host} ({code})")
    if status == 429:
        wait_s = error.retry_after_s or _stated_delay_s(explained)
        spent = wait_s is None and _QUOTA.search(message) is not None
        return Failed(FailureKind.QUOTA if spent else FailureKind.RATE_LIMIT, code, message, wait_s)
    if status >= 500 or status in (408, 425):
        return Failed(FailureKind.TRANSIENT, code, message, error.retry_after_s)
    return Refused(code, f"{host} refused the connection with HTTP {status}: {message}")


def fault_of_error(error: JsonObject, *, ready: bool, secrets: Iterable[str]) -> Refused | Failed:
    """An `error` object in a message; the vendor sends none in normal use."""
    number = int_of(error, "code")
    code = brief(masked(text_of(error, "status") or ("error" if number is None else str(number)), secrets), 100)
    message = brief(masked(text_of(error, "message") or "no explanation given", secrets))
    if (fault := fault_of_reason(code, f"{code}: {message}", ready=ready)) is not None:
        return fault
    if not ready and code in ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND", "400", "404"):
        return Refused(code, message)
    return Failed(FailureKind.TRANSIENT, code, message)


def _stated_delay_s(explained: JsonObject) -> float | None:
    """`retryDelay` of the error's RetryInfo, seconds."""
    for detail in list_of(explained, "details"):
        delay = text_of(detail, "retryDelay") if isinstance(detail, dict) else None
        if delay is not None and (found := _DELAY.fullmatch(delay)) is not None:
            return float(found[1])
    return None
