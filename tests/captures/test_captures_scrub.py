"""B26 at the level of text and bytes: keys, and parts of them, in all their encodings."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captures.scrub import MASK, PART, Scrubber, secrets_in_url

Leaks = Callable[[bytes], list[str]]


@pytest.fixture(scope="module")
def scrubber(key: str) -> Scrubber:
    return Scrubber([key])


@pytest.mark.parametrize("before", ["", "u:", "us:", "use:"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_at_every_alignment(
    scrubber: Scrubber, key: str, leaks: Leaks, before: str, encode: Callable[[bytes], bytes]
) -> None:
    text = "Proxy said: " + encode((before + key + ":x").encode()).decode() + " refused"
    assert leaks(text.encode()), "the search itself must see the key"
    assert leaks(scrubber.mask(text).encode()) == []
    assert scrubber.mask(text).startswith("Proxy said: ")
    assert scrubber.mask(text).endswith(" refused")


def test_plain_key_and_its_parts(scrubber: Scrubber, key: str) -> None:
    assert scrubber.mask(f"Bearer {key}!") == f"Bearer {MASK}!"
    assert scrubber.mask(f"key {key[:PART]}… refused") == f"key {MASK}… refused"
    assert scrubber.mask(f"ends in {key[-PART:]}") == f"ends in {MASK}"
    assert scrubber.mask(f"ends in {key[-PART + 1 :]}") == f"ends in {key[-PART + 1 :]}"


def test_text_without_secrets_is_the_same_object(scrubber: Scrubber) -> None:
    payload = bytes(range(256)) * 5000
    assert scrubber.scrub_bytes(payload) is payload
    assert scrubber.may_hold(payload) is False


def test_key_across_the_edge_of_a_large_search_slice(scrubber: Scrubber, key: str, leaks: Leaks) -> None:
    for shift in range(-len(key), 2):
        payload = bytes((1 << 20) + shift) + key.encode() + bytes(100)
        assert scrubber.may_hold(payload)
        assert scrubber.scrub_bytes(payload).count(MASK.encode()) == 1
        assert leaks(scrubber.scrub_bytes(payload)) == []


def test_short_secrets_are_masked_whole_as_words() -> None:
    scrubber = Scrubber(["p+w1", ""])
    assert scrubber.mask("user:p+w1@host p%2Bw1 xp+w1x") == f"user:{MASK}@host {MASK} xp+w1x"


def test_no_secrets_changes_nothing() -> None:
    assert Scrubber([]).mask("anything at all") == "anything at all"


@settings(max_examples=150)
@given(
    secret=st.text(st.characters(codec="utf-8"), min_size=PART, max_size=40),
    before=st.text(max_size=12),
    after=st.text(max_size=12),
    data=st.data(),
)
def test_json_stays_readable_and_holds_no_part(secret: str, before: str, after: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(secret) - PART))
    end = data.draw(st.integers(start + PART, len(secret)))
    ascii_only = data.draw(st.booleans())
    payload = json.dumps({"message": before + secret[start:end] + after}, ensure_ascii=ascii_only).encode(
        "utf-8", "surrogatepass"
    )
    scrubbed = Scrubber([secret]).scrub_bytes(payload)
    message = json.loads(scrubbed.decode("utf-8", "surrogatepass"))["message"]
    assert MASK in message
    assert secret[start:end] not in message.replace(MASK, "\0")


@settings(max_examples=100)
@given(secret=st.text(min_size=PART, max_size=40), encode=st.sampled_from([quote, quote_plus, lambda s: quote(s, "")]))
def test_percent_encoded(secret: str, encode: Callable[[str], str]) -> None:
    text = "wss://host/v1?api=" + encode(secret) + "&x=1"
    scrubbed = Scrubber([secret]).mask(text)
    assert encode(secret) not in scrubbed
    assert MASK in scrubbed


def test_what_looks_like_a_credential_is_masked_in_messages(scrubber: Scrubber) -> None:
    for message, expected in {
        "Authorization: Bearer abc.def-123": f"Authorization: Bearer {MASK}",
        "{'Authorization': 'Bearer abcdefgh'}": f"{{'Authorization': 'Bearer {MASK}'}}",
        "sent Bearer eyJhbGciOi.x": f"sent Bearer {MASK}",
        "x-goog-api-key: AIzaSyA12345": f"x-goog-api-key: {MASK}",
        "('api-key', '0123456789abcdef')": f"('api-key', '{MASK}')",
        "GET /v1/live?key=abc&alt=ws failed": f"GET /v1/live?key={MASK}&alt=ws failed",
        "wss://h/x?model=m&access_token=q.r": f"wss://h/x?model=m&access_token={MASK}",
        "wss://user:pass@host/path": f"wss://{MASK}@host/path",
    }.items():
        assert scrubber.scrub_text(message) == expected


def test_ordinary_messages_stay(scrubber: Scrubber) -> None:
    for message in (
        "OPENAI_API_KEY: not set",
        "api.openai.com refused the key of target gpt-realtime (401)",
        "wss://api.openai.com:443/v1/realtime: 12 tools",
    ):
        assert scrubber.scrub_text(message) == message


def test_what_an_agent_said_is_masked_by_value_only(scrubber: Scrubber, key: str) -> None:
    said = {"url": "https://shop/?token=abc", "note": ["Bearer abcdefgh", key], key: 3}
    assert scrubber.mask_values(said) == {"url": "https://shop/?token=abc", "note": ["Bearer abcdefgh", MASK], MASK: 3}


def test_secrets_in_url(key: str) -> None:
    assert secrets_in_url(f"wss://me:{quote(key)}@h/x?model=gpt-4o-realtime-preview-2024-12-17&v=1") == [key]
    assert secrets_in_url(f"wss://h/x?api_key={key}&ticket=abcdefghij0123456789") == [key, "abcdefghij0123456789"]
    assert secrets_in_url("wss://h/x") == []
