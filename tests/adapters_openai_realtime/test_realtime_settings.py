"""Settings, addresses and refused handshakes."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.dialect import SettingsError, TargetSettings
from adapters.openai_realtime import DIALECT
from captures.events import Failed, FailureKind, Refused
from transports.transport import TransportError


@pytest.mark.parametrize(
    ("base_url", "url", "label"),
    [
        (None, "wss://api.openai.com/v1/realtime?model=gpt+x", "wss://api.openai.com/v1/realtime"),
        (
            "ws://127.0.0.1:8765/v1/realtime",
            "ws://127.0.0.1:8765/v1/realtime?model=gpt+x",
            "ws://127.0.0.1:8765/v1/realtime",
        ),
        ("http://localhost:1/x", "ws://localhost:1/x?model=gpt+x", "ws://localhost:1/x"),
        ("https://[::1]:2/x", "wss://[::1]:2/x?model=gpt+x", "wss://[::1]:2/x"),
        ("wss://u:pw@h/v1?token=t&model=mine", "wss://u:pw@h/v1?token=t&model=mine", "wss://h/v1"),
    ],
)
def test_address_and_label(base_url: str | None, url: str, label: str) -> None:
    target = TargetSettings("gpt x", base_url, "TESTKEY", {"headers": {"X-Team": "a"}})
    endpoint = DIALECT.client(target).endpoint()
    assert (endpoint.url, endpoint.label) == (url, label)
    assert endpoint.headers == {"X-Team": "a", "Authorization": "Bearer TESTKEY"}
    assert "TESTKEY" not in repr(endpoint)
    assert "pw" not in repr(endpoint)


def test_without_a_key_there_is_no_authorization() -> None:
    assert DIALECT.client(TargetSettings("m", "ws://127.0.0.1:1/")).endpoint().headers == {}


@pytest.mark.parametrize("base_url", ["ftp://h/x", "127.0.0.1:80", "ws://", "ws://[bad", "ws://h:99999/x"])
def test_addresses_that_are_none(base_url: str) -> None:
    with pytest.raises(SettingsError, match=r"^base_url: "):
        DIALECT.client(TargetSettings("m", base_url))


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"vocie": "alloy"}, r"^settings\.vocie: .*known: headers, voice, output_modalities"),
        ({"output_modalities": ["audio", "text"]}, r"^settings\.output_modalities: "),
        ({"output_modalities": []}, r"^settings\.output_modalities: "),
        ({"max_output_tokens": 0}, r"^settings\.max_output_tokens"),
        ({"speed": 9}, r"^settings\.speed: "),
        ({"noise_reduction": "loud"}, r"^settings\.noise_reduction: "),
        ({"transcription": {}}, r"^settings\.transcription\.model: "),
        ({"headers": {"a": "b\r\nc: d"}}, r"^settings\.headers\.a: "),
    ],
)
def test_settings_that_are_none_name_their_key(extra: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        DIALECT.client(TargetSettings("m", extra=extra))


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (
            401,
            '{"error":{"code":"invalid_api_key","message":"Incorrect API key provided: TESTKEY-not-real-7f3a9c"}}',
            Refused("http_401", "the key was refused by h:1 (invalid_api_key)"),
        ),
        (403, "", Refused("http_403", "the key was refused by h:1")),
        (
            429,
            '{"error":{"code":"insufficient_quota","message":"Spent."}}',
            Failed(FailureKind.QUOTA, "insufficient_quota", "Spent."),
        ),
        (429, "", Failed(FailureKind.RATE_LIMIT, "http_429", "no", 3.0)),
        (
            404,
            '{"error":{"code":"model_not_found","message":"No such model."}}',
            Refused("model_not_found", "h:1 refused the connection with HTTP 404: No such model."),
        ),
        (400, "bad", Refused("http_400", "h:1 refused the connection with HTTP 400: bad")),
        (503, "", Failed(FailureKind.TRANSIENT, "http_503", "no", 3.0)),
    ],
)
def test_refused_handshakes(status: int, body: str, expected: Any) -> None:
    client = DIALECT.client(TargetSettings("m", "ws://h:1/v1", "TESTKEY-not-real-7f3a9c"))
    error = TransportError("no", code=f"http_{status}", status=status, body=body, retry_after_s=3.0)
    assert client.connect_failed(error) == expected


def test_an_unreachable_host_is_transient() -> None:
    client = DIALECT.client(TargetSettings("m"))
    assert client.connect_failed(TransportError("no route", code="refused")) == Failed(
        FailureKind.TRANSIENT, "refused", "no route"
    )
