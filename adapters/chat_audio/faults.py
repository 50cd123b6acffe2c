"""What a failed request means, by HTTP status and the vendor's code.

Also for errors in a body of status 200, as OpenRouter sends them when its upstream failed: the code is the status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.foreign_json import brief, decode, int_of, object_of, text_of
from captures.events import Failed, FailureKind, Refused
from transports.transport import TransportError

_QUOTA_CODES: Final = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "AllocationQuota.FreeTierOnly"}
)
_RATE_CODES: Final = frozenset({"rate_limit_exceeded", "rate_limit_error"})
_REFUSAL_CODES: Final = frozenset({"invalid_request_error", "model_not_found"})
_KEY_CODES: Final = frozenset({"invalid_api_key", "account_deactivated"})
_NO_ENCODER: Final = "audio input is not supported"
"""llama.cpp answers so, with status 500, when it was started without an audio encoder: no retry mends that."""
_CLIP_CODES: Final = frozenset({"exceed_context_size_error", "context_length_exceeded"})
"""Concern one clip alone, although the status is 400."""
_CALL_CODE: Final = "tool_use_failed"
"""Groq answers so, with status 400, where the model's call cannot be parsed."""
_CALL_TEXTS: Final = ("failed to parse input at pos", "does not match the expected")
"""llama.cpp answers so, with status 500, where the model's call cannot be parsed; a retry repeats it."""


def unusable_call(explained: Mapping[str, Any]) -> str | None:
    """What the model wrote (or what is said of it) where its call was unparsable: its fault, not the request's.

    None for any other error.
    """
    message = text_of(explained, "message") or ""
    told = (text_of(explained, "code"), text_of(explained, "type"))
    if _CALL_CODE not in told and not any(text in message.lower() for text in _CALL_TEXTS):
        return None
    return text_of(explained, "failed_generation") or message


def answers_all_the_same(error: TransportError) -> bool:
    """True for a refusal that is the model's answer: a call that its server could not parse."""
    return error.status in (400, 500) and unusable_call(object_of(decode(error.body) or {}, "error")) is not None


def fault_of_request(error: TransportError) -> Refused | Failed:
    """What a request that brought no body of status 200 means."""
    if error.status is None:
        if error.code == "bad_address":
            return Refused(error.code, brief(str(error)), "base_url")
        kind = FailureKind.PROTOCOL if error.code == "message_too_big" else FailureKind.TRANSIENT
        return Failed(kind, error.code, brief(str(error)), error.retry_after_s)
    stated = decode(error.body) or {}
    explained = object_of(stated, "error") or {"message": text_of(stated, "error") or error.body or str(error)}
    return _fault(error.status, explained, error.retry_after_s)


def fault_in_body(error: object) -> Refused | Failed:
    """What an `error` inside a body of status 200 means."""
    explained: Mapping[str, Any] = error if isinstance(error, dict) else {"message": str(error)}
    return _fault(int_of(explained, "code"), explained, None)


def _fault(status: int | None, explained: Mapping[str, Any], retry_after_s: float | None) -> Refused | Failed:
    vendor_code = text_of(explained, "code") or text_of(explained, "type") or ""
    code = brief(vendor_code, 100) or (f"http_{status}" if status is not None else "error")
    stated = brief(text_of(explained, "message") or "no explanation given")
    message = stated if status is None else f"HTTP {status}: {stated}"
    where = brief(text_of(explained, "param") or "", 200)
    if status == 402 or vendor_code in _QUOTA_CODES or text_of(explained, "type") in _QUOTA_CODES:
        return Failed(FailureKind.QUOTA, code, message)
    if status == 429 or vendor_code in _RATE_CODES:
        return Failed(FailureKind.RATE_LIMIT, code, message, retry_after_s)
    if status in (401, 403) or vendor_code in _KEY_CODES:
        return Refused(code, f"{message} (check the key: api_key_env)", where)
    if _NO_ENCODER in stated.lower():
        return Refused(code, message, where)
    if status == 413 or vendor_code in _CLIP_CODES or text_of(explained, "type") in _CLIP_CODES:
        # Concerns this clip alone; the other cells may well be served.
        return Failed(FailureKind.PROTOCOL, code, message)
    refused = vendor_code in _REFUSAL_CODES if status is None else 300 <= status < 500 and status not in (408, 409, 425)
    if refused:
        return Refused(code, message, where)
    return Failed(FailureKind.TRANSIENT, code, message, retry_after_s)
