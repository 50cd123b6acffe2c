"""What the vendor's codes, refusals and closes mean: refuse the target, try again, wait, or go on.

Sources: OpenAI's Realtime reference; codes never worth a retry as livekit/agents has them (openai plugin,
`realtime_model.py`); session cap and beta refusal as reported from practice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from adapters.foreign_json import brief, decode, object_of, text_of
from captures.events import Failed, FailureKind, Refused
from captures.frames import ClosedBy
from transports.transport import TransportError


@dataclass(frozen=True, slots=True)
class FaultCodes:
    """A vendor's codes by what they mean; a member of the family adds its own to OpenAI's."""

    quota: frozenset[str] = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
    refusal: frozenset[str] = frozenset(
        {
            "invalid_api_key",
            "account_deactivated",
            "beta_api_shape_disabled",
            "model_not_found",
            "unsupported_country_region_territory",
        }
    )
    rate: frozenset[str] = frozenset({"rate_limit_exceeded"})
    expired: frozenset[str] = frozenset({"session_expired"})
    expired_words: tuple[str, ...] = ()
    """Parts of an explanation (lower case) by which a close is a planned end, whatever its code."""
    benign: frozenset[str] = frozenset({"conversation_already_has_active_response", "response_cancel_not_active"})
    """Races between what we asked and what the server had already done; nothing is lost."""
    benign_words: tuple[str, ...] = ()
    """Parts of messages (lower case) that say the same, where codes differ."""
    quota_words: tuple[str, ...] = ("quota", "billing")
    """Parts of an explanation (lower case) by which a refused or closed connection is one of quota."""
    error_quota_words: tuple[str, ...] = ()
    """Parts of an error's message (lower case) that mean a used-up quota, where codes do not tell."""
    error_rate_words: tuple[str, ...] = ()
    """The same for a limit that waiting helps with."""
    commit_empty: frozenset[str] = frozenset({"input_audio_buffer_commit_empty"})

    def is_benign(self, code: str, message: str) -> bool:
        """True for a race that lost nothing."""
        return code in self.benign or any(word in message.lower() for word in self.benign_words)

    def named_in(self, text: str) -> str | None:
        """The first code with a meaning that a text holds."""
        known = sorted(self.quota | self.refusal | self.rate | self.expired)
        return next((code for code in known if code.lower() in text.lower()), None)

    def names_expiry(self, text: str) -> bool:
        """True when an explanation speaks of a planned end."""
        return any(word in text.lower() for word in self.expired_words)

    def names_quota(self, text: str) -> bool:
        """True when an explanation speaks of a used-up quota."""
        return any(word in text.lower() for word in self.quota_words)


_RETRY_AFTER = re.compile(r"try again in ([0-9]{1,6}(?:\.[0-9]{1,6})?) ?(ms|s)\b")
_FAULT_CLOSES: Final = frozenset({1002, 1003, 1007, 1008, 1009, 1010})


def retry_after_s(message: str) -> float | None:
    """Seconds to wait as the vendor words it ("Please try again in 1.2s"), or None."""
    found = _RETRY_AFTER.search(message)
    return None if found is None else float(found[1]) / (1000 if found[2] == "ms" else 1)


def fault_of_code(codes: FaultCodes, code: str, message: str, where: str = "") -> Refused | Failed | None:
    """The fault that a code stands for wherever it comes up; None for all other codes."""
    if code in codes.refusal:
        return Refused(code, message, where)
    if code in codes.quota:
        return Failed(FailureKind.QUOTA, code, message)
    if code in codes.rate:
        return Failed(FailureKind.RATE_LIMIT, code, message, retry_after_s(message))
    if code in codes.expired:
        return Failed(FailureKind.TRANSIENT, code, message)
    if any(word in message.lower() for word in codes.error_rate_words):
        return Failed(FailureKind.RATE_LIMIT, code, message, retry_after_s(message))
    if any(word in message.lower() for word in codes.error_quota_words):
        return Failed(FailureKind.QUOTA, code, message)
    return None


def fault_of_connect(codes: FaultCodes, error: TransportError, label: str) -> Refused | Failed:
    """What a refused or failed handshake means, by HTTP status and the explanation in the body."""
    host = urlsplit(label).netloc
    body = decode(error.body.encode(errors="replace")) or {}
    explained = object_of(body, "error") or body
    vendor_code = brief(text_of(explained, "code") or text_of(explained, "type") or "", 100)
    status = error.status
    if status is None:
        kind = FailureKind.PROTOCOL if error.code == "message_too_big" else FailureKind.TRANSIENT
        return Failed(kind, error.code, brief(str(error)), error.retry_after_s)
    code = f"http_{status}"
    if vendor_code in codes.quota and status != 429:
        return Failed(FailureKind.QUOTA, vendor_code, f"{host} refused the connection with HTTP {status}")
    if status in (401, 403):
        # The vendor's own sentence may repeat parts of the key: its code says enough.
        return Refused(code, f"the key was refused by {host}" + (f" ({vendor_code})" if vendor_code else ""))
    message = brief(text_of(explained, "message") or error.body or str(error))
    if status == 429:
        spent = vendor_code in codes.quota or codes.names_quota(error.body)
        return Failed(
            FailureKind.QUOTA if spent else FailureKind.RATE_LIMIT,
            vendor_code or code,
            message,
            None if spent else error.retry_after_s or retry_after_s(message),
        )
    if status >= 500 or status in (408, 425):
        return Failed(FailureKind.TRANSIENT, code, message, error.retry_after_s)
    return Refused(vendor_code or code, f"{host} refused the connection with HTTP {status}: {message}")


def fault_of_close(codes: FaultCodes, closed: ClosedBy, ready: bool) -> Refused | Failed:
    """What a close before the end of the answer means. `ready`: the settings had been confirmed."""
    reason = brief(closed.reason)
    code = "closed" if closed.code is None else f"close_{closed.code}"
    named = codes.named_in(reason)
    message = f"connection closed ({closed.code if closed.code is not None else 'lost'})" + (
        f": {reason}" if reason else ""
    )
    if named is not None and (fault := fault_of_code(codes, named, message)) is not None:
        return fault
    if codes.names_quota(reason):
        return Failed(FailureKind.QUOTA, code, message)
    if codes.names_expiry(reason):
        return Failed(FailureKind.TRANSIENT, code, message)
    if closed.code is not None and (closed.code in _FAULT_CLOSES or 4000 <= closed.code <= 4999):
        # The same settings would be refused again; a fault in the middle of a turn concerns this cell alone.
        return Failed(FailureKind.PROTOCOL, code, message) if ready else Refused(code, message)
    return Failed(FailureKind.TRANSIENT, code, message)
