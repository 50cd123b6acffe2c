"""Settings of a Twilio target, its signature, and messages of any kind."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.dialect import SettingsError, Setup, TargetSettings
from adapters.twilio_media import DIALECT
from adapters.twilio_media.client import TwilioClient
from adapters.twilio_media.settings import signature
from captures.frames import InFrame

ADDRESS = "ws://127.0.0.1:8080/media"
GIVEN = {"tools": ["pay"], "tool_calls": {"webhook": {}}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def client(address: str | None = ADDRESS, **more: Any) -> TwilioClient:
    made = DIALECT.client(TargetSettings("", address, None, {**GIVEN, **more}))
    assert isinstance(made, TwilioClient)
    return made


@pytest.mark.parametrize(
    ("address", "more", "told"),
    [
        (None, {}, "base_url: required"),
        ("http://127.0.0.1/", {}, "base_url: must look like"),
        ("wss://agent.example.org/media?token=1", {}, "Twilio drops the query"),
        ("ws://agent.example.org/media", {}, "over wss:// alone"),
        (ADDRESS, {"tools": []}, "settings.tools: required"),
        (ADDRESS, {"tool_calls": {}}, "settings.tool_calls: give exactly one"),
        (ADDRESS, {"greeting": "yes"}, "settings.greeting"),
        (ADDRESS, {"greting": "none"}, "settings.greting"),
        (ADDRESS, {"parameters": {"a": "b" * 500}}, "settings.parameters.a: Twilio takes 500 characters"),
        (ADDRESS, {"dtmf": "12x"}, "settings.dtmf"),
    ],
)
def test_a_wrong_setting_is_named(address: str | None, more: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError) as error:
        client(address, **more)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_the_connection_is_signed_as_twilio_does() -> None:
    # HMAC-SHA1 of the address alone under the account's token, by `openssl dgst -sha1 -hmac`.
    assert signature("wss://example.org/media", "12345678") == "GTolTQnErRCU0KVamWdROgwN75E="
    headers = client("wss://example.org/media", auth_token="12345678").endpoint().headers
    assert headers == {"X-Twilio-Signature": "GTolTQnErRCU0KVamWdROgwN75E="}
    assert client().endpoint().headers == {}


def test_capabilities_are_a_phones() -> None:
    able = client().capabilities
    assert (able.text_twin, able.probe, able.takes_setup, able.sees_tools) == (False, False, False, True)
    assert (able.declared_tools, able.chunk_ms, able.input_rates_hz) == (frozenset({"pay"}), 20, (8000,))
    blind = client(tool_calls={"none": True}, tools=[]).capabilities
    assert (blind.sees_tools, blind.declared_tools) == (False, None)


def test_no_two_calls_have_the_same_names() -> None:
    assert client().call_id != client().call_id


@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_raise(payload: bytes, binary: bool) -> None:
    one = client()
    one.open(Setup("", (), 8000))
    one.opened(0)
    events, _ = one.receive(InFrame(payload, binary, 1))
    assert events


@given(st.lists(st.tuples(st.sampled_from(["media", "mark", "clear", "dtmf"]), JSON, st.booleans()), max_size=8))
def test_no_messages_raise_and_time_goes_on(messages: list[tuple[str, Any, bool]]) -> None:
    one = client()
    start = orjson.loads(one.open(Setup("", (), 8000))[1].payload)
    one.opened(0)
    now_ns = 0
    for number, (event, details, begins) in enumerate(messages):
        now_ns = number * 30_000_000
        if begins:
            one.start_turn()
        fields = {"event": event, "streamSid": start["streamSid"], event: details}
        one.receive(
            InFrame(orjson.dumps(fields, option=orjson.OPT_NON_STR_KEYS) if _fits(fields) else b"{}", False, now_ns)
        )
        one.due(now_ns)
        due_ns = one.next_due_ns()
        assert due_ns is None or due_ns > now_ns


def _fits(fields: dict[str, Any]) -> bool:
    try:
        orjson.dumps(fields)
    except TypeError:
        return False
    return True
