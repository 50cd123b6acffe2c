"""What the stream's exceptions, refusals and ends mean. Names and texts: AWS API reference, pipecat-ai/pipecat#3387."""

from __future__ import annotations

from typing import Final

from adapters.foreign_json import brief
from captures.events import Failed, FailureKind, Refused
from captures.frames import ClosedBy
from transports.transport import TransportError

SDK_MISSING: Final = "sdk_missing"
NO_CREDENTIALS: Final = "no_credentials"
_REFUSED: Final = frozenset(
    {
        "accessdenied",
        "unrecognizedclient",
        "invalidsignature",
        "missingauthenticationtoken",
        "expiredtoken",
        "resourcenotfound",
        SDK_MISSING,
        NO_CREDENTIALS,
    }
)
_QUOTA: Final = frozenset({"servicequotaexceeded"})
_RATE: Final = frozenset({"throttling", "toomanyrequests"})
_NOT_UNCHANGED: Final = frozenset({1002, 1003, 1007, 1008, 1009, 1010})
"""Closes of the loopback stream that would come again for the same events (Bedrock's own stream has no such codes)."""
_WORTH_A_RETRY: Final = ("rst_stream", "system instability", "tool response parsing error")


def fault_of_name(name: str, text: str, *, begun: bool) -> Refused | Failed:
    """A fault by its name, as `validationException` or `ValidationException`. `begun`: the answer had begun."""
    message = brief(text or name)
    short = name.lower().removesuffix("exception").removesuffix("error")
    code = brief(name, 100)
    if short in _REFUSED:
        return Refused(code, message)
    if short in _QUOTA:
        return Failed(FailureKind.QUOTA, code, message)
    if short in _RATE:
        return Failed(FailureKind.RATE_LIMIT, code, message)
    if short == "validation" and not any(words in text.lower() for words in _WORTH_A_RETRY):
        # The same events would be refused again; in the middle of an answer it concerns this cell alone.
        return Failed(FailureKind.PROTOCOL, code, message) if begun else Refused(code, message)
    return Failed(FailureKind.TRANSIENT, code, message)


def fault_of_connect(error: TransportError) -> Refused | Failed:
    """What a stream that never opened means."""
    status = error.status
    told = brief(f"{error} {error.body}".strip())
    if status in (401, 403):
        return Refused(f"http_{status}", brief(f"the credentials were refused: {told}"))
    if status == 429:
        kind = FailureKind.QUOTA if "quota" in error.body.lower() else FailureKind.RATE_LIMIT
        return Failed(kind, f"http_{status}", told, error.retry_after_s)
    if status is not None and 400 <= status < 500 and status not in (408, 425):
        return Refused(f"http_{status}", told)
    return fault_of_name(error.code, str(error), begun=False)


def fault_of_close(closed: ClosedBy) -> Failed:
    """A stream that ended before the answer did."""
    said = brief(closed.reason) or "no reason given"
    if closed.code is not None and (closed.code in _NOT_UNCHANGED or 4000 <= closed.code <= 4999):
        return Failed(FailureKind.PROTOCOL, f"close_{closed.code}", said)
    return Failed(FailureKind.TRANSIENT, "closed" if closed.code is None else f"close_{closed.code}", said)
