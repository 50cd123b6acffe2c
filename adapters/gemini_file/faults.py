"""What a failed generateContent request means, by HTTP status and Google's error object.

429 with a quota per day is used up; with one per minute it says how long to wait. A bad key comes as 400.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from adapters.foreign_json import JsonObject, brief, decode, int_of, list_of, masked, object_of, text_of
from captures.events import Failed, FailureKind, Refused
from transports.transport import TransportError

SDK_MISSING_CODE: Final = "sdk_missing"
SDK_MISSING: Final = "Google's SDK is not installed: pip install 'voice-agent-rig[google]'"
_KEY: Final = re.compile(r"api.?key|unauthenticated|permission.?denied|credential", re.IGNORECASE)
_QUOTA: Final = re.compile(r"billing|prepa(?:y|id)|spend(?:ing)? (?:cap|limit)|insufficient_quota", re.IGNORECASE)
_DELAY: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?)s")


def fault_of_request(error: TransportError, label: str, secrets: Iterable[str]) -> Refused | Failed:
    """What a request that brought no body of status 200 means."""
    if error.status is None:
        if error.code == SDK_MISSING_CODE:
            return Refused(error.code, str(error))
        if error.code == "bad_address":
            return Refused(error.code, brief(str(error)), "base_url")
        kind = FailureKind.PROTOCOL if error.code in ("message_too_big", "sdk_refused") else FailureKind.TRANSIENT
        return Failed(kind, error.code, brief(masked(str(error), secrets)), error.retry_after_s)
    explained = object_of(decode(error.body) or {}, "error") or {"message": error.body or str(error)}
    return _fault(error.status, explained, error.retry_after_s, label, secrets)


def fault_of_body(explained: JsonObject, label: str, secrets: Iterable[str]) -> Refused | Failed:
    """What an `error` inside a body of status 200 means."""
    return _fault(int_of(explained, "code") or 500, explained, None, label, secrets)


def _fault(
    status: int, explained: JsonObject, retry_after_s: float | None, label: str, secrets: Iterable[str]
) -> Refused | Failed:
    code = brief(masked(text_of(explained, "status") or f"http_{status}", secrets), 100)
    message = f"HTTP {status}: {brief(masked(text_of(explained, 'message') or 'no explanation given', secrets))}"
    if status == 429 or status == 402:
        per_day = any("PerDay" in quota for quota in _quotas(explained))
        if per_day or status == 402 or _QUOTA.search(message) or _QUOTA.search(code):
            return Failed(FailureKind.QUOTA, code, message)
        return Failed(FailureKind.RATE_LIMIT, code, message, retry_after_s or _stated_delay_s(explained))
    if status in (401, 403) or (status == 400 and _KEY.search(message)):
        # The vendor's own sentence may repeat parts of the key: its code says enough.
        return Refused(code, f"HTTP {status}: the key was refused by {label} (check the key: api_key_env)")
    if status == 413:
        # Concerns this clip alone; the other cells may well be served.
        return Failed(FailureKind.PROTOCOL, code, message)
    if 300 <= status < 500 and status not in (408, 409, 425):
        return Refused(code, message)
    return Failed(FailureKind.TRANSIENT, code, message, retry_after_s)


def _quotas(explained: JsonObject) -> list[str]:
    details = [detail for detail in list_of(explained, "details") if isinstance(detail, dict)]
    violations = [entry for detail in details for entry in list_of(detail, "violations") if isinstance(entry, dict)]
    return [quota for entry in violations if (quota := text_of(entry, "quotaId"))]


def _stated_delay_s(explained: JsonObject) -> float | None:
    """`retryDelay` of the error's RetryInfo, seconds."""
    for detail in list_of(explained, "details"):
        delay = text_of(detail, "retryDelay") if isinstance(detail, dict) else None
        if delay is not None and (found := _DELAY.fullmatch(delay)) is not None:
            return float(found[1])
    return None
