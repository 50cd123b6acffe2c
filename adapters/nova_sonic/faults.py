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
    if status in (401, 403):
        return Refused(f"http_{status}", "the credentials were refused")
    if status == 429:
        return Failed(FailureKind.RATE_LIMIT, f"http_{status}", brief(str(error)), error.retry_after_s)
    if status is not None and 400 <= status < 500 and status not in (408, 425):
        return Refused(f"http_{status}", brief(f"{error} {error.body}"))
    return fault_of_name(error.code, str(error), begun=False)


def fault_of_close(closed: ClosedBy) -> Failed:
    """A stream that ended before the answer did."""
    said = brief(closed.reason) or "no reason given"
    return Failed(FailureKind.TRANSIENT, "closed" if closed.code is None else f"close_{closed.code}", said)
