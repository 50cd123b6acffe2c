"""Shared by the tests of captures: a capture to write, a planted key, and a search for what is left of it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from captures.capture import Capture, Condition, Ending, Mark, ReplyAudio


@pytest.fixture(scope="session")
def key() -> str:
    return "TESTKEY-not-real-7f3a9c"


@pytest.fixture(scope="session")
def leaks(key: str) -> Callable[[bytes], list[str]]:
    """Parts of 8 characters of the key found in some output: plain, percent-encoded, base64 (all alignments)."""

    def search(output: bytes) -> list[str]:
        found = []
        for at in range(len(key) - 7):
            part = key[at : at + 8].encode()
            # At each alignment, the characters that these 8 bytes alone decide.
            coded = [base64.b64encode(b"\0" * shift + part + b"\0")[[0, 2, 3][shift] :][:10] for shift in range(3)]
            full = "".join(f"%{byte:02X}" for byte in part).encode()
            if any(form in output for form in (part, quote(part).encode(), full, *coded)):
                found.append(part.decode())
        return found

    return search


@pytest.fixture(scope="session")
def make_capture() -> Callable[..., Capture]:
    def make(identity: str = "id-1", **changes: Any) -> Capture:
        base: dict[str, Any] = {
            "identity": identity,
            "target": "agent",
            "item_id": "item-1",
            "variant_id": "calm",
            "condition": Condition.AUDIO,
            "finished": True,
            "started_ns": 1,
            "adapter": "rig_socket",
            "wire_version": 1,
            "parser_version": 2,
            "ending": Ending.DECLINED,
            "marks": {Mark.COMMIT: 5_000_000_000, Mark.ANSWER_END: 6_000_000_000},
        }
        return Capture(**{**base, **changes})

    return make


@pytest.fixture(scope="session")
def make_reply() -> Callable[[int], ReplyAudio]:
    def make(rate_hz: int) -> ReplyAudio:
        return ReplyAudio(rate_hz=rate_hz, received_s=0.1, leading_silence_s=None)

    return make
